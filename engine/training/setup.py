"""What a run trains with, made ready once before the loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.config import RunConfig
from engine.config.sections import OptimizerConfig
from engine.errors import CheckpointError
from engine.planner.memory import rows_at_once
from engine.planner.sampler import max_model_len, sampler_dtype
from engine.policy.adapter import add_lora, has_adapter, load_adapter
from engine.policy.gradient_checkpointing import enable_gradient_checkpointing
from engine.policy.policy import Policy, load_policy, model_source
from engine.policy.reference import ReferencePolicy
from engine.rewards.choice import reward_named
from engine.rewards.gold import GoldFault, with_good_gold
from engine.rewards.verifiers import RewardFn
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.rollout.vllm_engine import VllmEngine
from engine.tasks.demonstrations import load_demonstrations
from engine.tasks.prompts import PromptTemplate, prompt_of
from engine.tasks.task import Task, load_task
from engine.training.checkpoint import is_complete, load_checkpoint
from engine.training.forward import check_output_layer
from engine.training.in_hand import StepInHand, load_step_in_hand
from engine.training.optimizer import OptimizerStep, make_optimizer
from engine.training.state import TrainingState, forked_state, start_state
from engine.types import Demonstration, Problem


@dataclass(frozen=True, slots=True)
class StartPoint:
    """A checkpoint to go on from: this run's own after an interruption, or the parent's in a fork."""

    path: Path
    step: int
    fork: bool = False


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts that the loop works with, and the state it starts from."""

    policy: Policy
    engine: RolloutEngine
    optimizer: OptimizerStep
    task: Task
    prompt: PromptTemplate
    reward: RewardFn
    sampling: SamplingParams
    held_out: list[Problem]
    gold_faults: list[GoldFault]
    """Problems that were left out because their gold answer does not grade itself correct."""
    state: TrainingState
    demonstrations: Sequence[Demonstration] = ()
    """What SFT learns from; empty where no step of it is left."""
    reference: ReferencePolicy | None = None
    in_hand: StepInHand | None = None
    """The step that a stop cut short, to be finished first."""


def set_up(config: RunConfig, *, threads: int, start: StartPoint | None, initial_weights: Path | None = None) -> Setup:
    """Load the policy and everything around it.

    A policy that begins has the weights in `initial_weights`, or those of `model.name`; beside an adapter they are
    frozen, and a resume needs them as well.

    Raises:
        TaskError: if the task cannot give enough problems, a gold answer is unreadable, the prompt does not fit, or
            demonstrations are faulty.
        PolicyError: if the model cannot be loaded, or lacks what the config asks of it.
        CheckpointError: if `start` is not a complete checkpoint.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(config.seed)
    prompt = prompt_of(config)
    reward = reward_named(prompt.reward)
    task, gold_faults = with_good_gold(load_task(config.task), config, reward)
    held_out = task.problems(config.evaluation.split, config.evaluation.size, seed=config.evaluation.seed)
    if config.grpo.steps:
        task.train_batch(1, config.prompts_per_step, seed=config.seed)
    demonstrations: list[Demonstration] = []
    if (start.step if start else 0) < config.sft.steps:
        demonstrations = load_demonstrations(task, config.sft, prompt_name=prompt.name, seed=config.seed)
    if start is not None and not is_complete(start.path):
        raise CheckpointError(f"checkpoint={start.path} is missing or unfinished; start from another step")
    policy = _policy(config, start, initial_weights)
    prompt = prompt.in_chat(policy.tokenizer)
    check_output_layer(policy.model)
    if config.model.gradient_checkpointing and config.total_steps:
        enable_gradient_checkpointing(policy.model)
    optimizer = OptimizerStep(
        policy.model,
        # A run without steps takes none with it: plain AdamW, which holds nothing before its first one.
        make_optimizer(policy.model, config.optimizer if config.total_steps else OptimizerConfig()),
        max_grad_norm=config.optimizer.max_grad_norm,
        max_skipped_in_a_row=config.stopping.max_nonfinite_updates,
    )
    kl, reference, in_hand = config.kl, None, None
    if config.has_reference:
        reference = ReferencePolicy(policy.model, kind=kl.reference, ema_decay=kl.ema_decay, copy_every=kl.copy_every)
    state = start_state(config)
    if start is not None:
        # A fork begins with the weights it finds: they are its reference, and its divergence at the start is 0.
        saved = load_checkpoint(start.path, optimizer.optimizer, reference=None if start.fork else reference)
        state = forked_state(saved, config) if start.fork else saved
        in_hand = None if start.fork else load_step_in_hand(start.path, policy.device)
    optimizer.skipped_in_a_row = state.skipped_in_a_row
    taken = in_hand.progress.tallies if in_hand and in_hand.progress else []
    optimizer.changes = state.weight_version + sum(not tally.skipped for tally in taken)
    engine = _engine(config, policy)
    engine.weights_changed(optimizer.changes)
    return Setup(
        policy=policy,
        engine=engine,
        optimizer=optimizer,
        task=task,
        prompt=prompt,
        reward=reward,
        sampling=SamplingParams(
            temperature=config.rollout.temperature,
            max_tokens=config.rollout.max_tokens,
            min_tokens=config.rollout.min_tokens,
            stop_strings=prompt.stop_strings,
            top_p=config.rollout.top_p,
            top_k=config.rollout.top_k,
            min_p=config.rollout.min_p,
            repetition_penalty=config.rollout.repetition_penalty,
        ),
        held_out=held_out,
        gold_faults=gold_faults,
        state=state,
        demonstrations=demonstrations,
        reference=reference,
        in_hand=in_hand,
    )


def _engine(config: RunConfig, policy: Policy) -> RolloutEngine:
    """Return the engine that `rollout.engine` names, around the policy."""
    if config.rollout.engine == "transformers":
        return TransformersEngine(policy.model, policy.tokenizer, max_rows=rows_at_once(config))
    vllm, positions = config.vllm, policy.model.config.get_text_config().max_position_embeddings
    return VllmEngine(
        policy.model,
        policy.tokenizer,
        model_source(config.model.name),
        max_model_len=max_model_len(config, positions),
        max_rows=rows_at_once(config),
        dtype=sampler_dtype(config),
        gpu_memory_utilization=vllm.gpu_memory_utilization,
        cache_bytes=vllm.cpu_cache << 20,
        enforce_eager=vllm.enforce_eager,
        tensor_parallel_size=vllm.tensor_parallel_size,
        seed=config.seed,
    )


def _policy(config: RunConfig, start: StartPoint | None, initial_weights: Path | None) -> Policy:
    """Return the model with its adapter, if it has one, and the weights of `start`."""
    base = config.model.name if initial_weights is None else str(initial_weights)
    rank, options = config.lora.rank, {"dtype": config.model.dtype, "device": config.model.device}
    if start is not None and has_adapter(start.path) != (rank is not None):
        raise CheckpointError(
            f"lora.rank={rank or 'empty'}, but checkpoint={start.path} "
            f"{'is that of an adapter' if has_adapter(start.path) else 'has no adapter'}; "
            "go on with the parent's lora.rank, or launch a new run"
        )
    if config.model.init_from is not None and initial_weights is None and (start is None or rank is not None):
        raise CheckpointError(
            f"model.init_from={config.model.init_from} was not found before training; give its folder"
        )
    if rank is None:
        return load_policy(base if start is None else str(start.path), **options)
    policy = add_lora(load_policy(base, **options), rank, config.lora.alpha, seed=config.seed)
    if start is not None:
        load_adapter(policy, start.path)
    return policy
