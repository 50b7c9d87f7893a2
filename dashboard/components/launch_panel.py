"""Beside the form: what the run will be, the button that starts it, and how to start it elsewhere."""

from typing import Any

import pandas as pd
import streamlit as st

from dashboard.components.draft import Draft, command, differences, with_new_token
from dashboard.components.entry import number_text
from dashboard.components.form import keep_draft, problem_lines
from dashboard.components.launch import launch
from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import open_run
from dashboard.components.plan import expected_time, plan_lines
from dashboard.data.device import lacks_gpu
from dashboard.data.pace import pace_of_runs_like
from dashboard.data.workers import worker_alive
from engine.config import remarks, to_yaml
from engine.errors import GrpoLabError
from engine.extras import missing_extras
from engine.store.database import Database


def launch_panel(db: Database, draft: Draft) -> None:
    """Draw the panel; launching goes to the page of the first run."""
    config, n_seeds = draft.checked.config, draft.checked.n_seeds
    first_step = draft.parent[1] if draft.parent else 0
    with st.container(border=True, gap="small"):
        # The token is in the key: a second click on the same button finds it gone, and the store knows the token.
        verb = "Launch" if config is None or config.total_steps else "Evaluate"
        label = f"{verb} {n_seeds} {'runs' if verb == 'Launch' else 'times'}" if n_seeds > 1 else verb
        reason = f"{len(draft.checked.problems)} to correct first"
        pressed = st.button(
            label,
            key=f"launch:{draft.token}",
            type="primary",
            icon=":material/rocket_launch:",
            width="stretch",
            disabled=config is None,
            help=reason if config is None else "Queues it and shows its page",
        )
        if config is None:
            _problems(draft)
            return
        if pressed:
            _launch(db, draft)
        if not worker_alive(db):
            st.caption(":material/warning: No worker is running: the run will wait until one is (`make worker`).")
        st.markdown(expected_time(config, pace_of_runs_like(db, config), n_seeds, first_step))
        st.markdown("\n".join(f"- {line}" for line in plan_lines(config, first_step)))
        no_gpu = lacks_gpu(db, config)
        for lack in (*([no_gpu] if no_gpu else []), *missing_extras(config)):
            st.markdown(f":small[:orange[:material/warning: {lack}]]")
        for remark in remarks(config):
            st.caption(f":material/info: {escape_markdown(remark)}")


def _launch(db: Database, draft: Draft) -> None:
    try:
        run_ids = launch(db, draft)
    except GrpoLabError as error:
        # What only the store can tell: whether the checkpoint to begin with is there.
        problem_lines([str(error)])
        return
    keep_draft(with_new_token(draft))
    open_run(run_ids[0])


def ways_to_say_it(draft: Draft) -> None:
    """Draw what differs, the command and the YAML that start the same runs; nothing while there is no config."""
    if draft.checked.config is None:
        return
    changes, terminal, yaml = st.tabs(["Changes", "Command", "YAML"], key="new_run_tabs")
    with changes:
        _changes(draft)
    with terminal:
        st.code(command(draft), language="bash")
    with yaml:
        st.code(to_yaml(draft.checked.config), language="yaml", height=420)


def _problems(draft: Draft) -> None:
    st.markdown(f"**Cannot launch yet:** {len(draft.checked.problems)} to correct")
    problem_lines(problem.message for problem in draft.checked.problems)


def _changes(draft: Draft) -> None:
    changed = differences(draft)
    there = draft.source
    if not changed:
        st.caption(f"Nothing differs from {escape_markdown(there)}.")
        return
    rows = [(path, _shown(before), _shown(after)) for path, (before, after) in changed.items()]
    frame = pd.DataFrame(rows, columns=["Field", "There", "Yours"])
    st.dataframe(frame, hide_index=True, column_config={"There": st.column_config.TextColumn(there)}, key="changes")


def _shown(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    if isinstance(value, tuple):
        return ", ".join(str(each) for each in value)
    return "(empty)" if value is None else str(value)
