"""What a run's process finds in its environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from engine.jobs.folders import RUNS_VARIABLE
from engine.jobs.process import ATTEMPT_VARIABLE
from engine.jobs.resources import VISIBLE_GPUS
from engine.places import python_path

DATABASE_VARIABLE = "GRPO_LAB_DATABASE_URL"


def child_environment(
    *,
    attempt_id: int,
    database_url: str,
    runs: Path,
    threads: int,
    gpu: str | None,
    inherited: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return the variables that a run's process gets besides the inherited ones.

    `gpu` is the index of its GPU, "" for none, None to leave the choice to what is inherited.
    """
    variables = {
        ATTEMPT_VARIABLE: str(attempt_id),
        DATABASE_VARIABLE: database_url,
        RUNS_VARIABLE: str(runs),
        "PYTHONPATH": python_path(inherited),
        "PYTHONUNBUFFERED": "1",  # the log is read while it is written
        "PYTHONFAULTHANDLER": "1",  # a crash in native code leaves its Python stack in the log
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        # A thread that waits spins for a moment and then sleeps. Seconds a step of the quick start, two threads on two
        # cores, idle and beside one busy program: asleep at once 1.35 and 1.34, this 0.94 and 1.79, 10,000 turns 0.87
        # and 2.38; endless spinning on two busy cores was 5 to 10 times slower.
        "OMP_WAIT_POLICY": inherited.get("OMP_WAIT_POLICY", "PASSIVE"),
        "GOMP_SPINCOUNT": inherited.get("GOMP_SPINCOUNT", "3000"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    return variables if gpu is None else {**variables, VISIBLE_GPUS: gpu}
