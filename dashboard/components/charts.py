"""The charts of a run, each with its definitions and, where its curve may mislead, a note."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.follow import Followed
from dashboard.components.plot import plot
from dashboard.figures.lengths import CLIPPED, GREATEST, LEAST, MEAN, length_figure
from dashboard.figures.lines import metric_figure, metric_of
from dashboard.figures.reward import GREEDY, SAMPLED, reward_figure
from dashboard.figures.shares import groups_figure, phases_figure
from dashboard.figures.style import GROUP_COLOURS, PHASE_COLOURS
from engine.config import RunConfig

CLIP = ("clip_ratio/region_mean", "clip_ratio/low_mean", "clip_ratio/high_mean")


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its heading, the metrics it shows, how it is drawn, and what to say about it."""

    key: str
    title: str
    names: tuple[str, ...]
    draw: Callable[[pd.DataFrame], go.Figure]
    note: Callable[[RunConfig], str] = lambda _: ""


def loss_note(config: RunConfig) -> str:
    """Say why the loss stays near zero, where it must, and which steps have that of SFT."""
    of_sft = "that of SFT: −log p of the demonstrated responses."
    if config.grpo.steps == 0:
        return f"This is {of_sft}"
    return f"{f'Up to step {config.sft.steps:,} {of_sft} ' if config.sft.steps else ''}{_grpo_loss_note(config)}"


def _grpo_loss_note(config: RunConfig) -> str:
    by_ratio = config.grpo.loss_type in ("grpo_clip", "grpo_no_clip")
    if config.on_policy and by_ratio and config.grpo.baseline != "none":
        return (
            "Near zero by construction: on-policy the ratio is 1 and a group's advantages sum to zero, so the value "
            "cancels while its gradient does not. Watch reward and gradient norm instead."
        )
    return "The value is no measure of learning: the rollouts it is taken on change at every step."


def clip_note(config: RunConfig) -> str:
    """Say why the clip cannot act, where it cannot."""
    if config.grpo.steps == 0:
        return "Not active: SFT has no clip."
    if config.grpo.loss_type not in ("grpo_clip", "cispo"):
        return f"Not active: loss_type={config.grpo.loss_type} has no clip."
    if config.on_policy:
        return "Not active (on-policy): with one optimizer step per rollout batch the ratio is 1 everywhere."
    return ""


def groups_note(config: RunConfig) -> str:
    """Say which groups carry a gradient."""
    if config.grpo.steps == 0:
        return "SFT samples no groups."
    if config.grpo.learn_from == "correct":
        return "The correct completions of every group teach, and no others."
    if config.grpo.baseline == "none":
        return "Without a baseline, groups that are all right teach as well."
    return "Only mixed groups teach: in the others every advantage is zero."


def entropy_note(_: RunConfig) -> str:
    """Say what to compare an entropy with."""
    return "Compare it with the run's own start (dotted): no absolute value is healthy for every model."


CHARTS = (
    Chart("reward", "Reward and held-out accuracy", ("reward", SAMPLED, GREEDY), reward_figure),
    Chart(
        "groups",
        "Groups: all right, mixed, all wrong",
        tuple(GROUP_COLOURS),
        groups_figure,
        groups_note,
    ),
    Chart("length", "Completion length", (MEAN, LEAST, GREATEST, CLIPPED), length_figure),
    Chart("entropy", "Entropy", ("entropy",), partial(metric_figure, names=["entropy"], start_line=True), entropy_note),
    Chart("grad_norm", "Gradient norm", ("grad_norm",), partial(metric_figure, names=["grad_norm"])),
    Chart("loss", "Loss", ("loss",), partial(metric_figure, names=["loss"]), loss_note),
    Chart("clip", "Clip ratio", CLIP, partial(metric_figure, names=CLIP), clip_note),
    Chart("phases", "Time per step", tuple(PHASE_COLOURS), phases_figure),
    Chart("memory", "Memory", ("memory/rss",), partial(metric_figure, names=["memory/rss"])),
)


def definitions(names: Sequence[str]) -> str:
    """Return the definitions of metrics as a tooltip (Markdown), one paragraph each."""
    lines = []
    for name in names:
        metric = metric_of(name)
        unit = f" ({metric.unit})" if metric.unit else ""
        title = f"**{metric.title}**{unit}: " if metric.title != name else ""
        lines.append(f"{title}{metric.sentence} `{name}`")
    return "\n\n".join(lines)


def draw_chart(chart: Chart, followed: Followed, scope: str, config: RunConfig | None) -> int | None:
    """Draw one chart of one run and return the step that was just clicked, or None."""
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{chart.title}**", help=definitions(chart.names))
        picked = plot(f"{scope}:{chart.key}", (scope, followed.version), lambda: chart.draw(followed.frame))
        note = chart.note(config) if config else ""
        if note:
            st.caption(note)
    return picked.value if picked and picked.value > 0 else None


def draw_charts(charts: Sequence[Chart], followed: Followed, scope: str, config: RunConfig | None) -> int | None:
    """Draw charts side by side and return the step that was just clicked in one of them, or None."""
    with st.container(key=f"chart_grid_{scope}"):
        steps = [draw_chart(chart, followed, scope, config) for chart in charts]
    return next((step for step in steps if step is not None), None)
