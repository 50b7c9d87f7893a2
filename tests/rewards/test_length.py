import math

import numpy as np
import pytest

from engine.rewards.length import overlong_penalty, with_overlong_penalty
from engine.types import Completion, Group, Problem, Reward

LIMITS = {"max_tokens": 20, "buffer": 4, "penalty": 1.0}


def group(*lengths: int) -> Group:
    completions = tuple(Completion(tuple(range(length)), "", np.zeros(length, np.float32), "eos") for length in lengths)
    return Group(Problem("p", "What is it?", "7"), "What is it?", (7,), completions)


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, 0.0), (1, 0.0), (16, 0.0), (17, -0.25), (18, -0.5), (19, -0.75), (20, -1.0), (21, -1.0), (500, -1.0)],
)
def test_the_penalty_begins_at_the_buffer_and_rises_linearly_to_the_limit(length: int, expected: float):
    assert overlong_penalty(length, **LIMITS) == expected


def test_no_penalty_is_a_plain_zero():
    assert math.copysign(1.0, overlong_penalty(16, **LIMITS)) == 1.0


def test_the_numbers_of_the_paper():
    # Yu et al. 2025, section 4.1: 16,384 tokens expected and 4,096 more as the buffer.
    paper = {"max_tokens": 20_480, "buffer": 4_096, "penalty": 1.0}
    assert [overlong_penalty(length, **paper) for length in (16_384, 18_432, 20_480)] == [0.0, -0.5, -1.0]


def test_the_penalty_at_the_limit_is_the_one_asked_for():
    assert overlong_penalty(20, max_tokens=20, buffer=4, penalty=0.5) == -0.5
    assert overlong_penalty(18, max_tokens=20, buffer=4, penalty=0.5) == -0.25
    assert overlong_penalty(10, max_tokens=20, buffer=20, penalty=2.0) == -1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buffer": 0}, "buffer=0 must lie between 1 and max_tokens=20"),
        ({"buffer": 21}, "buffer=21 must lie between 1 and max_tokens=20"),
        ({"penalty": -1.0}, "penalty=-1.0 must be at least 0"),
        ({"penalty": math.nan}, "penalty=nan must be at least 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(change: dict[str, float], words: str):
    with pytest.raises(ValueError, match=words):
        overlong_penalty(5, **(LIMITS | change))


def test_the_value_has_the_penalty_added_and_the_rest_stays():
    right = Reward(1.0, {"format": 1.0, "answer": 1.0}, "7", "correct")
    wrong = Reward(0.0, {"format": 1.0, "answer": 0.0}, "8", "wrong", "differs from the gold")
    ((short, longest), (other,)) = with_overlong_penalty([group(5, 20), group(18)], [[right, wrong], [right]], **LIMITS)
    assert short == Reward(1.0, {"format": 1.0, "answer": 1.0, "overlong": 0.0}, "7", "correct")
    assert longest == Reward(
        -1.0, {"format": 1.0, "answer": 0.0, "overlong": -1.0}, "8", "wrong", "differs from the gold"
    )
    assert (other.value, other.parts["overlong"], other.verdict) == (0.5, -0.5, "correct")
    assert (right.value, right.parts) == (1.0, {"format": 1.0, "answer": 1.0})


def test_what_was_not_graded_stays_as_it_is():
    reward = Reward(None, {}, None, "not_graded", "ValueError: cannot parse")
    assert with_overlong_penalty([group(20)], [[reward]], **LIMITS) == ((reward,),)


@pytest.mark.parametrize("counts", [[1, 2], [3, 2], [2], [2, 2, 2]])
def test_another_number_of_rewards_than_completions_is_refused(counts: list[int]):
    rewards = [[Reward(1.0, {}, "7", "correct")] * count for count in counts]
    with pytest.raises(ValueError, match=r"for groups of \[2, 2\] completions; give one reward per completion"):
        with_overlong_penalty([group(5, 6), group(7, 8)], rewards, **LIMITS)
