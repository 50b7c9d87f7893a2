"""The figure of training reward and held-out accuracy."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import style
from dashboard.figures.lines import line
from dashboard.figures.points import points

SAMPLED, GREEDY = "eval/validation/accuracy", "eval/validation/greedy_accuracy"
TEST_SAMPLED, TEST_GREEDY = "eval/test/accuracy", "eval/test/greedy_accuracy"


def reward_figure(frame: pd.DataFrame, *, height: int = style.HEIGHT) -> go.Figure:
    """Return the training reward with the held-out accuracies of one run, over its steps.

    The axis is in percent as long as every reward lies between 0 and 1.
    """
    reward = points(frame, "reward")
    finite = reward.y[np.isfinite(reward.y)]
    percent = bool(((finite >= 0) & (finite <= 1)).all())
    figure = style.sheet(percent=percent, height=height)
    unit = "share" if percent else ""
    if len(reward.x):
        figure.add_trace(line(reward, name="reward", title="Training reward", unit=unit, colour=style.FIRST, width=1.5))
    lost = reward.non_finite
    for name, title, dash in (
        (SAMPLED, "Held-out, sampled", "solid"),
        (GREEDY, "Held-out, greedy", "dot"),
        (TEST_SAMPLED, "Test, sampled", "solid"),
        (TEST_GREEDY, "Test, greedy", "dot"),
    ):
        drawn = points(frame, name)
        lost += drawn.non_finite
        if len(drawn.x):
            figure.add_trace(line(drawn, name=name, title=title, unit="share", colour=style.SECOND, dash=dash))
    if not figure.data:
        return style.say(figure, "The first step is not finished yet.")
    if percent:
        figure.update_yaxes(range=[-0.02, 1.04])
    return style.remark(figure, style.not_drawn(lost))
