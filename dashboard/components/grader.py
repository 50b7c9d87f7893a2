"""By which grader a run was judged, in words."""

import streamlit as st

from dashboard.components.markdown import escape_markdown
from engine.config.prompt_forms import reward_name
from engine.errors import ConfigError, RewardError
from engine.rewards.identity import headline_of, reward_identity, rule_of
from engine.store.database import Database
from engine.store.reads import events
from engine.store.records import Run


def own_reward(run: Run) -> str | None:
    """Return the name of the reward of a run, None where its config is of another version."""
    try:
        config = run.run_config()
    except ConfigError:
        return None
    return reward_name(config.prompt, config.task)


def grader_messages(db: Database, run: Run) -> list[str]:
    """Return what each attempt of a run said of its grader, first to last; those of older versions said nothing."""
    return [event.message for event in events(db, run.run_id) if event.kind == "grader"]


def grader_caption(db: Database, run: Run) -> None:
    """Say by what a run is graded: as its newest attempt announced it, else as its reward is installed here."""
    said = grader_messages(db, run)
    if said:
        st.caption(f"Graded by {escape_markdown(headline_of(said[-1]))}. {escape_markdown(rule_of(said[-1]))}")
        earlier = list(dict.fromkeys(headline_of(each) for each in said if headline_of(each) != headline_of(said[-1])))
        if earlier:
            st.caption(f":material/warning: Its earlier attempts were graded by {escape_markdown(', '.join(earlier))}.")
        return
    name = own_reward(run)
    if name is None:
        return
    try:
        rule = reward_identity(name).rule
    except RewardError as error:
        st.caption(f"Graded by {escape_markdown(name)}, which is not here: {escape_markdown(str(error))}")
        return
    st.caption(f"Graded by {escape_markdown(name)}. {escape_markdown(rule)}", help="The run does not say which version")
