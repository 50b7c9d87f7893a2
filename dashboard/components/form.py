"""The form of a run, made from the fields of RunConfig, each with its problems right under it.

Entries live in the draft, which outlasts the widgets: Streamlit forgets a widget when its page is left.
"""

from collections.abc import Iterable

import streamlit as st

from dashboard.components.draft import Draft, draft_from_preset, field_at, with_entry
from dashboard.components.field_input import KEY, field_input
from dashboard.components.field_notes import field_notes
from dashboard.components.markdown import escape_markdown
from engine.config import Field, RunConfig, fields
from engine.config.task_fields import reads

DRAFT = "new_run_draft"

COMMON = (
    "optimizer.learning_rate",
    "grpo.steps",
    "rollout.rollout_batch_size",
    "rollout.group_size",
    "rollout.max_tokens",
    "rollout.temperature",
    "grpo.loss_type",
    "grpo.baseline",
    "grpo.scale",
    "grpo.aggregation",
    "prompt.name",
    "seed",
)
# In their place where the form was filled from a run without steps.
COMMON_OF_EVALUATION = (
    "evaluation.samples",
    "evaluation.size",
    "evaluation.split",
    "evaluation.temperature",
    "evaluation.greedy",
    "task.name",
    "prompt.name",
    "rollout.max_tokens",
    "seed",
)
# Common as well, on a line of its own.
REWARD = "reward.placebo"
# Text of several lines, which takes the whole width.
WIDE = ("prompt.text",)
LABELS = {
    "evaluation.samples": "Answers per problem",
    "evaluation.size": "Problems",
    "evaluation.split": "Split",
    "evaluation.greedy": "Greedy as well",
    "prompt.name": "Prompt",
    "model.name": "Model",
    "model.init_from": "Begin with",
    "task.name": "Task",
    "optimizer.name": "Optimizer",
    "optimizer.learning_rate": "Learning rate",
    "lora.rank": "Adapter rank",
    "sft.path": "File of demonstrations",
    "sft.steps": "SFT steps",
    "sft.learning_rate": "SFT learning rate",
    "sft.batch_size": "SFT batch size",
    "rollout.top_p": "Top-p",
    "rollout.top_k": "Top-k",
    "rollout.min_p": "Min-p",
    "rollout.dynamic_sampling_max_draws": "Most draws",
    "truncation.completions": "Cut completions",
    "prompt.text": "Text of the custom prompt",
    "prompt.reward": "Answer read by",
    "reward.placebo": "Reward",
    "reward.placebo_rate": "Rate of the random placebo",
    "kl.target": "Target KL",
    "kl.gain": "Controller gain",
    "kl.ema_decay": "EMA decay",
    "kl.measure": "Measure at beta 0",
    "entropy.target": "Target entropy",
    "entropy.change": "Change per step",
}
# Sections whose title is not just their name with a capital.
TITLES = {"grpo": "GRPO", "kl": "KL", "lora": "LoRA", "sft": "SFT", "vllm": "vLLM"}
# Where the section's own sentence is too long for one line.
FOLDS = {
    "lora": "low-rank adapters beside the weights (needs peft)",
    "task": "where the problems come from",
    "prompt": "how a question is put to the model, and what reads the answer",
    "reward": "what a completion earns: parts and their weights",
    "sft": "on demonstrations, before GRPO or in its place",
    "kl": "the pull towards a reference policy",
    "evaluation": "accuracy on held-out problems",
    "vllm": "how vLLM samples, where rollout.engine is vllm",
}


def current_draft() -> Draft:
    """Return what is in the form; the quick start where nothing was begun."""
    if DRAFT not in st.session_state:
        st.session_state[DRAFT] = draft_from_preset("quick-start")
    draft: Draft = st.session_state[DRAFT]
    return draft


def put_draft(draft: Draft) -> None:
    """Fill the form from `draft`. Call it before the form is drawn, or from a callback."""
    st.session_state[DRAFT] = draft
    for key in [key for key in st.session_state if str(key).startswith(KEY)]:
        del st.session_state[key]


def keep_draft(draft: Draft) -> None:
    """Store a draft that differs only where its widgets already show it."""
    st.session_state[DRAFT] = draft


def common_fields(draft: Draft) -> None:
    """Draw the fields that most runs change."""
    paths = common_paths(draft)
    _grid([field_at(path) for path in paths if path != REWARD], draft, "common")
    if REWARD in paths:
        _cell(field_at(REWARD), draft)


def common_paths(draft: Draft) -> tuple[str, ...]:
    """Return the fields that stand above the folds."""
    return (*COMMON, REWARD) if draft.trains else COMMON_OF_EVALUATION


def other_sections(draft: Draft) -> None:
    """Draw the remaining fields, one fold per section; a fold that hides a problem is marked."""
    sections: dict[str, list[Field]] = {}
    for field in fields():
        if field.path not in common_paths(draft):
            sections.setdefault(field.section, []).append(field)
    st.caption("More settings")
    with st.container(gap="xxsmall"):
        for section, members in sections.items():
            faulty = any(draft.checked.at(member.path) for member in members)
            with st.expander(
                f"{_title(section)}: {_about(section)}",
                key=f"fold_{section}",
                icon=":material/error:" if faulty else None,
                type="compact",
            ):
                of_use = [member for member in members if _is_of_use(member, draft)]
                _grid(of_use, draft, section)
                if section == "task":
                    _of_other_tasks([member for member in members if member not in of_use], draft)


def problem_lines(messages: Iterable[str]) -> None:
    """Draw what is wrong, in words besides the colour."""
    for message in messages:
        st.markdown(f":small[:red[:material/error: {escape_markdown(message)}]]")


def label_of(field: Field) -> str:
    """Return the words over a field."""
    return LABELS.get(field.path, field.key.replace("_", " ").capitalize())


def help_of(field: Field) -> str:
    """Return sentence, range and unit, and the name under which the command line knows the field."""
    ranges = f" Range: {escape_markdown(field.range_text)}." if field.range_text else ""
    return f"{field.sentence}{ranges} `{field.path}`"


def _of_other_tasks(members: list[Field], draft: Draft) -> None:
    with st.expander("Of other tasks", key="fold_other_tasks", type="compact"):
        st.caption(f"Without effect on {escape_markdown(str(draft.entries['task.name']))}.")
        _grid(members, draft, "other_tasks")


def _is_of_use(field: Field, draft: Draft) -> bool:
    """Whether the task or the prompt in the form reads a field, or there is something wrong with it."""
    if draft.checked.at(field.path):
        return True
    if field.section == "task":
        return reads(str(draft.entries["task.name"]), field.key)
    if field.path in ("prompt.text", "prompt.stop_string"):
        return draft.entries["prompt.name"] == "custom" or bool(draft.entries[field.path])
    return True


def _grid(members: list[Field], draft: Draft, name: str) -> None:
    for field in members:
        if field.path in WIDE:
            _cell(field, draft)
    grid = st.grid(min_column_width=185, key=f"grid_{name}")
    for field in [member for member in members if member.path not in WIDE]:
        with grid.cell():
            _cell(field, draft)


def _cell(field: Field, draft: Draft) -> None:
    field_input(field, draft, label=label_of(field), hint=help_of(field), keep=_keep)
    problem_lines(draft.checked.at(field.path))
    field_notes(field, draft)


def _keep(path: str, key: str) -> None:
    keep_draft(with_entry(current_draft(), path, st.session_state[key]))


def _title(section: str) -> str:
    return TITLES.get(section, section.capitalize())


def _about(section: str) -> str:
    if section in FOLDS:
        return FOLDS[section]
    annotation = RunConfig.model_fields[section].annotation
    sentence = (annotation.__doc__ or "") if annotation else ""
    first = sentence.split(" ", 1)[0]
    return (sentence if any(letter.isupper() for letter in first[1:]) else sentence[:1].lower() + sentence[1:]).rstrip(
        "."
    )
