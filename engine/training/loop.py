"""The training loop: GRPO on one page."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from engine.config import RunConfig
from engine.store.recorder import Recorder
from engine.training.batch import build_batch
from engine.training.clock import PhaseClock
from engine.training.draws import draw_groups
from engine.training.evaluate import evaluate
from engine.training.groups import assign_advantages
from engine.training.in_hand import StepInHand
from engine.training.keeper import CheckpointKeeper
from engine.training.optimizer import learning_rate
from engine.training.scoring import begin_update, completion_divergence, score_reference
from engine.training.setup import Setup, StartPoint, set_up
from engine.training.state import TrainingState, coefficients, with_controllers_moved, with_evaluation
from engine.training.stopping import early_end
from engine.training.summary import summarize_step, update_metrics
from engine.training.update import update_policy
from engine.types import DecodingMode

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
    """Train until the last step, a limit of `config.stopping`, or until `stop()` is true.

    A stop ends the run within a micro-batch; a resume goes on from there. Checkpoints go to `folder`/checkpoints.

    Raises:
        GrpoLabError: if the run cannot begin, or too many updates in a row are not finite.
    """
    setup = set_up(config, threads=threads, start=start)
    model, in_hand = setup.policy.model, setup.in_hand
    keeper = CheckpointKeeper(folder / "checkpoints", setup, config.checkpoints, recorder)
    clock, began, state = PhaseClock(setup.policy.device), time.monotonic(), setup.state
    if start is None or start.fork:
        with clock("evaluate"):
            state = evaluate_and_record(setup, config, recorder, state)

    while state.step < config.grpo.steps and not stop():
        step = state.step + 1
        drawn = in_hand.drawn if in_hand else draw_groups(setup, config, state, clock=clock, stop=stop)
        with clock("update"):
            batch = build_batch(
                drawn.groups, drawn.rewards, truncated=config.truncation.completions, device=setup.policy.device
            )
            batch = score_reference(model, setup.reference, batch, config)
            progress = (in_hand and in_hand.progress) or begin_update(model, batch, config, step=step)
        with clock("score"):
            divergence = completion_divergence(batch, progress.before, config)
            advantages = assign_advantages(drawn.groups, drawn.rewards, config, divergence=divergence, beta=state.beta)
            batch = batch.with_advantages(advantages.advantages)
        with clock("update"):
            rate = learning_rate(config.optimizer, step=step, total_steps=config.grpo.steps)
            setup.optimizer.set_learning_rate(rate)
            used = coefficients(state, config)
            whole = update_policy(
                model, setup.optimizer, batch, config, step=step, progress=progress, coefficients=used, stop=stop
            )
            if setup.reference and whole:
                setup.reference.follow(step)
        in_hand = None if whole else StepInHand(drawn, progress)
        if in_hand:
            break

        measured = update_metrics(batch, progress, config, used)
        if config.kl.beta > 0:
            measured["kl/beta"] = state.beta
        state = with_controllers_moved(state, config, kl=measured.get("kl/update"), entropy=measured.get("entropy"))
        state = replace(
            state,
            step=step,
            draws=state.draws + drawn.draws,
            num_tokens=state.num_tokens + drawn.num_tokens,
            skipped_in_a_row=setup.optimizer.skipped_in_a_row,
            seconds=setup.state.seconds + time.monotonic() - began,
            accuracy=None,
        )
        times = clock.take()
        measured |= times | {
            "step_time": sum(times.get(phase, 0.0) for phase in STEP_PHASES),
            "learning_rate": rate,
            "num_tokens": float(state.num_tokens),
            "memory/rss": float(psutil.Process().memory_info().rss),
        }
        with clock("write"):
            recorder.step(summarize_step(step, drawn, advantages, batch, progress, measured, config))
        if step % config.evaluation.every == 0 or step == config.grpo.steps:
            with clock("evaluate"):
                state = evaluate_and_record(setup, config, recorder, state)
        if step % config.checkpoints.every == 0 or step == config.grpo.steps:
            with clock("checkpoint"):
                keeper.save(state)
        end = early_end(state, config.stopping)
        if end is not None and step < config.grpo.steps:
            recorder.event(end.kind, end.message, step=step)
            keeper.save(state)
            return Outcome("succeeded", step)

    if state.step == config.grpo.steps:
        return Outcome("succeeded", state.step)
    if in_hand:
        keeper.save_within(state, in_hand)
    else:
        keeper.save(state)
    return Outcome("stopped", state.step)


def evaluate_and_record(setup: Setup, config: RunConfig, recorder: Recorder, state: TrainingState) -> TrainingState:
    """Evaluate, hand the records to the store, and return the state with its accuracy."""
    modes: tuple[DecodingMode, ...] = ("sampled", "greedy") if config.evaluation.greedy else ("sampled",)
    for mode in modes:
        record = evaluate(setup.policy, setup.engine, setup.prompt, setup.held_out, config, step=state.step, mode=mode)
        recorder.evaluation(record)
        if mode == "sampled":
            state = with_evaluation(state, record.metrics["accuracy"], min_gain=config.stopping.min_gain)
    return state
