"""One group: its question, and every completion with what it earned and why."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.components.markdown import escape_markdown
from dashboard.components.plot import plot
from dashboard.figures.advantages import advantages_figure
from dashboard.frames.groups import LEFT_OUT_HELP, kind_words
from dashboard.frames.numbers import number
from dashboard.frames.text import preview, visible
from engine.store.records import CompletionRow, GroupRow

PAGE = 8
LONG = 4_000
VERDICTS = {"correct": "✓ correct", "wrong": "✕ wrong", "unreadable": "◇ unreadable", "not_graded": "– not graded"}
FINISHES = {"eos": "end token", "stop": "stop string", "length": "cut at the length limit"}


def draw_group(
    group: GroupRow,
    completions: Sequence[CompletionRow],
    config: Mapping[str, Any],
    *,
    batch_std: float | None = None,
) -> None:
    """Draw a group: question and gold answer, its advantages and how they came about, and its completions."""
    st.subheader(
        f"Group {group.index}: {group.n_correct} of {group.size} right, {kind_words(group)}",
        help=None if group.trained else LEFT_OUT_HELP,
    )
    left, right = st.columns([3, 2])
    with left:
        st.caption("Question")
        literal(group.question)
        st.caption("Gold answer")
        literal(group.gold)
        with st.expander("Prompt as the model saw it"):
            literal(group.prompt)
    with right:
        st.markdown("**Advantages**", help="How much each completion is pushed up (right) or down (left), per token")
        labels = [f"#{each.index} {VERDICTS[each.verdict][0]}" for each in completions]
        advantages = [each.advantage for each in completions]
        graded = sum(each.reward is not None for each in completions)
        plot("advantages", group.group_id, lambda: advantages_figure(advantages, labels))
        st.caption(advantage_words(group, config, graded=graded, batch_std=batch_std))
    if not completions:
        st.info("The completions of this group are not stored.")
        return
    table = completion_table(completions)
    st.dataframe(
        table,
        hide_index=True,
        column_config=completion_columns(table.columns),
        key="completion_table",
        placeholder="–",
    )
    _cards(group, completions)


def advantage_words(
    group: GroupRow, config: Mapping[str, Any], *, graded: int | None = None, batch_std: float | None = None
) -> str:
    """Say with the group's numbers how its advantages were computed.

    `graded` is its number of rewards, `batch_std` the std of its step's, where it is known.
    """
    grpo = config.get("grpo", {})
    # Runs of older versions say `use_std_normalization`.
    scale = grpo.get("scale", "group_std" if grpo.get("use_std_normalization", True) else "none")
    baseline = grpo.get("baseline", "group_mean")
    if grpo.get("learn_from") == "correct":
        return "Every correct completion has an advantage of 1; the others are left out of the loss."
    if baseline == "none" and scale == "none":
        return "Without a baseline the advantage of a completion is its reward."
    if group.reward_mean is None:
        return "No completion of this group has a reward, so none has an advantage."
    if group.kind != "mixed" and not (baseline == "none" and scale == "batch_std"):
        return "All rewards are equal, so every advantage is exactly 0: this group teaches nothing."
    formula, sources = "reward", []
    if baseline == "group_mean":
        formula, sources = f"reward − {group.reward_mean:.4g}", ["the group's mean"]
    elif baseline == "leave_one_out":
        n = graded or group.size
        formula = f"(reward − {group.reward_mean:.4g}) · {n}/{n - 1}"
        sources = ["the distance to the mean of the group's others"]
    if scale == "none" or group.reward_std is None:
        return f"advantage = {formula} ({sources[0]})"
    eps, std = f"{grpo.get('advantage_eps', 0.0):g}", grpo.get("std", "sample")
    formula = f"({formula})" if baseline == "group_mean" else formula
    if scale == "batch_std":
        number_of = "std of the batch" if batch_std is None else f"{batch_std:.4g}"
        divisor, whose = f"({number_of} + {eps})", f"the {std} std of all rewards of the step"
    else:
        divisor, whose = f"({group.reward_std:.4g} + {eps})", f"{std} std" if sources else f"the group's {std} std"
    return f"advantage = {formula} / {divisor}: {' and '.join([*sources, whose])}"


def completion_table(completions: Sequence[CompletionRow]) -> pd.DataFrame:
    """Return one row per completion; the text is a preview."""
    parts = list(dict.fromkeys(part for each in completions for part in each.reward_parts))
    any_kl = any(each.kl is not None for each in completions)
    rows = [
        {
            "index": each.index,
            "verdict": VERDICTS[each.verdict],
            "advantage": each.advantage,
            "reward": each.reward,
            **{f"part:{part}": each.reward_parts.get(part) for part in parts},
            "answer": None if each.answer is None else preview(each.answer, 60),
            "length": each.length,
            "entropy": each.entropy,
            **({"kl": each.kl} if any_kl else {}),
            "finish": FINISHES[each.finish_reason],
            "text": preview(each.text),
        }
        for each in completions
    ]
    frame = pd.DataFrame(rows)
    numbers = ["advantage", "reward", "entropy", "kl", *(f"part:{part}" for part in parts)]
    return frame.astype({column: "float64" for column in numbers if column in frame})


def literal(text: str) -> None:
    """Show text of a model or a data set as it is: no Markdown, HTML or LaTeX in it is read."""
    st.code(visible(text), language=None, wrap_lines=True)


def _cards(group: GroupRow, completions: Sequence[CompletionRow]) -> None:
    pages = -(-len(completions) // PAGE)
    first = 0
    if pages > 1:
        options = list(range(pages))
        first = PAGE * st.segmented_control(
            "Completions",
            options,
            default=0,
            required=True,
            key=f"completions_page:{group.group_id}",
            format_func=lambda page: f"{PAGE * page}–{min(PAGE * (page + 1), len(completions)) - 1}",
        )
    for each in completions[first : first + PAGE]:
        _card(each)


def _card(each: CompletionRow) -> None:
    with st.container(border=True, key=f"completion_{each.completion_id}"):
        st.markdown(_headline(each), help=_HEADLINE_HELP)
        text = each.text
        if len(text) > LONG:
            whole = st.toggle(f"Show all {len(text):,} characters", key=f"whole:{each.completion_id}")
            text = text if whole else text[:LONG] + "…"
        literal(text if text else "(empty)")


_HEADLINE_HELP = (
    "Verdict of the reward function; advantage (what its tokens' log-probs are pushed with); reward and its parts; "
    "the answer read from the text; length in tokens, the end token counted; mean entropy of the policy per token, in "
    "nats; where the run keeps a reference policy, the estimated KL divergence from it, summed over the tokens, in "
    "nats; why sampling ended."
)


def _headline(each: CompletionRow) -> str:
    parts = ", ".join(f"{escape_markdown(part)} {number(value)}" for part, value in each.reward_parts.items())
    advantage = "no advantage" if each.advantage is None else f"advantage {each.advantage:+.3f}"
    answer = "no answer read" if each.answer is None else f"answer {escape_markdown(preview(each.answer, 60))}"
    reward = "no reward" if each.reward is None else f"reward {number(each.reward)}"
    facts = [
        f"**\\#{each.index} {VERDICTS[each.verdict]}**"
        + (f": {escape_markdown(preview(each.reason))}" if each.reason else ""),
        f"**{advantage}**",
        reward + (f" ({parts})" if parts else ""),
        answer,
        f"{each.length:,} tokens",
        "entropy –" if each.entropy is None else f"entropy {each.entropy:.3f} nats/token",
        *([] if each.kl is None else [f"KL {each.kl:.3f} nats"]),
        FINISHES[each.finish_reason] + (f" `{preview(each.stop, 30)}`" if each.stop and "`" not in each.stop else ""),
    ]
    return " · ".join(facts)


def completion_columns(names: Iterable[str]) -> dict[str, Any]:
    """Return how the columns of the completion table are shown; a part that only its reward knows has its own name."""
    column = st.column_config
    number_of = column.NumberColumn
    parts = [name.removeprefix("part:") for name in names if name.startswith("part:")]
    return {
        **{f"part:{part}": number_of(part, format="%.3f", help="Reward part of that name") for part in parts},
        "index": number_of("#", width=40, help="Its place in the group"),
        "verdict": column.TextColumn("Verdict", width=100, help="What the reward function found"),
        "advantage": number_of("Advantage", width=90, format="%+.3f", help="Pushes the completion up (+) or down (−)"),
        "reward": number_of("Reward", width=75, format="%.3f", help="Empty where it was not graded"),
        "part:format": number_of("Format", width=70, format="%.2f", help="Reward part: the form asked for"),
        "part:answer": number_of("Answer right", width=95, format="%.2f", help="Reward part: the right answer"),
        "part:placebo": number_of(
            "Placebo", width=75, format="%.2f", help="Reward part: what the placebo paid in the reward's place"
        ),
        "part:length": number_of("Length cost", width=90, format="%.3f", help="Reward part: taken off for its tokens"),
        "part:repetition": number_of(
            "Repetition cost", width=115, format="%.3f", help="Reward part: taken off for repeated n-grams of tokens"
        ),
        "part:overlong": number_of(
            "Overlong", width=80, format="%.3f", help="Reward part: taken off close to the length limit"
        ),
        "answer": column.TextColumn("Answer read", width=95, help="What was extracted from the text"),
        "length": number_of("Tokens", width=70, help="Length, the end token counted"),
        "entropy": number_of("Entropy", width=80, format="%.3f", help="Mean entropy of the policy, nats/token"),
        "kl": number_of("KL", width=70, format="%.3f", help="Divergence from the reference, summed over tokens, nats"),
        "finish": column.TextColumn("Ended by", width=120, help="End token, stop string, or the length limit"),
        "text": column.TextColumn("Text", width="large", help="At most 300 characters; whole below"),
    }
