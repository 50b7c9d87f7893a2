import numpy as np
import pandas as pd

from dashboard.figures.points import drawable, extremes, points, segments, table

INF, NAN = float("inf"), float("nan")


def test_non_finite_values_become_gaps_and_are_counted() -> None:
    drawn = drawable([1, 2, 3, 4, 5], [0.5, NAN, INF, -INF, 0.7])
    assert drawn.non_finite == 3
    np.testing.assert_array_equal(drawn.y, [0.5, NAN, NAN, NAN, 0.7])


def test_a_step_that_was_not_logged_is_a_gap_but_not_counted() -> None:
    drawn = drawable([1, 2, 3, 6, 7], [1.0, 2.0, 3.0, 6.0, 7.0])
    np.testing.assert_array_equal(drawn.x, [1, 2, 3, 4.5, 6, 7])
    np.testing.assert_array_equal(drawn.y, [1, 2, 3, NAN, 6, 7])
    assert drawn.non_finite == 0


def test_values_logged_every_tenth_step_are_one_line() -> None:
    drawn = drawable([0, 10, 20, 30, 35], [0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_array_equal(drawn.y, [0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_spike_of_one_step_survives_down_sampling() -> None:
    values = np.zeros(50_000)
    values[31_234], values[40_001] = 9.0, -7.0
    drawn = drawable(np.arange(50_000), values)
    assert len(drawn.y) <= 2_002
    assert (drawn.y.max(), drawn.y.min()) == (9.0, -7.0)
    assert drawn.steps[drawn.y.argmax()] == 31_234
    assert (drawn.steps[0], drawn.steps[-1]) == (0, 49_999)


def test_a_wide_gap_survives_down_sampling() -> None:
    steps = np.concatenate([np.arange(5_000), np.arange(9_000, 14_000)])
    drawn = drawable(steps, np.ones(10_000))
    assert np.isnan(drawn.y).sum() == 1


def test_each_bin_keeps_its_least_and_greatest_value() -> None:
    kept = extremes(np.array([3.0, 1.0, 2.0, 5.0, 9.0, 4.0, 8.0, 6.0]), limit=6)
    assert kept.tolist() == [0, 1, 3, 4, 5, 7]


def test_points_of_a_metric_come_in_the_order_of_their_steps() -> None:
    frame = pd.DataFrame({"name": ["a", "b", "a"], "step": [2, 1, 1], "value": [20.0, 5.0, 10.0]})
    drawn = points(frame, "a")
    assert drawn.x.tolist() == [1, 2]
    assert drawn.y.tolist() == [10, 20]


def test_nothing_gives_no_points() -> None:
    assert len(points(pd.DataFrame({"name": [], "step": [], "value": []}), "a").x) == 0
    assert len(points(pd.DataFrame(), "a").x) == 0


def test_segments_split_at_missing_steps() -> None:
    assert segments([]) == []
    assert segments([1, 2, 3, 7, 8]) == [slice(0, 3), slice(3, 5)]


def test_a_long_table_averages_neighbours_and_says_how_many() -> None:
    frame = pd.DataFrame({"name": "t", "step": range(1, 7), "value": [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]})
    wide, size = table(frame, ("t",), limit=3)
    assert size == 2
    assert wide["t"].to_dict() == {2: 2.0, 4: 6.0, 6: 10.0}


def test_a_table_keeps_missing_and_non_finite_values_missing() -> None:
    frame = pd.DataFrame({"name": ["a", "b", "a"], "step": [1, 1, 2], "value": [1.0, INF, 2.0]})
    wide, _ = table(frame, ("a", "b", "c"))
    assert wide["a"].tolist() == [1.0, 2.0]
    assert wide["b"].isna().all()
    assert "c" not in wide
