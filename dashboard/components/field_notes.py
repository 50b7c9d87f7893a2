"""What is said under a field besides its problems: nothing of it forbids a launch."""

import streamlit as st

from dashboard.components.columns import data_of
from dashboard.components.draft import Draft
from dashboard.components.markdown import escape_markdown
from engine.config import Field
from engine.tasks.datasets import COLUMNS

# The columns' fields, and what the task reads where they are empty.
_OWN = {"question_column": "question", "answer_column": "answer", "id_column": "entry_id"}


def field_notes(field: Field, draft: Draft) -> None:
    """Draw what there is to say of what was entered."""
    if field.path == "task.path":
        _path_note(draft)
    elif field.section == "task" and field.key in _OWN:
        _own_column_note(field, draft)
    elif field.path == "prompt.text":
        st.caption("`{question}` stands once where the question goes; all else reaches the model as it is typed.")


def _path_note(draft: Draft) -> None:
    data = data_of(draft)
    if data is None:
        return
    if data.trouble:
        # The run may find it all the same, on the machine of its worker.
        st.markdown(f":small[:orange[:material/warning: On this machine: {escape_markdown(data.trouble)}]]")
    elif data.head is None:
        path = escape_markdown(str(draft.entries["task.path"]))
        st.caption(f"No file of that name here: taken for the dataset {path} of the hub.")
    else:
        st.caption(f":material/check: {escape_markdown(data.head.file.name)}: {len(data.head.columns)} columns")


def _own_column_note(field: Field, draft: Draft) -> None:
    """Say which column an empty field stands for, or that the data has none of that name."""
    data = data_of(draft)
    if data is None or data.head is None or draft.entries[field.path]:
        return
    own: tuple[str, ...] = getattr(COLUMNS[str(draft.entries["task.name"])], _OWN[field.key])
    there = next((name for name in own if name in data.head.columns), None)
    if there:
        st.caption(f"Reads `{there}`")
    elif field.key != "id_column":
        st.markdown(f":small[:orange[:material/warning: The data has no column {' or '.join(own)}; choose one.]]")
