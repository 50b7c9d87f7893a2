import numpy as np
import pandas as pd

from dashboard.frames.axes import with_x
from dashboard.frames.smoothing import ema, rolling, smoothed

NAN, INF = float("nan"), float("inf")


def frame(*rows: tuple[str, str, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["run_id", "name", "step", "value"])


RUN = frame(
    ("a", "reward", 1, 0.1),
    ("a", "reward", 2, 0.2),
    ("a", "eval", 0, 0.05),
    ("a", "num_tokens", 1, 100.0),
    ("a", "num_tokens", 2, 250.0),
    ("a", "step_time", 1, 30.0),
    ("a", "step_time", 2, 90.0),
    ("b", "reward", 1, 0.3),
)


def x_of(axis: str, run: str, name: str) -> list[float]:
    placed = with_x(RUN, axis)  # type: ignore[arg-type]
    return placed[(placed["run_id"] == run) & (placed["name"] == name)]["x"].tolist()


def test_steps_are_their_own_axis() -> None:
    assert x_of("step", "a", "reward") == [1, 2]


def test_tokens_come_from_the_run_and_start_at_zero() -> None:
    assert x_of("tokens", "a", "reward") == [100, 250]
    assert x_of("tokens", "a", "eval") == [0]


def test_minutes_are_the_sum_of_the_steps() -> None:
    assert x_of("minutes", "a", "reward") == [0.5, 2.0]


def test_a_value_without_a_place_on_the_axis_is_left_out() -> None:
    assert x_of("tokens", "b", "reward") == []


def test_an_empty_frame_can_be_placed_and_smoothed() -> None:
    for axis in ("step", "tokens", "minutes"):
        assert len(smoothed(with_x(RUN.iloc[:0], axis), "ema", 0.9)) == 0  # type: ignore[arg-type]


def test_the_average_has_no_start_up_bias() -> None:
    np.testing.assert_allclose(ema(pd.Series([4.0, 4.0, 4.0]), 0.9), [4, 4, 4])
    # Weights 1 and 0.5: (0.5 * 0 + 1 * 3) / 1.5 = 2.
    np.testing.assert_allclose(ema(pd.Series([0.0, 3.0]), 0.5), [0, 2])


def test_smoothing_passes_over_what_is_not_finite() -> None:
    np.testing.assert_allclose(ema(pd.Series([0.0, NAN, INF, 3.0]), 0.5), [0, NAN, NAN, 2])
    np.testing.assert_allclose(rolling(pd.Series([1.0, NAN, 3.0, 5.0]), 2), [1, NAN, 3, 4])


def test_runs_and_metrics_are_smoothed_apart() -> None:
    rows = frame(("a", "x", 1, 0.0), ("b", "x", 1, 9.0), ("a", "x", 2, 2.0), ("a", "y", 1, 7.0))
    smooth = smoothed(rows, "rolling", 2).sort_index()["smooth"]
    assert smooth.tolist() == [0, 9, 1, 7]
