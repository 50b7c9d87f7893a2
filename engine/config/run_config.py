"""RunConfig: one frozen tree that says everything about a run."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from pydantic import model_validator

from engine.config.rules import check_rules
from engine.config.sections import (
    CheckpointConfig,
    EntropyConfig,
    EvaluationConfig,
    GrpoConfig,
    KlConfig,
    LoggingConfig,
    LoraConfig,
    ModelConfig,
    OptimizerConfig,
    PromptConfig,
    RewardConfig,
    RolloutConfig,
    Section,
    SftConfig,
    StoppingConfig,
    TaskConfig,
    TruncationConfig,
    VllmConfig,
    about,
)


class RunConfig(Section):
    """Everything that decides what a run does; without a step it only evaluates.

    Equal configs on one machine give equal metrics.
    """

    model: ModelConfig = ModelConfig()
    lora: LoraConfig = LoraConfig()
    task: TaskConfig = TaskConfig()
    prompt: PromptConfig = PromptConfig()
    reward: RewardConfig = RewardConfig()
    rollout: RolloutConfig = RolloutConfig()
    vllm: VllmConfig = VllmConfig()
    truncation: TruncationConfig = TruncationConfig()
    sft: SftConfig = SftConfig()
    grpo: GrpoConfig = GrpoConfig()
    kl: KlConfig = KlConfig()
    entropy: EntropyConfig = EntropyConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    stopping: StoppingConfig = StoppingConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()
    seed: int = about(0, "Seeds the order of problems and the sampler.", ge=0, le=2**31 - 1)

    @model_validator(mode="after")
    def _rules_that_span_fields(self) -> "RunConfig":
        check_rules(self)
        return self

    @property
    def total_steps(self) -> int:
        """The length of the run: steps 1 to `sft.steps` are SFT, those after them GRPO."""
        return self.sft.steps + self.grpo.steps

    def grpo_step(self, step: int) -> int:
        """Return GRPO's own number, from 1, of the run's `step`: its schedule and its seeds go by that."""
        return step - self.sft.steps

    @property
    def sft_learning_rate(self) -> float:
        """The peak learning rate of SFT."""
        return self.sft.learning_rate or self.optimizer.learning_rate

    @property
    def prompts_per_step(self) -> int:
        """P, the number of groups in one rollout batch."""
        return self.rollout.rollout_batch_size // self.rollout.group_size

    @property
    def train_batch_size(self) -> int:
        """Completions per optimizer step."""
        return self.grpo.train_batch_size or self.rollout.rollout_batch_size

    @property
    def micro_batch_size(self) -> int:
        """Completions per forward and backward pass."""
        return self.train_batch_size // self.grpo.gradient_accumulation_steps

    @property
    def largest_micro_batch(self) -> int:
        """The most sequences that a forward and backward pass takes, in either phase."""
        return self.micro_batch_size if self.grpo.steps else min(self.micro_batch_size, self.sft.batch_size)

    @property
    def optimizer_steps_per_step(self) -> int:
        """Optimizer steps taken on one rollout batch, all epochs together."""
        return self.rollout.rollout_batch_size // self.train_batch_size * self.grpo.epochs_per_rollout_batch

    @property
    def on_policy(self) -> bool:
        """Whether every update uses completions of the very policy it changes."""
        return self.optimizer_steps_per_step == 1

    @property
    def aggregation_constant(self) -> int:
        """The length that the `constant` aggregation divides by, in tokens."""
        return self.grpo.aggregation_constant or self.rollout.max_tokens

    @property
    def clip_eps_high(self) -> float:
        """The upper clip range."""
        return self.grpo.clip_eps if self.grpo.clip_eps_high is None else self.grpo.clip_eps_high

    @property
    def has_reference(self) -> bool:
        """Whether a reference policy is kept."""
        return self.grpo.steps > 0 and (self.kl.beta > 0 or self.kl.measure)

    @property
    def kl_in_reward(self) -> bool:
        """Whether the KL term is taken off the rewards."""
        return self.kl.beta > 0 and self.kl.placement == "reward"

    @property
    def scores_first(self) -> bool:
        """Whether the policy scores the rollout batch before the update, in a forward pass of its own."""
        return not self.on_policy or self.kl_in_reward

    @property
    def cuts_distribution(self) -> bool:
        """Whether the sampler draws from something else than the softmax at its temperature."""
        rollout = self.rollout
        return rollout.top_p < 1 or rollout.top_k is not None or rollout.min_p > 0 or rollout.repetition_penalty != 1

    def digest(self) -> str:
        """A short hash of the whole config."""
        return _digest(self.model_dump(mode="json"))

    def arm_digest(self) -> str:
        """A short hash that runs differing only in their seed share."""
        return _digest(self.model_dump(mode="json", exclude={"seed"}))


def leaves(config: RunConfig) -> Iterator[tuple[str, Any]]:
    """Yield `(dotted path, value)` of every field, in the tree's order."""
    for name in RunConfig.model_fields:
        value = getattr(config, name)
        if isinstance(value, Section):
            yield from ((f"{name}.{key}", getattr(value, key)) for key in type(value).model_fields)
        else:
            yield name, value


def diff(before: RunConfig, after: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two configs differ: path → (before, after)."""
    return {path: (old, new) for (path, old), (_, new) in zip(leaves(before), leaves(after), strict=True) if old != new}


def _digest(tree: Any) -> str:
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]
