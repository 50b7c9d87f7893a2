"""The training loop: GRPO on one page."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from engine.config import RunConfig
from engine.rewards.scoring import score_groups
from engine.store.recorder import Recorder
from engine.training.batch import build_batch
from engine.training.checkpoint import TrainingState
from engine.training.clock import PhaseClock
from engine.training.evaluate import evaluate
from engine.training.groups import assign_advantages, sample_groups
from engine.training.keeper import CheckpointKeeper
from engine.training.optimizer import learning_rate
from engine.training.seeds import derive_seed
from engine.training.setup import Setup, StartPoint, set_up
from engine.training.summary import summarize_step
from engine.training.update import update_policy
from engine.types import DecodingMode, Group

STEP_PHASES = ("time/rollout", "time/score", "time/update")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How training ended, and after which step."""

    status: Literal["succeeded", "stopped"]
    step: int


def train(
    config: RunConfig,
    *,
    recorder: Recorder,
    folder: Path,
    threads: int,
    stop: Callable[[], bool],
    start: StartPoint | None = None,
) -> Outcome:
    """Train until the last step, the time limit, or until `stop()` is true.

    A stop ends the run at a step boundary, with a checkpoint there. Checkpoints go to `folder`/checkpoints.

    Raises:
        GrpoLabError: if the run cannot begin, or too many updates in a row are not finite.
    """
    setup = set_up(config, threads=threads, start=start)
    keeper = CheckpointKeeper(folder / "checkpoints", setup, config.checkpoints, recorder)
    clock, began, state = PhaseClock(), time.monotonic(), setup.state
    if start is None or start.fork:
        with clock("evaluate"):
            state = evaluate_and_record(setup, config, recorder, state)

    while state.step < config.grpo.steps and not stop():
        step = state.step + 1
        problems = setup.task.train_batch(step, config.prompts_per_step, seed=config.seed)
        with clock("rollout"):
            groups = sample_groups(
                setup.policy,
                setup.engine,
                setup.prompt,
                problems,
                n=config.rollout.group_size,
                sampling=setup.sampling,
                seed=derive_seed(config.seed, "rollout", step),
            )
        if stop():
            break
        with clock("score"):
            rewards = score_groups(groups, setup.reward)
            advantages = assign_advantages(rewards, config)
        with clock("update"):
            batch = build_batch(groups, rewards, advantages.advantages, device=setup.policy.device)
            rate = learning_rate(config.optimizer, step=step, total_steps=config.grpo.steps)
            setup.optimizer.set_learning_rate(rate)
            update = update_policy(setup.policy.model, setup.optimizer, batch, config, step=step)

        state = replace(
            state,
            step=step,
            num_tokens=state.num_tokens + count_tokens(groups),
            skipped_in_a_row=setup.optimizer.skipped_in_a_row,
            seconds=setup.state.seconds + time.monotonic() - began,
            accuracy=None,
        )
        times = clock.take()
        measured = times | {
            "step_time": sum(times[phase] for phase in STEP_PHASES),
            "learning_rate": rate,
            "num_tokens": float(state.num_tokens),
            "memory/rss": float(psutil.Process().memory_info().rss),
        }
        with clock("write"):
            recorder.step(summarize_step(step, groups, rewards, advantages, update, measured, config))
        if step % config.evaluation.every == 0 or step == config.grpo.steps:
            with clock("evaluate"):
                state = evaluate_and_record(setup, config, recorder, state)
        if step % config.checkpoints.every == 0 or step == config.grpo.steps:
            with clock("checkpoint"):
                keeper.save(state)
        if config.stopping.max_minutes is not None and state.seconds > config.stopping.max_minutes * 60:
            recorder.event("time_limit", f"stopped at max_minutes={config.stopping.max_minutes:g}", step=step)
            keeper.save(state)
            return Outcome("succeeded", step)

    if state.step < config.grpo.steps:
        keeper.save(state)
        return Outcome("stopped", state.step)
    return Outcome("succeeded", state.step)


def evaluate_and_record(setup: Setup, config: RunConfig, recorder: Recorder, state: TrainingState) -> TrainingState:
    """Evaluate, hand the records to the store, and return the state with its accuracy."""
    modes: tuple[DecodingMode, ...] = ("sampled", "greedy") if config.evaluation.greedy else ("sampled",)
    for mode in modes:
        record = evaluate(setup.policy, setup.engine, setup.prompt, setup.held_out, config, step=state.step, mode=mode)
        recorder.evaluation(record)
        if mode == "sampled":
            state = replace(state, accuracy=record.metrics["accuracy"])
    return state


def count_tokens(groups: list[Group]) -> int:
    """Return the prompt and completion tokens of all rows."""
    return sum(
        len(group.prompt_token_ids) + len(completion.token_ids) for group in groups for completion in group.completions
    )
