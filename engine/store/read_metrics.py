"""Reading curves."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, func, select

from engine.store import schema
from engine.store.database import Database
from engine.store.name_leap import RUN, leap, names_in
from engine.store.numbers import join_number, join_numbers
from engine.store.records import MetricTable

_Number = TypeVar("_Number", np.int64, np.float64)

_metric = schema.metric

_POINTS = (
    select(_metric.c.step, _metric.c.value, _metric.c.kind)
    .where(_metric.c.run_id == RUN, _metric.c.name == bindparam("name"), _metric.c.step > bindparam("cursor"))
    .order_by(_metric.c.step)
)

_leap = leap(_metric)
_NAMES = names_in(_leap)

_point = _metric.alias("point")
_latest_step = (
    select(func.max(_metric.c.step))
    .where(_metric.c.run_id == RUN, _metric.c.name == _leap.c.name)
    .correlate(_leap)
    .scalar_subquery()
)
_LATEST = (
    select(_point.c.name, _point.c.value, _point.c.kind)
    .join_from(_leap, _point, (_point.c.run_id == RUN) & (_point.c.name == _leap.c.name))
    .where(_point.c.step == _latest_step)
    .order_by(_point.c.name)
)


def metrics(
    db: Database,
    run_ids: Sequence[str],
    names: Sequence[str] | None,
    after_step: Mapping[str, int] | int = -1,
) -> MetricTable:
    """Return the points of these runs and names (None: all) with a step above `after_step`, as columns.

    `after_step` is one cursor for all runs or one per run (a run without one is read from the start).
    """
    run_column: list[str] = []
    name_column: list[str] = []
    steps: list[NDArray[np.int64]] = []
    values: list[NDArray[np.float64]] = []
    with db.read() as connection:
        for run_id in run_ids:
            cursor = after_step if isinstance(after_step, int) else after_step.get(run_id, -1)
            # A name at a time, so that each read is one stretch of the key (run, name, step) from the cursor on.
            for name in _names(connection, run_id) if names is None else names:
                points = connection.execute(_POINTS, {"run": run_id, "name": name, "cursor": cursor}).all()
                if not points:
                    continue
                step_column, value_column, kinds = zip(*points, strict=True)
                run_column += [run_id] * len(points)
                name_column += [name] * len(points)
                steps.append(np.array(step_column, np.int64))
                values.append(join_numbers(value_column, kinds))
    return MetricTable(run_column, name_column, _join(steps, np.int64), _join(values, np.float64))


def metric_names(db: Database, run_ids: Sequence[str]) -> list[str]:
    """Return the names of all metrics that any of these runs has logged, sorted."""
    with db.read() as connection:
        return sorted({name for run_id in run_ids for name in _names(connection, run_id)})


def last_metrics(db: Database, run_id: str) -> dict[str, float]:
    """Return the value at the highest step of each metric of a run, by name."""
    with db.read() as connection:
        rows = connection.execute(_LATEST, {"run": run_id})
        return {name: join_number(value, kind) for name, value, kind in rows}


def _names(connection: Connection, run_id: str) -> list[str]:
    return list(connection.execute(_NAMES, {"run": run_id}).scalars())


def _join(parts: list[NDArray[_Number]], kind: type[_Number]) -> NDArray[_Number]:
    return np.concatenate(parts) if parts else np.empty(0, kind)
