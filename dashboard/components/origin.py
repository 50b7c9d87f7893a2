"""Where a new run starts from: a preset, or a run to fork; with its name and the number of seeds."""

from dataclasses import replace
from typing import Literal

import streamlit as st

from dashboard.components.draft import MOST_SEEDS, Draft, draft_from_preset, draft_from_run, draft_to_evaluate
from dashboard.components.form import current_draft, keep_draft, problem_lines, put_draft
from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import asked_number
from engine.errors import ConfigError
from engine.presets import load_preset, preset_names
from engine.store.database import Database
from engine.store.reads import checkpoints, get_run

_KEY = "new_run:"
_SEEN = "new_run_address"
_NOTHING = (None, None, None, None)
_BUTTONS = {"Fork": "Fork", "Evaluate": "Evaluate in its tab Checkpoints"}


def follow_address(db: Database) -> None:
    """Fill the form as the address says (`?fork=RUN&step=K`, `?evaluate=RUN&step=K`, `?preset=NAME`), once each."""
    given = st.query_params
    asked = given.get("fork"), asked_number("step"), given.get("preset"), given.get("evaluate")
    if asked == st.session_state.get(_SEEN, _NOTHING):
        return
    st.session_state[_SEEN] = asked
    fork, step, preset, evaluated = asked
    if fork is not None:
        _from_checkpoint(db, fork, step, "Fork")
    elif evaluated is not None:
        _from_checkpoint(db, evaluated, step, "Evaluate")
    elif preset in preset_names():
        put_draft(draft_from_preset(preset))


def origin() -> None:
    """Draw what the form was filled from, the name and the number of seeds."""
    draft = current_draft()
    if draft.parent or draft.evaluates:
        _parent_line(draft)
    else:
        _preset_input(draft)
    name, seeds = st.columns([3, 1])
    with name:
        _text("Name", "name", draft.name, "How the run is listed. Names may repeat; the id tells runs apart.")
        problem_lines(draft.checked.at("name"))
    with seeds:
        hint = f"Runs that differ in the seed alone, counting up from the seed below. 1 to {MOST_SEEDS} runs."
        _text("Seeds", "seeds", draft.seeds, hint)
        problem_lines(draft.checked.at("seeds"))


def _from_checkpoint(db: Database, run_id: str, step: int | None, purpose: Literal["Fork", "Evaluate"]) -> None:
    run = get_run(db, run_id)
    steps = {checkpoint.step for checkpoint in checkpoints(db, run_id)} if run else set()
    if run is None:
        st.warning(
            f"No run has the id {escape_markdown(run_id)}; choose one on the page Runs and press {_BUTTONS[purpose]}."
        )
    elif not steps:
        st.warning(f"{escape_markdown(run.name)} has no checkpoint to go on from; wait for its first one.")
    else:
        if step not in steps:
            step = max(steps)
        try:
            if purpose == "Fork":
                put_draft(draft_from_run(run.run_config(), run.run_id, step, run.name, run.preset))
            else:
                put_draft(draft_to_evaluate(run.run_config(), run.run_id, step, run.name))
        except ConfigError as error:
            st.warning(
                f"The config of {escape_markdown(run.name)} is of another version: {escape_markdown(str(error))}"
            )


def _parent_line(draft: Draft) -> None:
    source = draft.parent or draft.evaluates
    assert source
    (run_id, step), name = source, f"**{escape_markdown(draft.parent_name)}**"
    if draft.parent:
        st.info(f"Fork of {name} ({run_id}): goes on from its checkpoint at step {step}.")
    else:
        st.info(f"Evaluates {name} ({run_id}) at its checkpoint of step {step}, and trains nothing.")
    st.button("Start from a preset instead", on_click=_leave_fork, type="tertiary")


def _leave_fork() -> None:
    put_draft(draft_from_preset("quick-start"))
    st.query_params.clear()
    st.session_state[_SEEN] = _NOTHING


def _preset_input(draft: Draft) -> None:
    key = f"{_KEY}preset"
    if key not in st.session_state:
        st.session_state[key] = draft.preset
    hint = "Where the form starts from. Choosing another one fills the form anew."
    st.selectbox("Preset", preset_names(), key=key, on_change=_take_preset, args=(key,), help=hint)
    st.caption(escape_markdown(load_preset(str(draft.preset)).sentence))


def _take_preset(key: str) -> None:
    chosen, draft = st.session_state[key], current_draft()
    fresh = draft_from_preset(chosen)
    put_draft(replace(fresh, seeds=draft.seeds, name=fresh.name if draft.name == draft.preset else draft.name))


def _text(label: str, name: str, value: str, hint: str) -> None:
    key = f"{_KEY}{name}"
    if key not in st.session_state:
        st.session_state[key] = value
    st.text_input(label, key=key, help=hint, live="400ms", autocomplete="off", on_change=_keep, args=(name, key))


def _keep(name: str, key: str) -> None:
    keep_draft(replace(current_draft(), **{name: st.session_state[key]}))
