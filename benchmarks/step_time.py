"""A whole GRPO step against TRL's GRPOTrainer: same model, prompts, lengths, batch, float32, threads.

Each side runs in a process of its own, in turn, never both at once: ours here, TRL in an environment of its own (made
once, see benchmarks/trl_environment.py). Every completion has the full length on either side, and rewards are a coin's,
so that almost every group teaches: neither early ends nor groups left out help. CPU seconds (user and system) are
compared beside wall seconds, since they hardly depend on what else the machine does.

    python -m benchmarks.step_time --json
    python -m benchmarks.step_time --model FOLDER --batch 16 --micro-batch 16 --steps 3
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.entry import Entry, print_table
from benchmarks.step_ours import job_config
from benchmarks.step_trl import MARK
from benchmarks.trl_environment import ROOT, TRL, default_folder, python_of
from engine.policy.policy import TINY_MATH
from engine.tasks.prompts import prompt_of
from engine.tasks.task import load_task

Measured = list[dict[str, float]]
PER_STEP = {"cpu_s": "CPU s/step", "wall_s": "wall s/step", "rollout_cpu_s": "CPU s/step", "rest_cpu_s": "CPU s/step"}
NAMES = {
    "cpu_s": "all",
    "wall_s": "all, by the wall",
    "rollout_cpu_s": "rollout",
    "rest_cpu_s": "all but rollout",
}


def make_job(
    model: Path = TINY_MATH, *, batch: int = 128, micro_batch: int = 128, tokens: int = 48, steps: int = 6
) -> dict[str, Any]:
    """Return what both sides do: `steps` steps of `batch` completions in groups of 8, the first of them not counted."""
    job: dict[str, Any] = {
        "model": str(model),
        "device": "cpu",
        "threads": 1,
        "seed": 0,
        "batch": batch,
        "micro_batch_size": micro_batch,
        "group": 8,
        "tokens": tokens,
        "steps": steps,
        "learning_rate": 1e-5,
        "max_grad_norm": 1.0,
    }
    config = job_config(job)
    task, prompt = load_task(config.task), prompt_of(config)
    problems = [
        problem
        for step in range(1, steps + 1)
        for problem in task.train_batch(step, config.prompts_per_step, seed=config.seed)
    ]
    return job | {"prompts": [prompt.render(problem.question) for problem in problems]}


def measure(job: dict[str, Any] | None = None, *, repetitions: int = 3) -> list[Entry]:
    """Return seconds per step of both, medians over the steps of `repetitions` alternating pairs of processes.

    Raises:
        RuntimeError: if the two did not work on the same number of tokens, or one of them failed.
    """
    job = job or make_job()
    sides: dict[str, list[Measured]] = {"ours": [], "trl": []}
    pythons = {"ours": sys.executable, "trl": str(python_of(default_folder()))}
    for _ in range(repetitions):
        for side, python in pythons.items():
            sides[side].append(run_side(python, f"benchmarks.step_{side}", job))
            cpu = median(step["cpu_s"] for step in sides[side][-1])
            load = os.getloadavg()[0]
            print(f"{side}: {cpu:.3g} CPU s/step, load {load:.1f}", file=sys.stderr)
    check_tokens(job, *([step for measured in sides[side] for step in measured] for side in pythons))
    shape = f"{Path(job['model']).name if Path(job['model']) != TINY_MATH else 'tiny-math'} "
    shape += f"{job['batch'] // job['group']}x{job['group']}x{job['tokens']}, {job['threads']} thread"
    return [
        Entry(
            f"step/{NAMES[figure]}, {shape}",
            ours=per_step(sides["ours"], figure),
            other=per_step(sides["trl"], figure),
            other_name=f"GRPOTrainer, {TRL}",
            unit=unit,
            n=repetitions,
        )
        for figure, unit in PER_STEP.items()
    ]


def per_step(measured: Sequence[Measured], figure: str) -> float:
    """Return the median over processes of the median over their steps."""
    return median(median(_figure(step, figure) for step in steps) for steps in measured)


def _figure(step: dict[str, float], figure: str) -> float:
    return step["cpu_s"] - step["rollout_cpu_s"] if figure == "rest_cpu_s" else step[figure]


def check_tokens(job: dict[str, Any], ours: Measured, theirs: Measured) -> None:
    """Check that every step sampled the tokens that the job asks for, behind prompts of the same lengths.

    Raises:
        RuntimeError: if one did not.
    """
    wanted = job["batch"] * job["tokens"]
    sampled = sorted({step["tokens"] for step in (*ours, *theirs)})
    if sampled != [wanted]:
        raise RuntimeError(f"tokens={sampled} were sampled in a step, not {wanted}; the times do not compare")
    prompts = [[step["prompt_tokens"] for step in side] for side in (ours, theirs)]
    if prompts[0] != prompts[1]:
        raise RuntimeError(f"prompt tokens per step differ: {prompts[0]} and {prompts[1]}; the times do not compare")


def run_side(python: str, module: str, job: dict[str, Any]) -> Measured:
    """Run `module` on the job in a process of its own, and return what it measured of each step.

    Raises:
        RuntimeError: if it failed, with the end of what it said.
    """
    threads = {name: str(job["threads"]) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    environment = os.environ | threads | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-m", module], input=json.dumps(job), capture_output=True, text=True, cwd=ROOT, env=environment
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{module} ended with status {done.returncode}: {done.stderr[-2000:]}")
    measured: Measured = json.loads(lines[-1].removeprefix(MARK))
    return measured


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--model", type=Path, default=TINY_MATH, help="folder of the model; tiny-math unless given")
    parser.add_argument("--batch", type=int, default=128, help="completions per step")
    parser.add_argument("--micro-batch", type=int, default=128, help="completions per forward and backward pass")
    parser.add_argument("--tokens", type=int, default=48, help="length of every completion")
    parser.add_argument("--steps", type=int, default=6, help="steps per process; the first is not counted")
    parser.add_argument("--repetitions", type=int, default=3, help="alternations of the two")
    given = parser.parse_args()
    job = make_job(
        given.model, batch=given.batch, micro_batch=given.micro_batch, tokens=given.tokens, steps=given.steps
    )
    entries = measure(job, repetitions=given.repetitions)
    if given.json:
        print(json.dumps([entry.document() for entry in entries], indent=1))
    else:
        print_table(entries)


if __name__ == "__main__":
    main()
