import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stats.intervals import accuracy_interval, mean_interval, standard_error, wilson_interval


def test_wilson_s_interval_of_ten_in_twenty_has_the_known_ends():
    found = wilson_interval(10, 20)
    assert (found.low, found.high) == pytest.approx((0.2993, 0.7007), abs=1e-4)


def test_wilson_s_interval_has_a_width_where_nothing_and_where_all_is_right():
    z2 = 1.959964**2
    nothing, everything = wilson_interval(0, 10), wilson_interval(10, 10)
    assert (nothing.low, nothing.high) == pytest.approx((0.0, z2 / (10 + z2)), abs=1e-6)
    assert (everything.low, everything.high) == pytest.approx((10 / (10 + z2), 1.0), abs=1e-6)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_s_interval_holds_the_share_within_zero_and_one(case):
    right, n = case
    found = wilson_interval(right, n)
    assert 0 <= found.low <= right / n + 1e-12
    assert right / n - 1e-12 <= found.high <= 1


def test_the_standard_error_is_that_of_the_mean_over_problems():
    # Deviations ±0.5 of two problems: s = √0.5, s / √2 = 0.5.
    assert standard_error([0.0, 1.0]) == pytest.approx(0.5)
    assert math.isnan(standard_error([1.0]))


def test_several_answers_to_each_problem_give_mean_plus_and_minus_1_96_standard_errors():
    # Shares .25 .75 .25 .75 of 8: mean .5, s = √(4·.0625/3), s/√4 = .1443.
    found = accuracy_interval([8, 8, 8, 8], [2, 6, 2, 6])
    assert (found.low, found.high) == pytest.approx((0.5 - 1.96 * 0.14434, 0.5 + 1.96 * 0.14434), abs=1e-4)


def test_one_answer_to_each_problem_gives_wilson_s_interval():
    assert accuracy_interval([1] * 20, [1] * 10 + [0] * 10) == wilson_interval(10, 20)


def test_problems_that_do_not_differ_give_wilson_s_interval_over_the_problems():
    assert mean_interval([1.0, 1.0, 1.0]) == wilson_interval(3, 3)
    assert accuracy_interval([4, 4], [0, 0]) == wilson_interval(0, 2)


@pytest.mark.parametrize(("right", "n"), [(1, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_is_refused(right, n):
    with pytest.raises(ValueError, match="is no share"):
        wilson_interval(right, n)
