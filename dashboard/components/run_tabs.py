"""The tabs of a run's page beside its charts."""

from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st
import yaml

from dashboard.components.charts import Chart, draw_charts
from dashboard.components.follow import Followed
from dashboard.components.markdown import escape_markdown
from dashboard.components.navigation import open_new_run
from dashboard.components.status import status_text
from dashboard.figures.lines import heading, metric_figure
from dashboard.frames.text import visible
from engine.config import RunConfig, diff, to_yaml
from engine.errors import ConfigError
from engine.presets import load_preset
from engine.store.database import Database
from engine.store.reads import attempts, checkpoints, events
from engine.store.records import Attempt, Run

LOG_BYTES = 64 * 1024
LOG_LINES = 500
FIRST_PICKS = ("reward", "entropy", "sampling/sampling_logp_difference/mean", "learning_rate")


def every_metric(followed: Followed, scope: str) -> int | None:
    """Draw any metrics that the run has logged; return the step that was just clicked, or None."""
    names = sorted(set(followed.frame["name"]))
    if not names:
        st.info("Nothing is logged yet; metrics appear with the first step.")
        return None
    key = "metrics_picked"
    kept = st.session_state.get(key, FIRST_PICKS)
    st.session_state[key] = [name for name in kept if name in names]
    picked = st.multiselect(
        "Metrics", names, key=key, format_func=lambda name: f"{heading(name)} · {name}", persist_state="session"
    )
    charts = [Chart(name, heading(name), (name,), partial(metric_figure, names=[name])) for name in picked]
    return draw_charts(charts, followed, f"{scope}_every", None)


def log_tab(db: Database, run: Run) -> None:
    """Draw the end of the log of one attempt."""
    all_attempts = attempts(db, run.run_id)
    if not all_attempts:
        st.info("There is no log before a worker has taken the run.")
        return
    attempt = all_attempts[-1]
    if len(all_attempts) > 1:
        numbers = [each.number for each in all_attempts]
        key = f"log_attempt:{run.run_id}:{len(numbers)}"
        chosen = st.selectbox("Attempt", numbers, index=len(numbers) - 1, key=key)
        attempt = next(each for each in all_attempts if each.number == chosen)
    _log(attempt)


def tail(path: Path, most_bytes: int = LOG_BYTES, most_lines: int = LOG_LINES) -> tuple[str, bool]:
    """Return the end of a text file, and whether something before it was left out.

    Raises:
        OSError: if the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most_bytes))
        data = file.read()
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.splitlines()
    cut = size > len(data)
    if cut and len(lines) > 1:
        lines = lines[1:]
    return "\n".join(lines[-most_lines:]), cut or len(lines) > most_lines


def _log(attempt: Attempt) -> None:
    where = f"{attempt.log_path} on {attempt.host}"
    try:
        text, cut = tail(Path(attempt.log_path or ""))
    except OSError:
        st.info("The log cannot be read from here. It was written to:")
        st.code(visible(where), language=None, wrap_lines=True)
        return
    st.caption("The last lines of this file:" if cut else "This whole file:")
    st.code(visible(where), language=None, wrap_lines=True)
    st.code(visible(text) or "(empty so far)", language=None, wrap_lines=True, height=520)


def config_tab(run: Run) -> None:
    """Draw the whole config, and what sets it apart from its preset."""
    try:
        config = run.run_config()
        text = to_yaml(config)
    except ConfigError as error:
        st.warning(f"This config is of another version: {escape_markdown(str(error))}")
        config, text = None, yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True)
    if run.parent_run_id:
        st.caption(f"Forked from run {escape_markdown(run.parent_run_id)} at step {run.parent_step}.")
    if config and run.preset:
        _differences(config, run.preset)
    st.code(text, language="yaml")


def _differences(config: RunConfig, preset: str) -> None:
    try:
        changes = diff(load_preset(preset).config, config)
    except ConfigError:
        st.caption(f"The preset {escape_markdown(preset)} is not installed here, so there is nothing to compare with.")
        return
    if not changes:
        st.caption(f"Exactly the preset {escape_markdown(preset)}.")
        return
    st.caption(f"What differs from the preset {escape_markdown(preset)}:")
    rows = [(path, _shown(old), _shown(new)) for path, (old, new) in changes.items()]
    st.dataframe(pd.DataFrame(rows, columns=["field", "preset", "this run"]), hide_index=True, width="content")


def _shown(value: object) -> str:
    return "(empty)" if value is None else str(value)


def checkpoints_tab(db: Database, run: Run) -> None:
    """Draw the checkpoints; one can be forked from, the last is what Resume goes on from."""
    found = checkpoints(db, run.run_id)
    if not found:
        st.info(no_checkpoint(run))
        return
    rows = [
        {
            "step": each.step,
            "accuracy": None if each.accuracy is None else 100 * each.accuracy,
            "best": "★ best" if each.is_best else "",
            "written": each.created_at,
            "path": each.path,
        }
        for each in found
    ]
    event = st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key=f"checkpoints:{run.run_id}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "step": st.column_config.NumberColumn("Step", help="The state after this many steps"),
            "accuracy": st.column_config.NumberColumn(
                "Accuracy", format="%.1f %%", help="Held-out accuracy (sampled) at this step, where it was measured"
            ),
            "best": st.column_config.TextColumn("", help="Best held-out accuracy of the run; always kept"),
            "written": st.column_config.DatetimeColumn("Written", format="YYYY-MM-DD HH:mm:ss", help="UTC"),
            "path": st.column_config.TextColumn("Folder", help="Safetensors weights, optimizer and random state"),
        },
    )
    picked = [found[row].step for row in event["selection"]["rows"] if row < len(found)]
    step = picked[0] if picked else found[-1].step
    with st.container(horizontal=True, gap="small"):
        if st.button(f"Fork from step {step}", icon=":material/fork_right:", help="Tick another row for another step"):
            open_new_run(fork=run.run_id, step=step)
        purpose = "Fills the form for a run that trains nothing: choose samples, split, task and prompt there"
        if st.button(f"Evaluate step {step}", icon=":material/fact_check:", help=purpose):
            open_new_run(evaluate=run.run_id, step=step)
    if run.status in ("failed", "stopped", "lost"):
        st.caption(f"Resume (above) goes on from step {found[-1].step}, with step {found[-1].step + 1}.")


def no_checkpoint(run: Run) -> str:
    """Say why a run has no checkpoint."""
    if run.total_steps == 0:
        return "A run without steps changes no weights, so it writes no checkpoint."
    every = run.config.get("checkpoints", {}).get("every", "?")
    return f"No checkpoint yet; this run writes one every {every} steps and one at its last step."


def events_tab(db: Database, run: Run) -> None:
    """Draw what happened to the run, newest first."""
    found = events(db, run.run_id)
    if not found:
        st.info(f"Nothing has happened yet: the run is {status_text(run.status)}.")
        return
    marks = {"info": "· info", "warning": "▲ warning", "error": "✕ error"}
    rows = [(each.at, marks[each.level], each.step, each.kind, visible(each.message)) for each in reversed(found)]
    st.dataframe(
        pd.DataFrame(rows, columns=["time", "level", "step", "kind", "message"]).astype({"step": "Int64"}),
        hide_index=True,
        placeholder="",
        column_config={
            "time": st.column_config.DatetimeColumn("Time", format="YYYY-MM-DD HH:mm:ss", help="UTC", width=150),
            "level": st.column_config.TextColumn("Level", width=85),
            "step": st.column_config.NumberColumn("Step", width=60, help="Empty where it belongs to no step"),
            "kind": st.column_config.TextColumn("Kind", width=110),
            "message": st.column_config.TextColumn("Message", width="large"),
        },
    )
