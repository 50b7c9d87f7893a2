"""The training loop: SFT and then GRPO, on one page."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psutil

from engine.config import RunConfig
from engine.store.recorder import Recorder
from engine.training.announcement import announce
from engine.training.clock import PhaseClock
from engine.training.device_usage import device_usage
from engine.training.evaluate import evaluate
from engine.training.grpo_step import take_grpo_step
from engine.training.keeper import CheckpointKeeper
from engine.training.not_graded import NotGradedWatch
from engine.training.setup import Setup, StartPoint, set_up
from engine.training.sft import take_sft_step
from engine.training.state import TrainingState, with_evaluation
from engine.training.step import CutShort
from engine.training.stopping import early_end
from engine.training.watch import StepWatch
from engine.training.weight_version import check_weight_version
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
    initial_weights: Path | None = None,
    graded_before: str | None = None,
) -> Outcome:
    """Evaluate the start and train until the last step, a limit of `config.stopping`, or until `stop()` is true.

    A run without steps ends after its evaluation, and leaves no checkpoint: its weights are those it was given.
    A stop ends the run within a micro-batch; a resume goes on from there. Checkpoints go to `folder`/checkpoints.
    `initial_weights` is the folder that `model.init_from` names: the policy at step 0, all else being new.
    `graded_before` is the grader that an earlier attempt announced.

    Raises:
        GrpoLabError: if the run cannot begin, too many updates in a row are not finite, the sampler's weights are
            stale, or too many completions of a step were not graded (its record is there then).
    """
    setup = set_up(config, threads=threads, start=start, initial_weights=initial_weights)
    announce(setup, config, recorder, graded_before)
    with device_usage(setup.policy.device, recorder) as usage:
        begins = start is None or start.fork
        return _take_steps(setup, config, usage, recorder=recorder, folder=folder, stop=stop, begins=begins)


def _take_steps(
    setup: Setup,
    config: RunConfig,
    usage: Callable[[], dict[str, float]],
    *,
    recorder: Recorder,
    folder: Path,
    stop: Callable[[], bool],
    begins: bool,
) -> Outcome:
    """Evaluate the start where the run `begins`, and take its steps; `usage` tells how busy the GPU was in each."""
    keeper = CheckpointKeeper(folder / "checkpoints", setup, config.checkpoints, recorder)
    watch = StepWatch(config, recorder)
    not_graded = NotGradedWatch(config.stopping.max_not_graded, recorder)
    clock, began, state = PhaseClock(setup.policy.device), time.monotonic(), setup.state
    in_hand = setup.in_hand
    if begins:
        with clock("evaluate"):
            state = evaluate_and_record(setup, config, recorder, state)

    while state.step < config.total_steps and not stop():
        step = state.step + 1
        if step <= config.sft.steps:
            taken = take_sft_step(setup, config, state, clock=clock, stop=stop)
        else:
            taken = take_grpo_step(setup, config, state, in_hand, clock=clock, stop=stop)
        if isinstance(taken, CutShort):
            in_hand = taken.in_hand
            break
        in_hand = None
        setup.engine.weights_changed(setup.optimizer.changes)

        state = replace(
            taken.state,
            step=step,
            skipped_in_a_row=setup.optimizer.skipped_in_a_row,
            weight_version=setup.optimizer.changes,
            seconds=setup.state.seconds + time.monotonic() - began,
            accuracy=None,
        )
        times = clock.take()
        measured = times | {
            "step_time": sum(times.get(phase, 0.0) for phase in STEP_PHASES),
            "learning_rate": taken.learning_rate,
            "num_tokens": float(state.num_tokens),
            "memory/rss": float(psutil.Process().memory_info().rss),
            **usage(),
        }
        with clock("write"):
            record = taken.summarize(measured)
            recorder.step(record)
        watch.look(record.metrics, step=step)
        not_graded.look(taken.judged, step=step)
        ends_phase = step in (config.sft.steps, config.total_steps)
        if step % config.evaluation.every == 0 or ends_phase:
            with clock("evaluate"):
                state = evaluate_and_record(setup, config, recorder, state)
        if step % config.checkpoints.every == 0 or ends_phase:
            with clock("checkpoint"):
                keeper.save(state)
        end = early_end(state, config.stopping)
        if end is not None and step < config.total_steps:
            recorder.event(end.kind, end.message, step=step)
            keeper.save(state)
            return Outcome("succeeded", step)

    if state.step == config.total_steps:
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
        check_weight_version(setup.engine, setup.optimizer.changes)
        recorder.evaluation(record)
        if mode == "sampled":
            state = with_evaluation(state, record.metrics["accuracy"], min_gain=config.stopping.min_gain)
    return state
