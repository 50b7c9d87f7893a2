"""The figure of training reward and held-out accuracy."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.lines import line
from dashboard.figures.points import points

SAMPLED, GREEDY = "eval/validation/accuracy", "eval/validation/greedy_accuracy"


def reward_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT) -> go.Figure:
    """Return the training reward with the held-out accuracies of one run, over its steps.

    The axis is in percent as long as every reward lies between 0 and 1.
    """
    reward, sampled, greedy = (points(frame, name) for name in ("reward", SAMPLED, GREEDY))
    finite = reward.y[np.isfinite(reward.y)]
    percent = bool(((finite >= 0) & (finite <= 1)).all())
    figure = style.sheet(percent=percent, height=height)
    unit = "share" if percent else ""
    if len(reward.x):
        figure.add_trace(line(reward, name="reward", title="Training reward", unit=unit, colour=style.FIRST, width=1.5))
    for drawn, name, title, dash in (
        (sampled, SAMPLED, "Held-out, sampled", "solid"),
        (greedy, GREEDY, "Held-out, greedy", "dot"),
    ):
        if len(drawn.x):
            figure.add_trace(line(drawn, name=name, title=title, unit="share", colour=style.SECOND, dash=dash))
    if not figure.data:
        return style.say(figure, "The first step is not finished yet.")
    if percent:
        figure.update_yaxes(range=[-0.02, 1.04])
    return style.remark(figure, style.not_drawn(reward.non_finite + sampled.non_finite + greedy.non_finite))
