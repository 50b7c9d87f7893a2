"""Groups: the completions of one prompt, what each earned and why."""

import streamlit as st

from dashboard.components.completions import draw_group
from dashboard.components.group_list import pick_group, pick_step
from dashboard.components.navigation import asked_number, open_run
from dashboard.components.plot import plot_library
from dashboard.components.run_picker import pick_run
from dashboard.data import store
from engine.store.reads import completions, metrics, steps_with_groups
from engine.store.records import Run
from engine.store.status import LIVE

db = store()


def nothing_yet(run: Run) -> None:
    if run.config.get("logging", {}).get("completions") is False:
        st.info("This run was launched with logging.completions=false, so no group is stored.")
    elif run.config.get("grpo", {}).get("steps") == 0:
        st.info("This run is SFT alone: it learns from demonstrations and samples no groups.")
    elif run.status in LIVE or run.status == "queued":
        st.info("No groups yet: they appear with the first step of GRPO.")
        st.fragment(lambda: st.rerun() if steps_with_groups(db, run.run_id) else None, run_every="2s")()
    else:
        st.info("This run ended before its first step of GRPO, so it has no groups.")


def batch_std(run: Run, step: int) -> float | None:
    table = metrics(db, [run.run_id], ["reward_std/batch"], after_step=step - 1)
    return float(table.values[0]) if len(table) and table.steps[0] == step else None


def page(run: Run) -> None:
    steps = steps_with_groups(db, run.run_id)
    if not steps:
        nothing_yet(run)
        return
    step = pick_step(db, run, steps, asked_number("step"))
    group = pick_group(db, run, step, asked_number("group"))
    if group is not None:
        draw_group(group, completions(db, group.group_id), run.config, batch_std=batch_std(run, step))


plot_library()
st.title("Groups")
chosen = pick_run(db)
if chosen is not None:
    if st.button("To the charts of this run", icon=":material/show_chart:", type="tertiary"):
        open_run(chosen.run_id)
    page(chosen)
