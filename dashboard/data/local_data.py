"""What can be seen of the data that `task.path` names, from this machine and at once."""

from dataclasses import dataclass

import streamlit as st

from engine.errors import TaskError
from engine.tasks.head import DataHead, data_head
from engine.tasks.rows import local_files

FileStates = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class LocalData:
    """The head of the data; without one, `trouble` says why, and neither means that it can only be on the hub."""

    head: DataHead | None = None
    trouble: str = ""


def local_data(path: str) -> LocalData:
    """Return what can be seen of the data at `path`; read again only when its files have changed. Raises nothing."""
    return _look(path, file_states(path))


def file_states(path: str) -> FileStates:
    """Return name, size and time of change of each local file that `path` stands for; empty where there is none."""
    try:
        found = local_files(path) or {}
        states = [(str(file), file.stat()) for files in found.values() for file in files]
    except (TaskError, OSError):
        return ()
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


@st.cache_data(show_spinner=False, max_entries=32)
def _look(path: str, states: FileStates) -> LocalData:  # noqa: ARG001, it is part of the key
    try:
        return LocalData(head=data_head(path))
    except TaskError as error:
        return LocalData(trouble=str(error))
