import math

import pytest

from engine.store.numbers import finite_or_none, join_number, join_numbers, split_number


@pytest.mark.parametrize("value", [0.0, -1.5, 1e308, math.inf, -math.inf])
def test_a_number_comes_back_as_it_went_in(value: float):
    assert join_number(*split_number(value)) == value


def test_nan_comes_back_as_nan():
    assert split_number(math.nan) == (None, "nan")
    assert math.isnan(join_number(None, "nan"))


def test_a_summary_that_is_not_finite_is_missing():
    assert [finite_or_none(value) for value in (0.5, math.nan, math.inf, None)] == [0.5, None, None, None]


def test_a_column_of_numbers_comes_back_as_one_array():
    values, kinds = zip(*map(split_number, (0.5, math.nan, -math.inf, math.inf)), strict=True)
    first, second, *rest = join_numbers(values, kinds).tolist()
    assert (first, rest) == (0.5, [-math.inf, math.inf])
    assert math.isnan(second)
    assert join_numbers([], []).tolist() == []
