from pathlib import Path
from typing import Any

import engine
from engine.jobs.environment import child_environment

ROOT = str(Path(engine.__file__).parents[1])
GIVEN: dict[str, Any] = {"attempt_id": 7, "database_url": "sqlite:////x/runs.db", "runs": Path("/x/runs"), "threads": 2}


def test_a_run_finds_its_store_its_folder_and_its_share_of_the_cores() -> None:
    variables = child_environment(**GIVEN, gpu=None, inherited={})
    assert variables["GRPO_LAB_ATTEMPT"] == "7"
    assert variables["GRPO_LAB_DATABASE_URL"] == "sqlite:////x/runs.db"
    assert variables["GRPO_LAB_RUNS_DIR"] == "/x/runs"
    assert variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "2"
    assert variables["PYTHONPATH"] == ROOT
    assert "CUDA_VISIBLE_DEVICES" not in variables


def test_a_gpu_is_named_or_withheld() -> None:
    assert child_environment(**GIVEN, gpu="3")["CUDA_VISIBLE_DEVICES"] == "3"
    assert child_environment(**GIVEN, gpu="")["CUDA_VISIBLE_DEVICES"] == ""


def test_waiting_threads_sleep_unless_the_person_has_chosen() -> None:
    assert child_environment(**GIVEN, gpu=None, inherited={})["OMP_WAIT_POLICY"] == "PASSIVE"
    chosen = {"OMP_WAIT_POLICY": "ACTIVE", "PYTHONPATH": "/mine"}
    variables = child_environment(**GIVEN, gpu=None, inherited=chosen)
    assert (variables["OMP_WAIT_POLICY"], variables["PYTHONPATH"]) == ("ACTIVE", f"{ROOT}:/mine")
