"""Groups of completions: sampled, rewarded, and given their advantages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import RunConfig
from engine.errors import RewardError
from engine.grpo.advantages import AdvantageStats, group_advantages
from engine.grpo.kl import penalized_advantages
from engine.policy.policy import Policy
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.tasks.prompts import PromptTemplate
from engine.types import Completion, FloatArray, Group, Problem, Reward


@dataclass(frozen=True, slots=True)
class RewardedGroup:
    """A group with the rewards of its completions."""

    group: Group
    rewards: tuple[Reward, ...]

    def __post_init__(self) -> None:
        if len(self.rewards) != len(self.group.completions):
            raise RewardError(
                f"rewards: {len(self.rewards)} for the {len(self.group.completions)} completions of problem "
                f"{self.group.problem.problem_id}; a reward function gives one for each completion"
            )


@dataclass(frozen=True, slots=True)
class Drawn:
    """The P groups that a step trains on, those that were drawn and left out, and how often prompts were drawn."""

    trained: tuple[RewardedGroup, ...]
    left_out: tuple[RewardedGroup, ...] = ()
    draws: int = 1

    @property
    def groups(self) -> list[Group]:
        """The groups that are trained on."""
        return [member.group for member in self.trained]

    @property
    def rewards(self) -> list[tuple[Reward, ...]]:
        """Their rewards, (P, G)."""
        return [member.rewards for member in self.trained]

    @property
    def judged(self) -> list[Reward]:
        """The rewards of every row drawn, trained on or not."""
        return [reward for member in (*self.trained, *self.left_out) for reward in member.rewards]

    @property
    def num_tokens(self) -> int:
        """The prompt and completion tokens of every row drawn, trained on or not."""
        return sum(
            len(member.group.prompt_token_ids) + len(completion.token_ids)
            for member in (*self.trained, *self.left_out)
            for completion in member.group.completions
        )


def sample_groups(
    policy: Policy,
    engine: RolloutEngine,
    prompt: PromptTemplate,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: SamplingParams,
    seed: int,
) -> list[Group]:
    """Return one group of `n` completions for each problem."""
    prompts = [prompt.render(problem.question) for problem in problems]
    prompt_token_ids = [policy.encode(text) for text in prompts]
    sampled = engine.generate(prompt_token_ids, n=n, sampling=sampling, seed=seed)
    return [
        Group(problem, text, token_ids, tuple(completions))
        for problem, text, token_ids, completions in zip(problems, prompts, prompt_token_ids, sampled, strict=True)
    ]


def assign_advantages(
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    config: RunConfig,
    *,
    divergence: FloatArray | None = None,
    beta: float = 0.0,
) -> AdvantageStats:
    """Return the advantages (P, G) of graded groups under the run's settings, in float64.

    Raises ValueError unless there is one reward for each completion, and the groups are of one size.

    Where the KL term is in the reward, `divergence` (B,) is its estimate summed over each completion, in nats.
    Under `learn_from="correct"` an advantage is 1 for a correct completion and 0 for any other.
    """
    values = np.array(
        [
            [_value(completion, reward, config) for completion, reward in zip(group.completions, members, strict=True)]
            for group, members in zip(groups, rewards, strict=True)
        ],
        np.float64,
    )
    grpo = config.grpo
    stats = group_advantages(values, baseline=grpo.baseline, scale=grpo.scale, std=grpo.std, eps=grpo.advantage_eps)
    if grpo.learn_from == "correct":
        correct = [[reward.verdict == "correct" for reward in members] for members in rewards]
        return stats._replace(advantages=np.array(correct, np.float64))
    if divergence is None or not config.kl_in_reward:
        return stats
    known = np.where(np.isnan(values), np.nan, divergence.reshape(values.shape))
    return stats._replace(advantages=penalized_advantages(stats.advantages, known, beta=beta, baseline=grpo.baseline))


def _value(completion: Completion, reward: Reward, config: RunConfig) -> float:
    """Return the reward that enters the group's statistics, NaN where none does."""
    excluded = config.truncation.completions == "exclude" and completion.finish_reason == "length"
    return np.nan if reward.value is None or excluded else reward.value
