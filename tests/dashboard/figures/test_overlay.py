import pandas as pd

from dashboard.figures.colours import run_colour
from dashboard.figures.overlay import RunLine, overlay_figure, run_of

A, B = RunLine("aa", "quick, seed 0", 1), RunLine("bb", "<b>$x$</b>", 2)


def frame(**more: list[float]) -> pd.DataFrame:
    columns = {"run_id": ["aa", "aa", "bb"], "step": [1, 2, 1], "x": [10.0, 20.0, 30.0], "value": [0.1, 0.3, 0.5]}
    return pd.DataFrame(columns | more)


def test_each_run_has_its_own_colour_and_an_escaped_label() -> None:
    figure = overlay_figure(frame(), [A, B], "reward", x_title="tokens")
    assert [trace.line.color for trace in figure.data] == [run_colour(1), run_colour(2)]
    assert figure.data[0].x.tolist() == [10, 20]
    assert figure.data[0].customdata.tolist() == [1, 2]
    assert run_of(figure.data[0].uid) == "aa"
    assert figure.data[1].name == "&lt;b&gt;&#36;x&#36;&lt;/b&gt;"


def test_a_smoothed_line_leaves_its_raw_one_faintly_visible() -> None:
    figure = overlay_figure(frame(smooth=[0.1, 0.2, 0.5]), [A], "reward")
    raw, smooth = figure.data
    assert (raw.opacity, raw.showlegend, raw.y.tolist()) == (0.28, False, [0.1, 0.3])
    assert (smooth.opacity, smooth.y.tolist()) == (1, [0.1, 0.2])


def test_non_finite_points_of_all_runs_are_counted() -> None:
    figure = overlay_figure(frame(value=[float("nan"), 0.3, float("inf")]), [A, B], "reward")
    assert figure.layout.xaxis.title.text == "step<br><i>2 non-finite points not drawn</i>"


def test_without_data_it_says_so() -> None:
    for empty in (frame().iloc[:0], pd.DataFrame()):
        figure = overlay_figure(empty, [A], "reward")
        assert figure.layout.annotations[0].text == "None of these runs has logged this."
