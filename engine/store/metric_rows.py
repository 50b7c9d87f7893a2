"""The rows of a step's metrics: those of the step, and those of its single optimizer steps."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert

from engine.store import schema
from engine.store.name_leap import leap, names_in
from engine.store.numbers import split_number
from engine.store.rows import upsert

_UPDATE_NAMES = names_in(leap(schema.update_metric))


def store_metrics(connection: Connection, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
    """Store the metrics of one step; those of other names stay."""
    if not metrics:
        return
    rows = []
    for name, number in metrics.items():
        value, kind = split_number(float(number))
        rows.append({"run_id": run_id, "name": name, "step": step, "value": value, "kind": kind})
    connection.execute(upsert(connection, schema.metric), rows)


def store_updates(connection: Connection, run_id: str, step: int, updates: Sequence[Mapping[str, float]]) -> None:
    """Replace the metrics of the optimizer steps of one step, counted from 1."""
    table = schema.update_metric
    # By name, because the key has the name before the step: the step alone would be sought in the whole run.
    names = connection.execute(_UPDATE_NAMES, {"run": run_id}).scalars().all()
    if names:
        of_step = (table.c.run_id == run_id, table.c.name.in_(names), table.c.step == step)
        connection.execute(delete(table).where(*of_step))
    rows = []
    for update, metrics in enumerate(updates, start=1):
        for name, number in metrics.items():
            value, kind = split_number(float(number))
            rows.append({"run_id": run_id, "name": name, "step": step, "update": update, "value": value, "kind": kind})
    if rows:
        connection.execute(insert(table), rows)
