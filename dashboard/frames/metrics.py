"""Metrics as a tidy frame: one row per run, name and step."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from engine.store.records import MetricTable

KEYS = ["run_id", "name", "step"]


def empty() -> pd.DataFrame:
    """Return a frame with the columns run_id, name, step, value and no rows."""
    columns = {"run_id": "str", "name": "str", "step": "int64", "value": "float64"}
    return pd.DataFrame({column: pd.Series([], dtype=kind) for column, kind in columns.items()})


def tidy(table: MetricTable) -> pd.DataFrame:
    """Return the rows of a table as they are; NaN and infinities stay."""
    if not len(table):
        return empty()
    columns = {"run_id": table.run_ids, "name": table.names, "step": table.steps, "value": table.values}
    return pd.DataFrame(columns).astype({"run_id": "str", "name": "str"})


def merged(frame: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Return `frame` with the rows of `new` laid over it, and whether anything changed.

    `frame` itself comes back where `new` holds nothing that it lacks.
    """
    if not len(new):
        return frame, False
    if not len(frame):
        return new, True
    recent = frame["step"] >= new["step"].min()
    tail = frame[recent]
    known = new.merge(tail, on=KEYS, how="left", suffixes=("", "_known"), indicator=True)
    same = (known["_merge"] == "both") & np.array(
        np.equal(known["value"], known["value_known"]) | (known["value"].isna() & known["value_known"].isna())
    )
    if same.all():
        return frame, False
    renewed = pd.concat([tail, new]).drop_duplicates(KEYS, keep="last")
    return pd.concat([frame[~recent], renewed], ignore_index=True), True


def without(frame: pd.DataFrame, run_ids: Collection[str]) -> pd.DataFrame:
    """Return the rows of other runs."""
    return frame[~frame["run_id"].isin(run_ids)] if run_ids else frame


def last_steps(frame: pd.DataFrame) -> dict[str, int]:
    """Return the last step that each run has a row of."""
    return {str(run_id): int(step) for run_id, step in frame.groupby("run_id")["step"].max().items()}


def last_values(frame: pd.DataFrame) -> Mapping[tuple[str, str], float]:
    """Return the value of each run's metric at the last step at which it was logged, under (run_id, name)."""
    last = frame.sort_values("step").drop_duplicates(["run_id", "name"], keep="last")
    return {
        (str(run_id), str(name)): float(value)
        for run_id, name, value in zip(last["run_id"], last["name"], last["value"], strict=True)
    }
