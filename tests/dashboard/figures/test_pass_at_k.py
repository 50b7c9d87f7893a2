import numpy as np
import pandas as pd
import pytest

from dashboard.figures.pass_at_k import pass_figure
from dashboard.frames.evaluations import pass_curve
from engine.store.records import AnswerCounts, EvaluationRow
from tests.store.filled import NOON


def row(step: int = 0, **metrics: float) -> EvaluationRow:
    return EvaluationRow(1, "a", step, "validation", "sampled", 0.5, 16, 0.5, metrics, NOON)


COUNTS = AnswerCounts(np.array([4, 4, 4, 4]), np.array([4, 2, 2, 0]))


def test_a_curve_goes_from_one_answer_to_all_with_the_interval_over_the_problems() -> None:
    curve = pass_curve(row(**{"majority@4": 0.5}), COUNTS)
    assert curve["k"].tolist() == [1, 2, 4]
    # Pairs: 1, 5/6, 5/6, 0. Shares at 1: 1, .5, .5, 0 with s / 2 = .2041.
    assert curve["share"].tolist() == pytest.approx([0.5, (1 + 5 / 3) / 4, 0.75])
    assert (curve["low"][0], curve["high"][0]) == pytest.approx((0.5 - 0.4001, 0.5 + 0.4001), abs=1e-3)
    assert curve["majority"].isna().tolist() == [True, True, False]
    assert set(curve["curve"]) == {"step 0, sampled at T = 0.5"}


def test_several_evaluations_have_a_colour_each_and_one_star_in_the_legend() -> None:
    curves = [pass_curve(row(step, **{"majority@4": 0.5}), COUNTS) for step in (0, 10)]
    figure = pass_figure(pd.concat(curves, ignore_index=True))
    lines = [trace for trace in figure.data if trace.uid.startswith("pass-")]
    assert [trace.name for trace in lines] == ["step 0, sampled at T = 0.5", "step 10, sampled at T = 0.5"]
    assert len({trace.line.color for trace in lines}) == 2
    assert [trace.showlegend for trace in figure.data if trace.uid.startswith("majority")] == [True, False]
    assert figure.layout.xaxis.ticktext == ("1", "2", "4")


def test_without_stored_answers_it_says_so() -> None:
    nothing = AnswerCounts(np.array([], np.int64), np.array([], np.int64))
    figure = pass_figure(pass_curve(row(), nothing))
    assert not figure.data
    assert figure.layout.annotations[0].text == "No answers to draw."
