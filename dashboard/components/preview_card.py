"""What the model will be asked: the first prompts with their tokens, the data, and whether its gold can be graded."""

import time

import pandas as pd
import streamlit as st

from dashboard.components.draft import Draft, with_entry
from dashboard.components.form import current_draft, problem_lines, put_draft
from dashboard.components.markdown import escape_markdown
from dashboard.data.preview import PreviewJob, preview_key, previews
from dashboard.frames.text import preview, visible
from engine.config.task_fields import OF_DATA
from engine.tasks.run_preview import AskedPrompt, GoldCheck, RunPreview, Stage, gold_words

STAGES: dict[Stage, str] = {
    "data": "reading the data",
    "tokenizer": "loading the tokenizer",
    "gold": "checking the gold answers",
}
LONG_PROMPT = 1_500  # characters; a longer one is scrolled
_ASKED = "preview_asked"
_PROBLEM, _TOKENS = "preview_problem", "preview_tokens"
_HELP = (
    "The first problems of the first step as this run would put them: its data, its prompt, its tokenizer; and whether "
    "every gold answer grades itself correct. No weights are loaded and nothing is launched."
)


def preview_card(draft: Draft) -> None:
    """Draw the card; the preview is worked out by a process of its own, once it is asked for."""
    config = draft.checked.config
    key = None if config is None else preview_key(config)
    asked = st.session_state.get(_ASKED)
    job = previews().find(asked) if asked else None
    if asked and job is not None and job.running and key is not None and key != asked:
        previews().drop(asked)  # of settings that are no longer wanted
        job = None
    with st.container(border=True, gap="small", key="preview_card"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown("**What the model is asked**", help=_HELP, width="content")
            with st.container(horizontal=True, vertical_alignment="center", width="content"):
                _button(job, key, asked)
        if job is None:
            st.caption(
                "The first prompts, token by token; what is in the data; whether its gold answers can be graded."
            )
        elif job.running:
            st.fragment(_follow, run_every="1s")(job, draft)
        else:
            if key != asked:
                st.markdown(":orange[:material/history: Of earlier settings.] Press **Renew** for those in the form.")
            _outcome(job, draft, current=key == asked)


def _button(job: PreviewJob | None, key: str | None, asked: str | None) -> None:
    if job is not None and job.running:
        st.button("Cancel", icon=":material/close:", type="tertiary", on_click=_cancel, key="preview_cancel")
        return
    if job is not None:
        st.button("Hide", icon=":material/close:", type="tertiary", on_click=_hide, key="preview_hide")
        if job.trouble is None and key == asked:
            return
    renews = job is not None
    st.button(
        "Renew" if renews else "Show the first prompts",
        icon=":material/refresh:" if renews else ":material/visibility:",
        key="preview_renew" if renews else "preview_show",
        disabled=key is None,
        help="Correct the fields first" if key is None else None,
        on_click=_start,
    )


def _start() -> None:
    config = current_draft().checked.config
    if config is not None:
        key = preview_key(config)
        previews().start(key, config)
        st.session_state[_ASKED] = key


def _cancel() -> None:
    asked = st.session_state.pop(_ASKED, None)
    if asked:
        previews().drop(asked)


def _hide() -> None:
    st.session_state.pop(_ASKED, None)


def _leave_out() -> None:
    put_draft(with_entry(current_draft(), "task.gold_faults", "leave_out"))
    _start()


def _follow(job: PreviewJob, draft: Draft) -> None:
    """Draw what is known so far, until all of it is."""
    known = job.ask()
    if not job.running:
        st.rerun()
    seconds = time.monotonic() - job.started
    st.caption(f":material/hourglass_top: {STAGES.get(known.stage, 'finishing').capitalize()} … {seconds:.0f} s")
    _known(known, draft, current=True)


def _outcome(job: PreviewJob, draft: Draft, *, current: bool) -> None:
    if job.trouble is not None:
        problem_lines([job.trouble])
    _known(job.ask(), draft, current=current)


def _known(known: RunPreview, draft: Draft, *, current: bool) -> None:
    if known.error is not None:
        problem_lines(known.error.splitlines())
    if known.sentences:
        st.caption("\n".join(f"- {escape_markdown(sentence)}" for sentence in known.sentences))
    if known.gold is not None:
        _gold(known.gold, draft, current=current)
    if known.rows:
        _prompts(known, draft)


def _gold(gold: GoldCheck, draft: Draft, *, current: bool) -> None:
    words = escape_markdown(gold_words(gold))
    if gold.checked is None:
        st.caption(f":material/info: {words}")
    elif not gold.faulty:
        st.markdown(f":green[:material/check: {words}]")
    elif gold.left_out:
        st.markdown(f":orange[:material/warning: {words}]")
    else:
        st.markdown(f":red[:material/error: {words}]")
    if gold.refuses and draft.entries["task.name"] in OF_DATA:
        if draft.entries["task.gold_faults"] == "leave_out":
            st.caption("They will be left out: task.gold_faults=leave_out is set.")
        elif current:
            hint = "Sets task.gold_faults=leave_out in the form and renews this preview"
            st.button("Leave them out", icon=":material/filter_alt:", key="leave_out", help=hint, on_click=_leave_out)
    if gold.first:
        _faults(gold)


def _faults(gold: GoldCheck) -> None:
    if len(gold.first) < gold.faulty:
        st.caption(f"The first {len(gold.first)} of {gold.faulty:,}:")
    rows = [(visible(each.problem_id), each.split, _end(each.gold), visible(each.reason)) for each in gold.first]
    column = st.column_config.TextColumn
    st.dataframe(
        pd.DataFrame(rows, columns=["problem", "split", "gold", "why"]),
        hide_index=True,
        key="gold_faults",
        height="auto" if len(rows) <= 6 else 250,
        column_config={
            "problem": column("Problem", width=190, help="The id of the problem"),
            "split": column("Split", width=85),
            "gold": column("Gold answer", width=200, help="Its last 120 characters"),
            "why": column("Why", width="large", help="Why it does not grade itself correct"),
        },
    )


def _end(text: str, most: int = 120) -> str:
    shown = preview(text[-most:], 2 * most)
    return shown if len(text) <= most else f"…{shown}"


def _prompts(known: RunPreview, draft: Draft) -> None:
    st.caption(_reading(known, draft))
    with st.container(horizontal=True, vertical_alignment="center"):
        numbers = list(range(1, len(known.rows) + 1))
        kept = st.session_state.get(_PROBLEM, 1)
        st.session_state[_PROBLEM] = kept if kept in numbers else 1
        number = st.segmented_control(
            "Problem",
            numbers,
            required=True,
            key=_PROBLEM,
            persist_state="session",
            label_visibility="collapsed",
            format_func=lambda each: f"#{each}",
        )
        by_token = st.toggle("Token ids", key=_TOKENS, persist_state="session", help="The prompt token by token")
    row = known.rows[(number or 1) - 1]
    st.caption(_facts(row))
    _text(row.prompt)
    if by_token:
        _tokens(row)
    st.caption("Gold answer")
    _text(row.gold)


def _reading(known: RunPreview, draft: Draft) -> str:
    config = draft.checked.config
    stops = [f"`{visible(stop)}`" if "`" not in stop else escape_markdown(stop) for stop in known.stop_strings]
    limit = f"{config.rollout.max_tokens:,} tokens (max tokens)" if config else "max tokens"
    return (
        f"The reward **{escape_markdown(known.reward)}** reads the completion, which ends with "
        f"{', '.join([*stops, 'the end token'])} or after {limit}."
    )


def _facts(row: AskedPrompt) -> str:
    if row.tokens is None:
        lengths = "lengths come with the tokenizer"
    else:
        lengths = (
            f"prompt **{len(row.tokens):,}** tokens · question {row.question_length:,} tokens · "
            f"gold answer {row.gold_length:,} tokens"
        )
    return f"{escape_markdown(row.problem_id)} · {row.split} · {lengths}"


def _tokens(row: AskedPrompt) -> None:
    if row.tokens is None:
        st.caption("Tokens come with the tokenizer.")
        return
    column = st.column_config
    rows = [
        (place, token.id, token_words(token.text), "special" if token.special else "")
        for place, token in enumerate(row.tokens)
    ]
    st.dataframe(
        pd.DataFrame(rows, columns=["place", "id", "text", "kind"]),
        hide_index=True,
        key="preview_token_table",
        height="auto" if len(rows) <= 8 else 320,
        column_config={
            "place": column.NumberColumn("Place", width=60, help="From 0"),
            "id": column.NumberColumn("Token id", width=90, format="%d"),
            "text": column.TextColumn("Text", width="large", help="↵ is a line break, ␣ a space at its ends"),
            "kind": column.TextColumn("", width=70, help="Special tokens of the tokenizer are marked"),
        },
    )


def token_words(text: str) -> str:
    """Return the text of a token on one line, with the spaces at its ends made visible."""
    shown = visible(text[:LONG_PROMPT]).replace("\n", "↵").replace("\t", "⇥")
    inner = shown.strip(" ")
    if not inner:
        return "␣" * len(shown)
    before, after = shown.split(inner)
    return "␣" * len(before) + inner + "␣" * len(after)


def _text(text: str) -> None:
    """Show text as it is; a long one in a window that scrolls."""
    shown = visible(text)
    st.code(shown, language=None, wrap_lines=True, height=320 if len(shown) > LONG_PROMPT else "content")
