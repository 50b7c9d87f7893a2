from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from dashboard.frames.comparison import config_differences, final_table, labels
from dashboard.frames.metrics import empty
from engine.config import RunConfig
from engine.store.records import Run

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run(run_id: str = "aa", **changes: Any) -> Run:
    base = Run(
        run_id=run_id,
        ordinal=1,
        name="quick",
        status="running",
        config=RunConfig().model_dump(mode="json"),
        preset="quick-start",
        seed=0,
        arm="x",
        created_at=NOW,
        started_at=NOW - timedelta(seconds=60),
        ended_at=None,
        step=20,
        total_steps=100,
        seconds=0.0,
        parent_run_id=None,
        parent_step=None,
        archived=False,
        stop_requested=False,
        error=None,
        attempts=1,
        best_accuracy=None,
        last_accuracy=None,
        first_accuracy=0.2,
        best_step=None,
    )
    return replace(base, **changes)


def test_a_label_tells_equal_names_apart_and_marks_what_did_not_end_well() -> None:
    runs = [run("aa"), run("bb"), run("cc", name="slow", status="failed"), run("dd", name="long", status="stopped")]
    assert list(labels(runs).values()) == ["quick (aa)", "quick (bb)", "slow ✕ failed", "long ■ stopped"]


def test_the_final_table_leaves_empty_what_a_run_lacks() -> None:
    frame = pd.DataFrame({"run_id": "aa", "name": "reward", "step": [1, 2], "value": [0.25, 0.5]})
    row = final_table([run(seconds=90.0)], frame).iloc[0]
    assert (row["reward"], row["first"], row["minutes"], row["steps"]) == (0.5, 0.2, 1.5, 20)
    assert pd.isna(row["entropy"])
    assert pd.isna(row["best"])


def test_only_fields_that_differ_are_listed() -> None:
    other = RunConfig().model_copy(update={"seed": 3}).model_dump(mode="json")
    other["optimizer"]["learning_rate"] = 1e-5
    del other["logging"]
    table = config_differences([run("aa"), run("bb", config=other, name="low")])
    assert table.set_index("field")["low"].to_dict() == {
        "optimizer.learning_rate": "1e-05",
        "logging.completions": "(not in this run)",
        "logging.token_data": "(not in this run)",
        "logging.entropy_share": "(not in this run)",
        "seed": "3",
    }


def test_equal_configs_have_no_differences() -> None:
    assert len(config_differences([run("aa"), run("bb")])) == 0
    assert len(config_differences([])) == 0
    assert len(final_table([], empty())) == 0
