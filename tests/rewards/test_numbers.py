from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rewards.numbers import read_number

# fmt: off
NOT_ONE_NUMBER = [
    "", " ", ".", "-", ",", "12 13", "1,2", "1,23,456", "1234,567", "3/0", "2+2", "6*7=42", "x = 5", "25%",
    "41 or 42", "four", "٤٢", "0x2a", "1_000", "--5", "1/2/3", "nan", "inf", "**", "$$", r"\boxed{}", "4²", "2 4/3",
    "2 3/0", "1e999", "10^10^10", "10^99999", "9^9", "5!", "3x", "1.2.3", "1 000",
]
# fmt: on


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42),
        (" 42 ", 42),
        ("42.", 42),
        ("42.0", 42),
        ("+42", 42),
        ("-5", -5),
        ("−5", -5),
        ("- 5", -5),
        ("-0", 0),
        ("007", 7),
        ("1,365", 1365),
        ("12,345,678.5", Fraction(24691357, 2)),
        ("0.25", Fraction(1, 4)),
        (".5", Fraction(1, 2)),
        ("1/4", Fraction(1, 4)),
        ("-2 / 8", Fraction(-1, 4)),
        (r"\frac{1}{4}", Fraction(1, 4)),
        (r"-\dfrac{10}{40}", Fraction(-1, 4)),
        (r"\frac14", Fraction(1, 4)),
        ("$42$", 42),
        ("**42**", 42),
        ("**42.**", 42),
        (r"\(42\)", 42),
        (r"\boxed{42}", 42),
        (r"$\boxed{42.}$.", 42),
        ("４２", 42),
        (r"10{,}000", 10_000),
        (r"111, \! 111", 111_111),
        (r"10\,000", 10_000),
        ("2 1/3", Fraction(7, 3)),
        (r"-2\frac{1}{3}", Fraction(-7, 3)),
        ("2½", Fraction(5, 2)),
        ("½", Fraction(1, 2)),
        ("1e3", 1000),
        ("1.2E-2", Fraction(12, 1000)),
        (r"1.5 \times 10^{3}", 1500),
        ("1.5×10³", 1500),
        ("-3 * 10^2", -300),
        ("10^3", 1000),
        (r"0.\overline{3}", Fraction(1, 3)),
        (r"0.1\overline{6}", Fraction(1, 6)),
    ],
)
def test_a_number_is_read_exactly(text, number):
    assert read_number(text) == number


@pytest.mark.parametrize("text", NOT_ONE_NUMBER)
def test_a_text_that_is_not_one_number_is_not_read(text):
    assert read_number(text) is None


def test_a_third_is_not_its_decimal():
    assert read_number("1/3") != read_number("0.333333333333")


def test_large_integers_keep_their_last_digit():
    assert read_number("9007199254740993") != read_number("9007199254740992")


def test_a_number_of_enormous_length_is_not_read():
    assert read_number("9" * 100_000) is None


@given(st.integers(-(10**30), 10**30))
def test_an_integer_is_read_with_and_without_separators(number):
    assert read_number(str(number)) == read_number(f"{number:,}") == number


@given(st.fractions(max_denominator=10**9))
def test_a_fraction_is_read_as_itself(number):
    assert read_number(f"{number.numerator}/{number.denominator}") == number


@given(st.text() | st.text(alphabet="0123456789.,+-−/ $*\\frac{}"))
def test_any_text_is_read_or_refused_without_an_error(text):
    assert isinstance(read_number(text), Fraction | None)
