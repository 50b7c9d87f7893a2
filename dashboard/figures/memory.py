"""The figure of a memory plan: what each phase needs, part upon part."""

from textwrap import wrap

import plotly.graph_objects as go

from dashboard.figures import style
from engine.planner import GIB, MIB, PHASES, MemoryPlan, Phase, size

PARTS = {
    "weights": ("Weights", "#367ad1"),
    "adapters": ("Adapters", "#8fb8ea"),
    "reference": ("Reference policy", "#8080fc"),
    "moments": ("Optimizer moments", "#1b9a6c"),
    "gradients": ("Gradients", "#b29a7d"),
    "activations": ("Activations", "#d9822b"),
    "recomputed": ("Recomputed layer", "#e8b27a"),
    "logits": ("Logits", "#d1603d"),
    "prompts": ("Prompts", "#3fabdc"),
    "draw": ("Drawing a token", "#90696a"),
    "cache": ("Key-value cache", "#b3279c"),
    "sampler_weights": ("Weights of vLLM", "#1f4e8c"),
    "sampler_work": ("vLLM at work", "#5f8a8b"),
    "graphs": ("Captured graphs", "#a3a35c"),
    "sampler_cache": ("Cache of vLLM", "#d774c4"),
    "asleep": ("vLLM asleep", "#8b8b8b"),
}
PHASE_NAMES: dict[Phase, str] = {"rollout": "Rollout", "update": "Update"}
# A device that much larger than the need would squeeze the bars to nothing; the headline names it.
_SHOWN_UP_TO = 2.5
_HOVER_WIDTH = 32
# A legend gives every name the room of the longest; with short ones it has two a row in a narrow column too.
_SHORT = {
    "reference": "Reference",
    "moments": "Moments",
    "recomputed": "Recomputed",
    "draw": "Token draw",
    "cache": "Cache",
    "sampler_weights": "vLLM weights",
    "sampler_work": "vLLM work",
    "graphs": "Graphs",
    "sampler_cache": "vLLM cache",
}
_BARS_HEIGHT = 165
_LEGEND_ROW = 19


def memory_figure(plan: MemoryPlan, device_bytes: int) -> go.Figure:
    """Return one stacked bar per phase, each part with its formula, and where the device ends if that is near."""
    unit, scale = ("GiB", GIB) if plan.peak >= GIB else ("MiB", MIB)
    parts = {part.name: part for part in plan.parts}
    figure = style.sheet(x_title="", height=_BARS_HEIGHT + _LEGEND_ROW * -(-len(parts) // 2))
    for name, (title, colour) in PARTS.items():
        if name not in parts:
            continue
        part = parts[name]
        figure.add_trace(
            go.Bar(
                x=[part.bytes / scale] * len(part.phases),
                y=[PHASE_NAMES[phase] for phase in part.phases],
                orientation="h",
                uid=name,
                name=_SHORT.get(name, title),
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate=f"<b>{title}: {size(part.bytes)}</b><br>{_wrapped(part.sentence)}<extra></extra>",
            )
        )
    for phase in (phase for phase in PHASES if plan.bytes_in(phase)):
        figure.add_annotation(
            text=f"{PHASE_NAMES[phase]}: {size(plan.bytes_in(phase))}",
            x=0,
            y=PHASE_NAMES[phase],
            xanchor="left",
            yshift=20,
            showarrow=False,
            name=f"total:{phase}",
        )
    end = plan.peak
    if device_bytes <= _SHOWN_UP_TO * plan.peak:
        end = max(end, device_bytes)
        figure.add_vline(x=device_bytes / scale, line={"color": style.QUIET, "width": 2, "dash": "dot"}, name="device")
        figure.add_annotation(
            text="device",
            x=device_bytes / scale,
            y=0,
            yref="paper",
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            name="device",
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.6,
        hovermode="closest",
        hoverlabel={"align": "left"},
        legend={"y": 0, "yref": "container", "yanchor": "bottom", "font": {"size": 11}},
        margin={"l": 6, "r": 6, "t": 18},
    )
    figure.update_xaxes(range=[0, 1.04 * end / scale], showgrid=True, gridcolor=style.FAINT)
    figure.update_xaxes(ticksuffix=f" {unit}", nticks=4)
    # The names stand over the bars, which so have the whole width.
    figure.update_yaxes(showgrid=False, showticklabels=False, autorange="reversed", type="category")
    return figure


def _wrapped(sentence: str) -> str:
    return "<br>".join(style.plain(line) for line in wrap(sentence, _HOVER_WIDTH))
