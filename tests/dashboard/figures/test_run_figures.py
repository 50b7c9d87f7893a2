import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.figures.lengths import length_figure
from dashboard.figures.lines import metric_figure
from dashboard.figures.reward import reward_figure
from dashboard.figures.shares import groups_figure, phases_figure

NAN = float("nan")
EMPTY = pd.DataFrame({"name": pd.Series([], dtype=str), "step": pd.Series([], dtype=int), "value": []})


def tidy(**metrics: dict[int, float]) -> pd.DataFrame:
    rows = [
        (name.replace("__", "/"), step, value) for name, values in metrics.items() for step, value in values.items()
    ]
    return pd.DataFrame(rows, columns=["name", "step", "value"])


def trace(figure: go.Figure, uid: str) -> go.Scatter:
    return next(trace for trace in figure.data if trace.uid == uid)


def notes(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


@pytest.mark.parametrize(
    "draw",
    [reward_figure, length_figure, groups_figure, phases_figure, lambda frame: metric_figure(frame, ["entropy"])],
)
@pytest.mark.parametrize("frame", [EMPTY, pd.DataFrame()])
def test_without_data_a_figure_says_so(draw, frame) -> None:
    figure = draw(frame)
    assert len(figure.data) == 0
    assert len(notes(figure)) == 1


def test_reward_and_both_accuracies_are_drawn_in_percent() -> None:
    figure = reward_figure(
        tidy(
            reward={1: 0.25, 2: 0.5},
            eval__validation__accuracy={0: 0.2, 2: 0.4},
            eval__validation__greedy_accuracy={0: 0.6},
        )
    )
    assert [trace.uid for trace in figure.data] == [
        "reward",
        "eval/validation/accuracy",
        "eval/validation/greedy_accuracy",
    ]
    assert trace(figure, "reward").y.tolist() == [0.25, 0.5]
    assert trace(figure, "eval/validation/accuracy").x.tolist() == [0, 2]
    assert figure.layout.yaxis.tickformat == ".0%"


def test_rewards_above_one_are_not_percent() -> None:
    assert reward_figure(tidy(reward={1: 2.0, 2: 3.0})).layout.yaxis.tickformat is None


def test_non_finite_points_are_left_out_and_said() -> None:
    figure = reward_figure(tidy(reward={1: 0.25, 2: NAN, 3: float("inf"), 4: 0.5}))
    np.testing.assert_array_equal(trace(figure, "reward").y, [0.25, NAN, NAN, 0.5])
    assert figure.layout.xaxis.title.text == "step<br><i>2 non-finite points not drawn</i>"


def test_a_point_carries_its_step() -> None:
    assert trace(metric_figure(tidy(loss={4: 0.1, 5: 0.2}), ["loss"]), "loss").customdata.tolist() == [4, 5]


def test_a_metric_shows_its_unit_in_axis_and_hover() -> None:
    figure = metric_figure(tidy(entropy={1: 0.5}), ["entropy"], start_line=True)
    assert figure.layout.yaxis.title.text == "nats/token"
    assert figure.data[0].hovertemplate == "%{y:.4~g} nats/token<extra>Entropy</extra>"
    assert figure.layout.shapes[0].y0 == 0.5


def test_bytes_are_drawn_in_mib() -> None:
    figure = metric_figure(tidy(memory__rss={1: 512 * 2**20}), ["memory/rss"])
    assert figure.data[0].y.tolist() == [512.0]
    assert figure.layout.yaxis.title.text == "MiB"


def test_a_metric_without_a_definition_is_drawn_under_its_name() -> None:
    figure = metric_figure(tidy(**{"a<b>": {1: 1.0}}), ["a<b>"])
    assert figure.data[0].name == "a&lt;b&gt;"


def test_lengths_have_a_band_a_mean_and_the_truncated_share() -> None:
    figure = length_figure(
        tidy(
            completions__mean_length={1: 20.0, 2: 22.0},
            completions__min_length={1: 5.0, 2: 6.0},
            completions__max_length={1: 48.0, 2: 47.0},
            completions__clipped_ratio={1: 0.125, 2: 0.0},
        )
    )
    assert trace(figure, "low-0").y.tolist() == [5, 6]
    assert trace(figure, "high-0").fill == "tonexty"
    assert trace(figure, "completions/mean_length").y.tolist() == [20, 22]
    assert trace(figure, "completions/clipped_ratio").yaxis == "y2"


def test_missing_steps_of_the_groups_are_a_gap_and_never_zero() -> None:
    kinds = ("groups__all_correct", "groups__mixed", "groups__all_wrong", "groups__tied")
    steps = [1, 2, 3, 6, 7]
    figure = groups_figure(tidy(**{kind: dict.fromkeys(steps, 0.25) for kind in kinds}))
    assert trace(figure, "groups/mixed-0").x.tolist() == [1, 2, 3]
    assert trace(figure, "groups/mixed-1").x.tolist() == [6, 7]
    assert {value for drawn in figure.data for value in drawn.y} == {0.25}
    assert sum(bool(drawn.showlegend) for drawn in figure.data) == 4


def test_phases_stack_only_what_was_timed() -> None:
    figure = phases_figure(tidy(time__rollout={1: 0.5, 2: 0.6}, time__evaluate={2: 1.5}))
    assert trace(figure, "time/evaluate").x.tolist() == [2]
    assert [drawn.name for drawn in figure.data] == ["Rollout", "Evaluation"]
    assert figure.layout.barmode == "stack"


def test_many_steps_are_averaged_and_said() -> None:
    figure = phases_figure(tidy(time__rollout=dict.fromkeys(range(1, 1001), 1.0)))
    assert len(figure.data[0].x) == 500
    assert figure.layout.xaxis.title.text == "step<br><i>each point is the mean of 2 steps</i>"


def test_zoom_and_hidden_series_outlive_new_data() -> None:
    before, after = (metric_figure(tidy(loss=dict.fromkeys(range(1, n), 0.0)), ["loss"]) for n in (5, 9))
    assert before.layout.uirevision == after.layout.uirevision == "kept"
    assert [t.uid for t in before.data] == [t.uid for t in after.data] == ["loss"]
