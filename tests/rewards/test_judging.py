import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RewardError
from engine.rewards.judging import FORMATS, final_gold, judge, read_gold
from engine.rewards.reading import LONGEST_ANSWER, read
from engine.rewards.readings import Expression, Quantity
from engine.rewards.spelling import plain

PIECES = [
    "1",
    "42",
    ",",
    ".",
    " ",
    "-",
    "+",
    "/",
    "=",
    "<",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\\{",
    "\\}",
    "\\frac",
    "\\frac12",
    "\\text{",
    "\\sqrt",
    "\\pm",
    "\\cup",
    "\\le ",
    "\\in ",
    "^",
    "_",
    "%",
    "$",
    "\\$",
    "or",
    " and ",
    "is",
    "x",
    "not",
    "million",
    " cm",
    "°",
    "½",
    "²",
    "−",
    "\\boxed{",
    "**",
    "\\left(",
    "\\begin{pmatrix}",
    "\\end{pmatrix}",
    "\\\\",
    "&",
    "the answer is ",
    "a.m.",
    ":",
    "\ue000",
    "\ue001",
    "\\approx",
    "\\infty",
    "nan",
    "e5",
    "\\overline{3}",
    "\ud800",
    "\x00",
    "ЖЖ",
    "!",
    "~",
    "\\,",
    "\\!",
    "#",
    "Yes",
]


@given(
    answer=st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=30),
    gold=st.sampled_from(["42", r"\frac{1}{2}", "x^2+1", "yes", r"\{1,2\}", "(0,1]", r"\text{(D)}", "101_2"]),
    format_name=st.sampled_from(sorted(FORMATS)),
)
def test_any_answer_is_judged_or_left_to_the_pool(answer: str, gold: str, format_name: str):
    if format_name == "gsm8k" and gold != "42" and gold != r"\frac{1}{2}":
        with pytest.raises(RewardError, match="compares numbers"):
            judge(answer, gold, format_name)
    else:
        judgement = judge(answer, gold, format_name)
        assert judgement is None or judgement.verdict in ("correct", "wrong", "unreadable")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_spelled_plainly_stays_as_it_is(text: str):
    assert plain(plain(plain(text))) == plain(plain(text))


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_gold_that_can_be_read_is_equal_to_itself(gold: str):
    try:
        read_gold(gold, "boxed")
    except RewardError:
        return
    judgement = judge(gold, gold, "boxed")
    assert judgement is not None
    assert judgement.verdict == "correct"


@pytest.mark.parametrize("piece", [*PIECES, "((", "x is ", "a,", "1=", "{x}", "<1", "$x$", "\\text{a}", "√(", "1^"])
def test_the_longest_answer_is_read_in_little_time(piece: str):
    text = (piece * LONGEST_ANSWER)[:LONGEST_ANSWER]
    started = time.perf_counter()
    read.cache_clear()
    read(text)
    read(text + "1")
    assert time.perf_counter() - started < 5  # what is not linear takes minutes


def test_an_answer_beyond_the_longest_is_unreadable_and_says_so():
    judgement = judge("1" + " " * LONGEST_ANSWER, "1", "boxed")
    assert judgement is not None
    assert (judgement.verdict, judgement.reason) == ("correct", "equal to 1")
    judgement = judge("x" * 1001, "1", "boxed")
    assert judgement is not None
    assert (judgement.verdict, judgement.reason) == ("unreadable", "the answer is longer than 1000 characters")


def test_a_first_look_leaves_expressions_to_the_leaf():
    asked = []

    def leaf(answer: Expression | Quantity, gold: Expression | Quantity) -> bool:
        asked.append((answer, gold))
        return True

    assert judge(r"\sqrt{12}", r"2\sqrt{3}", "boxed") is None
    judgement = judge(r"\sqrt{12}", r"2\sqrt{3}", "boxed", leaf)
    assert judgement is not None
    assert judgement.verdict == "correct"
    assert asked == [(Expression(r"\sqrt{12}"), Expression(r"2\sqrt{3}"))]


def test_one_wrong_number_decides_a_pair_without_the_leaf():
    judgement = judge(r"(1, \sqrt{12})", r"(2, 2\sqrt{3})", "boxed")
    assert judgement is not None
    assert judgement.verdict == "wrong"


@pytest.mark.parametrize(
    ("gold", "final"),
    [
        ("6*7=<<6*7=42>>42\n#### 42", "42"),
        (r"We have $6 \cdot 7 = \boxed{42}$, as was asked.", "42"),
        (r"First \boxed{1}, then \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("####", ""),
        (r"It is \boxed{4", ""),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
    ],
)
def test_gold_may_be_a_whole_worked_solution(gold: str, final: str):
    assert final_gold(gold) == final


@pytest.mark.parametrize("end", ["so it is\n#### 42", r"so it is \boxed{42}."])
def test_gold_with_a_long_solution_is_read_at_its_end(end: str):
    judgement = judge("42", "By 41 steps: " * 1000 + end, "answer_tag")
    assert judgement is not None
    assert (judgement.verdict, judgement.reason) == ("correct", "equal to 42")


@pytest.mark.parametrize(("gold", "words"), [("", "is not an answer"), ("seven apples or so", "is not a number")])
def test_gold_that_says_nothing_is_an_error_that_names_it(gold: str, words: str):
    with pytest.raises(RewardError, match=f"^gold: '{gold}' {words}"):
        judge("7", gold, "gsm8k")
