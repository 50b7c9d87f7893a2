import numpy as np
import pytest

from engine.config.sections import RewardConfig
from engine.rewards.composition import compose
from engine.types import Completion, Group, Problem, Reward

# 10 tokens, of whose 9 pairs 3 have been there before: 12 23 34 41 12 23 34 45 56.
TOKENS = (1, 2, 3, 4, 1, 2, 3, 4, 5, 6)
RIGHT = Reward(1.0, {"format": 1.0, "answer": 1.0}, "3", "correct", "equal to 3")
MISPLACED = Reward(0.0, {"format": 0.0, "answer": 1.0}, "3", "wrong", "right answer, but no box")
SLOW = Reward(None, {}, None, "not_graded", "stopped after 5 s")


def composed(*rewards: Reward, seed: int = 0, **settings) -> tuple[Reward, ...]:
    completions = tuple(Completion(TOKENS, "", np.zeros(10, np.float32), "eos") for _ in rewards)
    group = Group(Problem("p", "?", "3"), "?", (1,), completions)
    (members,) = compose([group], [rewards], RewardConfig(**settings), max_tokens=20, seed=seed)
    return members


def test_with_the_defaults_every_reward_stays_what_it_was():
    odd = Reward(0.1 + 0.2, {"mine": 0.7}, None, "wrong")
    given = (RIGHT, MISPLACED, SLOW, odd)
    assert composed(*given) == given


def test_every_term_by_hand():
    settings = {"answer": 2.0, "format": 0.5, "length": 0.4, "repetition": 0.9, "repetition_ngram": 2}
    right, misplaced = composed(RIGHT, MISPLACED, **settings)
    costs = {"length": pytest.approx(-0.2), "repetition": pytest.approx(-0.3)}  # 0.4 · 10/20 and 0.9 · 3/9
    assert right.value == pytest.approx(2 + 0.5 - 0.2 - 0.3)
    assert right.parts == {"format": 1.0, "answer": 1.0} | costs
    assert misplaced.value == pytest.approx(0 + 0 - 0.2 - 0.3)
    assert misplaced.parts == {"format": 0.0, "answer": 1.0} | costs


def test_a_cost_of_nothing_is_zero_and_not_minus_zero():
    (reward,) = composed(RIGHT, repetition=1.0, repetition_ngram=9)
    assert str(reward.parts["repetition"]) == "0.0"


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"placebo": "always_one"}, [1.0, 1.0]),
        ({"placebo": "always_one", "answer": 0.5, "format": 0.25}, [0.75, 0.5]),
        ({"placebo": "format_only"}, [1.0, 0.0]),
        ({"placebo": "random", "placebo_rate": 0.0}, [0.0, 0.0]),
    ],
)
def test_a_placebo_takes_the_place_of_the_reward(settings, values):
    assert [reward.value for reward in composed(RIGHT, MISPLACED, **settings)] == values


def test_a_placebo_leaves_verdict_answer_reason_and_raw_parts_as_they_are():
    for given, found in zip((RIGHT, MISPLACED), composed(RIGHT, MISPLACED, placebo="always_one"), strict=True):
        assert (found.verdict, found.answer, found.reason) == (given.verdict, given.answer, given.reason)
        assert found.parts == {**given.parts, "placebo": 1.0}


@pytest.mark.parametrize("placebo", ["none", "random", "always_one", "format_only"])
def test_what_was_not_graded_has_no_value_under_any_placebo(placebo):
    assert composed(SLOW, RIGHT, placebo=placebo, format=0.5, length=1.0)[0] == SLOW


def test_the_draws_of_the_random_placebo_follow_the_seed():
    drawn = [reward.value for reward in composed(*[RIGHT] * 50, placebo="random", seed=1)]
    assert drawn == [reward.value for reward in composed(*[MISPLACED] * 50, placebo="random", seed=1)]
    assert drawn != [reward.value for reward in composed(*[RIGHT] * 50, placebo="random", seed=2)]


@pytest.mark.parametrize(
    ("settings", "payer"),
    [({"format": 0.5}, "reward.format=0.5"), ({"placebo": "format_only"}, "reward.placebo=format_only")],
)
def test_a_reward_without_the_form_that_is_paid_is_not_graded_and_says_so(settings, payer):
    right, bare = composed(RIGHT, Reward(1.0, {"mine": 1.0}, "3", "correct"), **settings)
    assert right.value is not None
    assert (bare.value, bare.verdict) == (None, "not_graded")
    assert bare.reason.startswith(f"the reward gave no part `format`, which {payer} pays")


def test_every_completion_has_a_reward():
    with pytest.raises(ValueError, match="zip"):
        compose([Group(Problem("p", "?", "3"), "?", (1,), ())], [[RIGHT]], RewardConfig(), max_tokens=20, seed=0)
