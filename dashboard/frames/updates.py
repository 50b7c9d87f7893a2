"""Metrics of single optimizer steps as a tidy frame that figures of steps can draw."""

import pandas as pd

from dashboard.frames.metrics import empty
from engine.store.records import UpdateTable


def tidy_updates(table: UpdateTable, run_id: str) -> pd.DataFrame:
    """Return one row per name and optimizer step, with columns as `tidy` has them.

    `step` is where the optimizer step ends: the second of four in step 3 at 2.5, the last of them at 3.
    """
    if not len(table):
        return empty().astype({"step": "float64"})
    rows = pd.DataFrame({"name": table.names, "step": table.steps, "update": table.updates, "value": table.values})
    count = rows.groupby("step")["update"].transform("max")
    place = rows["step"] - 1 + rows["update"] / count
    return pd.DataFrame({"run_id": run_id, "name": rows["name"], "step": place, "value": rows["value"]}).astype(
        {"run_id": "str", "name": "str", "step": "float64"}
    )
