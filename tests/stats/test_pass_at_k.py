from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stats.pass_at_k import curve_points, pass_at_k


def test_of_four_answers_with_one_right_half_of_the_pairs_hold_it():
    assert pass_at_k(4, [1], 2) == pytest.approx([0.5])


def test_at_k_1_it_is_the_share_of_right_answers():
    assert pass_at_k([4, 8], [1, 6], 1) == pytest.approx([0.25, 0.75])


def test_each_problem_stands_for_itself():
    # 1 − C(2,2)/C(4,2) = 5/6; none right gives 0, and of three right any two hold one.
    assert pass_at_k(4, [2, 0, 3], 2) == pytest.approx([5 / 6, 0.0, 1.0])


def test_fewer_wrong_answers_than_k_give_exactly_one():
    assert pass_at_k(1024, [1, 1024], 1024).tolist() == [1.0, 1.0]


def test_a_thousand_answers_neither_overflow_nor_lose_digits():
    expected = 1 - comb(1000, 500) / comb(1024, 500)
    assert pass_at_k(1024, [24], 500)[0] == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_it_is_the_share_of_all_subsets_that_hold_a_right_answer(case):
    n, right, k = case
    answers = [True] * right + [False] * (n - right)
    subsets = list(combinations(answers, k))
    assert pass_at_k(n, [right], k)[0] == pytest.approx(sum(map(any, subsets)) / len(subsets))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=5))
def test_it_never_falls_with_k(right):
    curve = np.array([pass_at_k(12, right, k) for k in range(1, 13)])
    assert (np.diff(curve, axis=0) >= -1e-12).all()


@pytest.mark.parametrize(
    ("n", "right", "k", "message"),
    [
        ([4, 2], [1, 1], 3, "k=3 is above n=2"),
        (4, [1], 0, "k=0 must be at least 1"),
        (4, [5], 2, "right must lie between 0 and n"),
    ],
)
def test_what_cannot_be_estimated_is_refused(n, right, k, message):
    with pytest.raises(ValueError, match=message):
        pass_at_k(n, right, k)


@pytest.mark.parametrize(
    ("k", "points"),
    [(1, []), (2, [2]), (3, [2, 3]), (8, [2, 4, 8]), (10, [2, 4, 8, 10]), (1024, [2**i for i in range(1, 11)])],
)
def test_it_is_reported_at_powers_of_two_and_at_k(k, points):
    assert curve_points(k) == points
