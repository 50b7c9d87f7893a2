"""The two sides of a comparison with TRL: processes of their own, in turn, never both at once.

A side is a module that reads a job from standard input and prints what it measured of each step behind `MARK`, both
as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from benchmarks.entry import ROOT, say
from benchmarks.step_trl import MARK

Measured = list[dict[str, Any]]
Job = dict[str, Any]


class Side(NamedTuple):
    """A Python, the module that it runs, and the job that the module is given."""

    python: str
    module: str
    job: Job


def alternate(sides: Mapping[str, Side], repetitions: int) -> dict[str, list[Measured]]:
    """Return what each side measured in each of `repetitions` rounds, in which they follow one another.

    Raises:
        RuntimeError: if a side failed.
    """
    measured: dict[str, list[Measured]] = {name: [] for name in sides}
    for number in range(1, repetitions + 1):
        for name, side in sides.items():
            steps = run_side(*side)
            measured[name].append(steps)
            cpu = median(step["cpu_s"] for step in steps)
            say(f"{name}, {number} of {repetitions}: {cpu:.3g} CPU s/step, load {os.getloadavg()[0]:.1f}")
    return measured


def run_side(python: str, module: str, job: Job) -> Measured:
    """Run `module` on the job in a process of its own, and return what it measured of each step.

    Raises:
        RuntimeError: if it failed, with the end of what it said.
    """
    threads = {name: str(job["threads"]) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    # Packages that PYTHONPATH names are of this environment: another one gets none of them.
    inherited = [os.environ["PYTHONPATH"]] if python == sys.executable and os.environ.get("PYTHONPATH") else []
    environment = os.environ | threads | {"PYTHONPATH": os.pathsep.join([str(ROOT), *inherited]), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-m", module], input=json.dumps(job), capture_output=True, text=True, cwd=ROOT, env=environment
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{module} ended with status {done.returncode}: {done.stderr[-2000:]}")
    measured: Measured = json.loads(lines[-1].removeprefix(MARK))
    return measured


def check_prompts(ours: Measured, theirs: Measured) -> None:
    """Check that the steps of both had prompts of the same lengths.

    Raises:
        RuntimeError: if they did not.
    """
    prompts = [[step["prompt_tokens"] for step in side] for side in (ours, theirs)]
    if prompts[0] != prompts[1]:
        raise RuntimeError(f"prompt tokens per step differ: {prompts[0]} and {prompts[1]}; the times do not compare")
