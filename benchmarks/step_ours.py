"""Steps of our GRPO, for benchmarks/step_time.py: as the loop takes them, every rollout stored.

Reads a job from standard input, and prints what it measured behind `MARK`, both as JSON.
"""

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

from benchmarks.step_trl import MARK
from engine.config import RunConfig, parse_config
from engine.store.database import file_url, open_database
from engine.store.queue import enqueue
from engine.store.recorder import Recorder
from engine.training.clock import PhaseClock
from engine.training.grpo_step import take_grpo_step
from engine.training.setup import set_up
from engine.training.step import CutShort


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
    """Return the config of a job: every completion has the same length, and almost no group is flat."""
    return parse_config(
        {
            "seed": job["seed"],
            "model.name": job["model"],
            "model.device": job["device"],
            "rollout.rollout_batch_size": job["batch"],
            "rollout.group_size": job["group"],
            "rollout.max_tokens": job["tokens"],
            "rollout.min_tokens": job["tokens"],
            "reward.placebo": "random",
            "grpo.steps": job["steps"],
            "grpo.gradient_accumulation_steps": job["batch"] // job["micro_batch_size"],
            "optimizer.learning_rate": job["learning_rate"],
            "optimizer.max_grad_norm": job["max_grad_norm"],
        }
    )


def measure(job: dict[str, Any]) -> list[dict[str, float]]:
    """Return CPU and wall seconds of each step from the second on, CPU seconds of its phases, its tokens."""
    config = job_config(job)
    setup, clock = set_up(config, threads=job["threads"], start=None), CpuClock()
    state, steps = setup.state, []
    with tempfile.TemporaryDirectory() as folder:
        db = open_database(file_url(Path(folder) / "runs.db"))
        recorder = Recorder(db, enqueue(db, config, name="benchmark"))
        for step in range(1, job["steps"] + 1):
            cpu, wall = time.process_time(), time.perf_counter()
            taken = take_grpo_step(setup, config, state, None, clock=clock, stop=lambda: False)
            if isinstance(taken, CutShort):
                raise RuntimeError(f"step {step} was cut short though nothing stops it")
            state = replace(taken.state, step=step)
            record = taken.summarize({})
            recorder.step(record)
            completions = [each.completion for group in record.groups for each in group.completions]
            steps.append(
                {
                    "cpu_s": time.process_time() - cpu,
                    "wall_s": time.perf_counter() - wall,
                    "tokens": sum(len(completion.token_ids) for completion in completions),
                    "prompt_tokens": sum(len(group.prompt_token_ids) * job["group"] for group in record.groups),
                }
                | {f"{phase}_cpu_s": seconds for phase, seconds in clock.take().items()}
            )
        # What the recorder writes after the last step belongs to it.
        cpu = time.process_time()
        recorder.close()
        steps[-1]["cpu_s"] += time.process_time() - cpu
        db.close()
    return steps[1:]


if __name__ == "__main__":
    print(MARK + json.dumps(measure(json.load(sys.stdin))))
