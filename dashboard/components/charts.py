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
from dashboard.figures.lines import metric_figure
from dashboard.figures.reward import GREEDY, SAMPLED, TEST_GREEDY, TEST_SAMPLED, reward_figure
from dashboard.figures.shares import groups_figure, phases_figure
from dashboard.figures.style import GROUP_COLOURS, PHASE_COLOURS
from engine.config import RunConfig
from engine.metrics import metric_of

SAMPLER = "sampling/sampling_logp_difference"
RATIO = "sampling/importance_sampling_ratio"
WEIGHT = "sampling/importance_weight"
CLIP = ("clip_ratio/region_mean", "clip_ratio/low_mean", "clip_ratio/high_mean")


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its heading, the metrics it shows, how it is drawn, and what to say about it.

    `needs` is a metric without which the chart has no place on the page; "" for those that every run has.
    """

    key: str
    title: str
    names: tuple[str, ...]
    draw: Callable[[pd.DataFrame], go.Figure]
    note: Callable[[RunConfig], str] = lambda _: ""
    needs: str = ""


def loss_note(config: RunConfig) -> str:
    """Say why the loss stays near zero, where it must, and which steps have that of SFT."""
    of_sft = "that of SFT: −log p of the demonstrated responses."
    if config.grpo.steps == 0:
        return f"This is {of_sft}"
    return f"{f'Up to step {config.sft.steps:,} {of_sft} ' if config.sft.steps else ''}{_grpo_loss_note(config)}"


def _grpo_loss_note(config: RunConfig) -> str:
    by_ratio = config.grpo.loss_type in ("grpo_clip", "grpo_no_clip")
    if config.on_policy and by_ratio and config.grpo.baseline != "none" and not _further_terms(config):
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
    words = "Only mixed groups teach: in the others every advantage is zero"
    terms = _further_terms(config)
    return f"{words}, and {' and '.join(terms)} {'acts' if len(terms) == 1 else 'act'} alone." if terms else f"{words}."


def _further_terms(config: RunConfig) -> list[str]:
    """Return the terms of the loss beside the policy gradient."""
    terms = []
    if config.kl.beta > 0 and config.kl.placement == "loss":
        terms.append("the KL term")
    if config.entropy.bonus > 0 or config.entropy.target is not None:
        terms.append("the entropy bonus")
    return terms


def entropy_note(_: RunConfig) -> str:
    """Say what to compare an entropy with."""
    return "Compare it with the run's own start (dotted): no absolute value is healthy for every model."


def kl_note(config: RunConfig) -> str:
    """Say what the divergence is measured for, where it does not pull."""
    return "Measured only: at kl.beta=0 nothing pulls towards the reference." if config.kl.beta == 0 else ""


def _lines(
    key: str, title: str, *names: str, note: Callable[[RunConfig], str] = lambda _: "", needs: str = ""
) -> Chart:
    """Return a chart of metrics in one unit as lines."""
    return Chart(key, title, names, partial(metric_figure, names=names), note, needs)


def _where_logged(key: str, title: str, *names: str, note: Callable[[RunConfig], str] = lambda _: "") -> Chart:
    """Return a chart of lines for runs that log the last of these metrics."""
    return _lines(key, title, *names, note=note, needs=names[-1])


def _spread(key: str, title: str, name: str) -> Chart:
    """Return a chart of the mean and the extremes of one quantity, for runs that log it."""
    names = (f"{name}/mean", f"{name}/min", f"{name}/max")
    return Chart(key, title, names, partial(metric_figure, names=names, from_zero=False), needs=names[0])


MEMORY_COLOURS = {name.replace("time/", "memory/"): colour for name, colour in PHASE_COLOURS.items()}
MEMORY = ("memory/rss", *MEMORY_COLOURS)

CHARTS = (
    Chart(
        "reward", "Reward and held-out accuracy", ("reward", SAMPLED, GREEDY, TEST_SAMPLED, TEST_GREEDY), reward_figure
    ),
    _where_logged("reward_drawn", "Reward, trained on and all drawn", "reward", "dynamic_sampling/reward"),
    _where_logged("placebo", "What the placebo paid", "rewards/placebo/mean"),
    _where_logged("length_cost", "Cost of length", "rewards/length/mean"),
    _where_logged("repetition_cost", "Cost of repetition", "rewards/repetition/mean"),
    _where_logged("overlong", "Overlong penalty", "rewards/overlong/mean"),
    Chart(
        "groups",
        "Groups: all right, mixed, all wrong",
        tuple(GROUP_COLOURS),
        groups_figure,
        groups_note,
    ),
    _where_logged("draws", "Draws of prompts", "dynamic_sampling/draws"),
    _where_logged("left_out", "Groups left out", "dynamic_sampling/discarded"),
    Chart("length", "Completion length", (MEAN, LEAST, GREATEST, CLIPPED), length_figure),
    _where_logged("masked", "Completions left out for length", "completions/masked_ratio"),
    Chart("entropy", "Entropy", ("entropy",), partial(metric_figure, names=["entropy"], start_line=True), entropy_note),
    _where_logged("entropy_bonus", "Weight of the entropy bonus", "entropy/bonus"),
    _lines("kl", "Divergence from the reference", "kl", "kl/update", note=kl_note, needs="kl"),
    _where_logged("kl_beta", "Weight of the KL term", "kl/beta"),
    _lines("grad_norm", "Gradient norm", "grad_norm"),
    _lines("loss", "Loss", "loss", note=loss_note),
    _lines("clip", "Clip ratio", *CLIP, note=clip_note),
    _lines("sampler", "Sampler against trainer", f"{SAMPLER}/max", f"{SAMPLER}/mean", needs=f"{SAMPLER}/mean"),
    _spread("importance_ratio", "Importance ratio, raw", RATIO),
    _spread("importance_weight", "Importance weight, corrected", WEIGHT),
    _lines("beyond_cap", "Beyond the cap", "sampling/importance_beyond_cap", needs=f"{WEIGHT}/mean"),
    Chart("phases", "Time per step", tuple(PHASE_COLOURS), phases_figure),
    Chart("memory", "Memory", MEMORY, partial(metric_figure, names=MEMORY, colours=MEMORY_COLOURS)),
    _where_logged("device_memory", "GPU memory", "device/memory_used/mean", "device/memory_used/max"),
    _where_logged("device_utilization", "GPU busy", "device/utilization/mean", "device/utilization/max"),
)
# Against single optimizer steps, where several share a rollout batch.
UPDATE_CHARTS = (
    _where_logged("update_loss", "Loss", "loss"),
    _where_logged("update_grad_norm", "Gradient norm", "grad_norm"),
    Chart(
        "update_ratio",
        "Mean ratio",
        ("ratio/mean",),
        partial(metric_figure, names=["ratio/mean"], from_zero=False),
        needs="ratio/mean",
    ),
    _where_logged("update_clip", "Clipped", "clip_ratio/region_mean"),
    _where_logged("update_kl", "Divergence from the reference", "kl"),
)


def logged_charts(charts: Sequence[Chart], followed: Followed) -> list[Chart]:
    """Return the charts that have a place on the page of what was logged."""
    logged = set(followed.frame["name"].unique())
    return [chart for chart in charts if not chart.needs or chart.needs in logged]


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
        logged = set(followed.frame["name"].unique())
        shown = [name for name in chart.names if name in logged]
        st.markdown(f"**{chart.title}**", help=definitions(shown or chart.names))
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
