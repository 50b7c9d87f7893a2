"""Reading curves."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, String, bindparam, func, select

from engine.store import schema
from engine.store.database import Database
from engine.store.numbers import join_number
from engine.store.records import MetricTable

_Number = TypeVar("_Number", np.int64, np.float64)

_metric = schema.metric
_RUN = bindparam("run", type_=String)

_POINTS = (
    select(_metric.c.step, _metric.c.value, _metric.c.kind)
    .where(_metric.c.run_id == _RUN, _metric.c.name == bindparam("name"), _metric.c.step > bindparam("cursor"))
    .order_by(_metric.c.step)
)

# The names of a run by leaping from each to the next in the key: 40 look-ups, where DISTINCT would read
# every point (two million for 50,000 steps).
_first = select(func.min(_metric.c.name).label("name")).where(_metric.c.run_id == _RUN).cte("leap", recursive=True)
_next = (
    select(func.min(_metric.c.name))
    .where(_metric.c.run_id == _RUN, _metric.c.name > _first.c.name)
    .correlate(_first)
    .scalar_subquery()
)
_leap = _first.union_all(select(_next).where(_first.c.name.is_not(None)))
_NAMES = select(_leap.c.name).where(_leap.c.name.is_not(None)).order_by(_leap.c.name)

_point = _metric.alias("point")
_latest_step = (
    select(func.max(_metric.c.step))
    .where(_metric.c.run_id == _RUN, _metric.c.name == _leap.c.name)
    .correlate(_leap)
    .scalar_subquery()
)
_LATEST = (
    select(_point.c.name, _point.c.value, _point.c.kind)
    .join_from(_leap, _point, (_point.c.run_id == _RUN) & (_point.c.name == _leap.c.name))
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
                values.append(_numbers(value_column, kinds))
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


def _numbers(values: Sequence[float | None], kinds: Sequence[str]) -> NDArray[np.float64]:
    numbers = np.array(values, np.float64)  # None becomes NaN
    for position in np.flatnonzero(np.isnan(numbers)).tolist():
        numbers[position] = join_number(None, kinds[position])
    return numbers


def _join(parts: list[NDArray[_Number]], kind: type[_Number]) -> NDArray[_Number]:
    return np.concatenate(parts) if parts else np.empty(0, kind)
