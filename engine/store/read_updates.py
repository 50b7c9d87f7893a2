"""Reading the metrics of single optimizer steps."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import bindparam, select

from engine.store import schema
from engine.store.database import Database
from engine.store.name_leap import RUN, leap, names_in
from engine.store.numbers import join_numbers
from engine.store.records import UpdateTable

_metric = schema.update_metric
_NAMES = names_in(leap(_metric))
_POINTS = (
    select(_metric.c.step, _metric.c["update"], _metric.c.value, _metric.c.kind)
    .where(_metric.c.run_id == RUN, _metric.c.name == bindparam("name"), _metric.c.step > bindparam("cursor"))
    .order_by(_metric.c.step, _metric.c["update"])
)


def update_metrics(db: Database, run_id: str, names: Sequence[str] | None, after_step: int = -1) -> UpdateTable:
    """Return the points of these names (None: all) in the optimizer steps of the steps above `after_step`."""
    name_column: list[str] = []
    steps: list[int] = []
    updates: list[int] = []
    values: list[float | None] = []
    kinds: list[str] = []
    with db.read() as connection:
        wanted = connection.execute(_NAMES, {"run": run_id}).scalars().all() if names is None else names
        for name in wanted:
            for step, update, value, kind in connection.execute(
                _POINTS, {"run": run_id, "name": name, "cursor": after_step}
            ):
                name_column.append(name)
                steps.append(step)
                updates.append(update)
                values.append(value)
                kinds.append(kind)
    return UpdateTable(name_column, np.array(steps, np.int64), np.array(updates, np.int64), join_numbers(values, kinds))
