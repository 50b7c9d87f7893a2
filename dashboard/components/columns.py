"""The columns of the data in the form, to choose questions, answers, ids and splits from."""

from dashboard.components.draft import Draft
from dashboard.data.local_data import LocalData, local_data
from engine.config.task_fields import OF_DATA


def data_of(draft: Draft) -> LocalData | None:
    """Return what can be seen of the data in the form; None where no path is given, or the task reads none."""
    path = str(draft.entries["task.path"] or "")
    return local_data(path) if path and draft.entries["task.name"] in OF_DATA else None


def column_options(draft: Draft) -> dict[str, str]:
    """Return the columns that a field may name, and "", each with its first value; empty where they are not known."""
    data = data_of(draft)
    if data is None or data.head is None:
        return {}
    return {"": "", **data.head.columns}
