"""What a run's process finds in its environment."""

import os
from collections.abc import Mapping
from pathlib import Path

import engine
from engine.jobs.folders import RUNS_VARIABLE
from engine.jobs.process import ATTEMPT_VARIABLE
from engine.jobs.resources import VISIBLE_GPUS

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
    package_root = str(Path(engine.__file__).parents[1])
    inherited_path = inherited.get("PYTHONPATH")
    variables = {
        ATTEMPT_VARIABLE: str(attempt_id),
        DATABASE_VARIABLE: database_url,
        RUNS_VARIABLE: str(runs),
        "PYTHONPATH": os.pathsep.join([package_root, inherited_path] if inherited_path else [package_root]),
        "PYTHONUNBUFFERED": "1",  # the log is read while it is written
        "PYTHONFAULTHANDLER": "1",  # a crash in native code leaves its Python stack in the log
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        # Threads that wait shall sleep, not spin: where other programs want the cores too, spinning made steps of
        # the embedded model 5 to 10 times slower (two threads on two busy cores).
        "OMP_WAIT_POLICY": inherited.get("OMP_WAIT_POLICY", "PASSIVE"),
        "TOKENIZERS_PARALLELISM": "false",
    }
    return variables if gpu is None else {**variables, VISIBLE_GPUS: gpu}
