import numpy as np
import pandas as pd

from dashboard.figures.lines import metric_figure
from dashboard.frames.updates import tidy_updates
from engine.store.records import UpdateTable


def table(names: list[str], steps: list[int], updates: list[int], values: list[float]) -> UpdateTable:
    return UpdateTable(names, np.array(steps), np.array(updates), np.array(values))


def test_the_last_optimizer_step_of_a_step_lies_on_it_and_the_others_before_it() -> None:
    frame = tidy_updates(table(["loss"] * 6, [1, 1, 2, 2, 2, 2], [1, 2, 1, 2, 3, 4], [1.0] * 6), "aa")
    assert frame["step"].tolist() == [0.5, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert set(frame["run_id"]) == {"aa"}


def test_a_metric_that_one_optimizer_step_lacks_keeps_the_places_of_the_others() -> None:
    names = ["loss", "loss", "ratio/mean"]
    frame = tidy_updates(table(names, [1, 1, 1], [1, 2, 2], [0.0, 0.0, 1.0]), "aa")
    assert frame[frame["name"] == "ratio/mean"]["step"].tolist() == [1.0]


def test_no_optimizer_steps_are_an_empty_frame() -> None:
    frame = tidy_updates(table([], [], [], []), "aa")
    assert frame.empty
    assert list(frame.columns) == ["run_id", "name", "step", "value"]


def test_a_point_of_an_optimizer_step_belongs_to_the_step_above_it() -> None:
    frame = pd.DataFrame({"name": "loss", "step": [2 + 1 / 3, 2 + 2 / 3, 3.0], "value": [1.0, np.nan, 2.0]})
    (line,) = metric_figure(frame, ["loss"]).data
    assert line.customdata.tolist() == [3, 3, 3]


def test_an_axis_need_not_begin_at_zero() -> None:
    frame = pd.DataFrame({"name": "ratio/mean", "step": [1.0, 2.0], "value": [1.0, 1.01]})
    assert metric_figure(frame, ["ratio/mean"]).layout.yaxis.rangemode == "tozero"
    assert metric_figure(frame, ["ratio/mean"], from_zero=False).layout.yaxis.rangemode is None
