"""The pages, and the addresses by which they refer to one another.

Every page can be reached by a link: `run?run=ID`, `groups?run=ID&step=K&group=G`, `compare?runs=A,B`,
`new_run?fork=ID&step=K`, `new_run?evaluate=ID&step=K`.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import streamlit as st

RUNS, NEW_RUN, RUN, GROUPS, COMPARE = (f"views/{name}.py" for name in ("runs", "new_run", "run", "groups", "compare"))

_GOAL = "page_asked_for"

_TITLES = {
    RUNS: ("Runs", ":material/list:"),
    NEW_RUN: ("New run", ":material/add:"),
    RUN: ("Run", ":material/show_chart:"),
    GROUPS: ("Groups", ":material/account_tree:"),
    COMPARE: ("Compare", ":material/stacked_line_chart:"),
}


def pages() -> list[st.Page]:
    """Return the pages in the order of the menu; Runs is the first and the default."""
    folder = Path(__file__).parent.parent
    return [
        st.Page(folder / path, title=title, icon=icon, default=path == RUNS) for path, (title, icon) in _TITLES.items()
    ]


def asked_run() -> str | None:
    """Return the run id in the address (`?run=`)."""
    return st.query_params.get("run") or None


def asked_runs() -> tuple[str, ...]:
    """Return the run ids in the address (`?runs=a,b`), each once, in their order."""
    listed = st.query_params.get("runs", "").split(",")
    return tuple(dict.fromkeys(run_id.strip() for run_id in listed if run_id.strip()))


def asked_number(name: str) -> int | None:
    """Return a whole number in the address (`?step=`, `?group=`); None where it is missing or none."""
    text = st.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def open_runs() -> NoReturn:
    """Go to the page Runs."""
    _ask_for(RUNS)


def open_run(run_id: str) -> NoReturn:
    """Go to the page of one run."""
    _ask_for(RUN, run=run_id)


def open_groups(run_id: str, step: int | None = None, group: int | None = None) -> NoReturn:
    """Go to the groups of one step of a run, or to one group of it."""
    _ask_for(GROUPS, run=run_id, step=step, group=group)


def open_compare(run_ids: Iterable[str]) -> NoReturn:
    """Go to the page on which runs lie over one another."""
    _ask_for(COMPARE, runs=",".join(run_ids))


def open_new_run(fork: str | None = None, step: int | None = None, *, evaluate: str | None = None) -> NoReturn:
    """Go to the form, filled from a run to fork or to evaluate if one is given."""
    _ask_for(NEW_RUN, fork=fork, evaluate=evaluate, step=step)


def follow() -> None:
    """Go where one of the functions above asked to go. The shell calls it before it runs a page."""
    page, parameters = st.session_state.pop(_GOAL, (None, {}))
    if page is not None:
        st.switch_page(page, query_params=parameters)


def _ask_for(page: str, **parameters: str | int | None) -> NoReturn:
    """Ask for a page and run the whole script, which goes there.

    Not at once: a switch out of a fragment races with the fragment's timer. A refresh that still names the old
    page and arrives after the switch leaves the new page blank. The whole script ends the timer first.
    """
    given = {name: str(value) for name, value in parameters.items() if value is not None}
    st.session_state[_GOAL] = (page, given)
    st.rerun()
