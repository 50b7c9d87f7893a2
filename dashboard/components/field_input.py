"""The input of one field: a select where the possible values are known, else a line of text."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.components.columns import column_options
from dashboard.components.draft import Draft
from dashboard.components.markdown import escape_markdown
from dashboard.data.generators import generators
from dashboard.frames.text import preview, visible
from engine.config import Field
from engine.config.prompt_forms import PROMPT_FORMS, TASK_REWARDS
from engine.rewards.choice import reward_names

KEY = "new_run:"
Keep = Callable[[str, str], None]

PLACEBO_WORDS = {"none": "real", "random": "random", "always_one": "always 1", "format_only": "format only"}


def field_input(field: Field, draft: Draft, *, label: str, hint: str, keep: Keep) -> None:
    """Draw the input; `keep` is called with the field's path and the widget's key when something was entered."""
    options = _options(field, draft)
    entry = str(draft.entries[field.path])
    labels = {option: _named(option, options, field, draft) for option in ({**options, entry: ""} if options else {})}
    key = KEY + field.path + (f":select:{_digest(labels)}" if options else "")
    if key not in st.session_state:
        st.session_state[key] = draft.entries[field.path]
    common: dict[str, Any] = {"key": key, "help": hint, "on_change": keep, "args": (field.path, key)}
    if options:
        more = options.get(entry, "")
        if more:
            common["help"] = f"{hint} In the first row: {escape_markdown(preview(more, 200))}"
        st.selectbox(label, list(labels), format_func=labels.__getitem__, **common)
    elif field.path == "reward.placebo":
        st.segmented_control(label, field.choices, required=True, format_func=PLACEBO_WORDS.__getitem__, **common)
    elif field.path == "prompt.text":
        st.text_area(label, placeholder="Question: {question}\nAnswer:", height=160, **common)
    elif field.kind == "bool":
        st.selectbox(label, (True, False), format_func=lambda on: "on" if on else "off", **common)
    elif field.kind == "choice":
        st.selectbox(label, field.choices, **common)
    elif field.kind == "choices":
        st.multiselect(label, field.choices, **common)
    else:
        placeholder = "empty" if field.optional else None
        st.text_input(label, placeholder=placeholder, live="400ms", autocomplete="off", **common)


def _options(field: Field, draft: Draft) -> dict[str, str]:
    """The values that a field of text may have, each with an example where there is one; empty where they are open."""
    if field.section == "task" and field.key.endswith("_column"):
        return column_options(draft)
    if field.path == "task.generator" and draft.entries["task.name"] == "reasoning_gym":
        names = generators()
        return dict.fromkeys(("", *names), "") if names else {}
    if field.path == "prompt.reward":
        return dict.fromkeys(("", *reward_names()), "")
    return {}


def _named(option: str, options: dict[str, str], field: Field, draft: Draft) -> str:
    if option == "":
        own = _own_reward(draft) if field.path == "prompt.reward" else None
        return f"the prompt's ({own})" if own else "empty"
    if option not in options:
        return f"{visible(option)} (not there)"
    return f"{visible(option)} · {preview(options[option], 30)}" if options[option] else visible(option)


def _digest(labels: dict[str, str]) -> str:
    """A part of the key that changes with the labels: the browser sends labels, and an old one would be no option."""
    return hashlib.sha256(json.dumps(labels).encode()).hexdigest()[:8]


def _own_reward(draft: Draft) -> str | None:
    form = PROMPT_FORMS.get(str(draft.entries["prompt.name"]))
    return TASK_REWARDS.get(str(draft.entries["task.name"]), form.reward if form else None)
