"""Steps of our GRPO: a side of step_time and whole_run. As the loop takes them, every rollout graded and stored."""

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.cpu import cpu_seconds
from benchmarks.step_trl import MARK
from engine.config import RunConfig, parse_config
from engine.presets import load_preset
from engine.store.database import file_url, open_database
from engine.store.queue import enqueue
from engine.store.recorder import Recorder
from engine.training.clock import PhaseClock
from engine.training.grpo_step import take_grpo_step
from engine.training.setup import set_up
from engine.training.step import CutShort
from engine.types import StepRecord


class CpuClock(PhaseClock):
    """Adds up CPU seconds per phase: they hardly depend on what else the machine does."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Measure the block as `phase`."""
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + time.process_time() - began

    def take(self) -> dict[str, float]:
        """Return the CPU seconds per phase since the last call, and start anew."""
        taken, self.seconds = self.seconds, {}
        return taken


def job_config(job: dict[str, Any]) -> RunConfig:
    """Return the config of a job: that of its preset, or one in which all completions have the same length.

    Without a preset rewards are a coin's, so that almost no group is flat.
    """
    if "preset" in job:
        return load_preset(job["preset"], job["overrides"]).config
    return parse_config(
        {
            "seed": job["seed"],
            "model.name": job["model"],
            "model.device": job["device"],
            "rollout.rollout_batch_size": job["batch"],
            "rollout.group_size": job["group"],
            "rollout.max_tokens": job["tokens"],
            "rollout.min_tokens": job["min_tokens"],
            "reward.placebo": "random",
            "grpo.steps": job["steps"],
            "grpo.gradient_accumulation_steps": job["batch"] // job["micro_batch_size"],
            "optimizer.learning_rate": job["learning_rate"],
            "optimizer.max_grad_norm": job["max_grad_norm"],
        }
    )


def measure(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return CPU and wall seconds of each step, CPU seconds of its phases, and what `summary` says of it.

    Model and store are there before the first step.
    """
    config = job_config(job)
    setup, clock = set_up(config, threads=job["threads"], start=None), CpuClock()
    state, records, phases = setup.state, [], []
    with tempfile.TemporaryDirectory() as folder:
        db = open_database(file_url(Path(folder) / "runs.db"))
        recorder = Recorder(db, enqueue(db, config, name="benchmark"))
        marks = [now()]
        for step in range(1, job["steps"] + 1):
            taken = take_grpo_step(setup, config, state, None, clock=clock, stop=lambda: False)
            if isinstance(taken, CutShort):
                raise RuntimeError(f"step {step} was cut short though nothing stops it")
            setup.engine.weights_changed(setup.optimizer.changes)
            state = replace(taken.state, step=step)
            records.append(taken.summarize({}))
            recorder.step(records[-1])
            phases.append({f"{name}_cpu_s": seconds for name, seconds in clock.take().items()})
            marks.append(now())
        # What the recorder writes after the last step belongs to it.
        recorder.close()
        marks[-1] = now()
        db.close()
    times = [{name: after[name] - before[name] for name in after} for before, after in itertools.pairwise(marks)]
    return [spent | of | summary(record) for spent, of, record in zip(times, phases, records, strict=True)]


def now() -> dict[str, float]:
    """Return the CPU seconds so far and the time on the wall."""
    return {"cpu_s": cpu_seconds(), "wall_s": time.perf_counter()}


def summary(record: StepRecord) -> dict[str, Any]:
    """Return tokens, mean reward, share of mixed groups, and answers: each a text, its gold answer and its value."""
    members = [(group, member) for group in record.groups for member in group.completions]
    return {
        "tokens": sum(len(member.completion.token_ids) for _, member in members),
        "prompt_tokens": sum(len(group.prompt_token_ids) for group, _ in members),
        "reward": record.metrics["reward"],
        "mixed": record.metrics["groups/mixed"],
        "answers": [(member.completion.text, group.problem.gold, member.reward.value) for group, member in members],
    }


if __name__ == "__main__":
    print(MARK + json.dumps(measure(json.load(sys.stdin))))
