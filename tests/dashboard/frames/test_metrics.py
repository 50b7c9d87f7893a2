import numpy as np
import pandas as pd

from dashboard.frames.metrics import empty, last_steps, last_values, merged, tidy, without
from engine.store.records import MetricTable

NAN, INF = float("nan"), float("inf")


def frame(*rows: tuple[str, str, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["run_id", "name", "step", "value"])


def test_a_table_becomes_one_row_per_point_and_keeps_what_is_not_finite() -> None:
    table = MetricTable(["a", "a"], ["loss", "loss"], np.array([1, 2]), np.array([NAN, INF]))
    assert tidy(table)["step"].tolist() == [1, 2]
    np.testing.assert_array_equal(tidy(table)["value"], [NAN, INF])


def test_an_empty_table_has_the_columns() -> None:
    table = MetricTable([], [], np.array([], dtype=int), np.array([]))
    assert tidy(table).columns.tolist() == ["run_id", "name", "step", "value"]
    assert last_values(tidy(table)) == {}
    assert last_steps(empty()) == {}


def test_new_rows_are_laid_over_known_ones() -> None:
    known = frame(("a", "loss", 1, 0.1), ("a", "loss", 2, 0.2))
    both, changed = merged(known, frame(("a", "loss", 2, 0.5), ("a", "loss", 3, 0.3)))
    assert changed
    assert both["value"].tolist() == [0.1, 0.5, 0.3]


def test_rows_that_are_known_change_nothing() -> None:
    known = frame(("a", "loss", 1, NAN), ("a", "loss", 2, INF))
    same, changed = merged(known, known.copy())
    assert same is known
    assert not changed
    assert merged(known, empty()) == (known, False) or not merged(known, empty())[1]


def test_the_last_value_is_that_of_the_last_step_even_if_not_finite() -> None:
    rows = frame(("a", "loss", 2, NAN), ("a", "loss", 1, 0.5), ("b", "loss", 4, 0.25))
    last = last_values(rows)
    assert np.isnan(last["a", "loss"])
    assert last["b", "loss"] == 0.25
    assert last_steps(rows) == {"a": 2, "b": 4}
    assert without(rows, ["a"])["run_id"].tolist() == ["b"]
