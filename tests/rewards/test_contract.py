import numpy as np
import pytest

from engine.rewards.contract import whole_reward
from engine.types import Reward


def test_a_whole_reward_is_given_back():
    reward = Reward(np.float32(0.5), {"format": 1, "mine": np.float64(2)}, None, "wrong")  # type: ignore[arg-type]
    assert whole_reward(reward) is reward


@pytest.mark.parametrize(
    ("reward", "reason"),
    [
        (Reward(1.0, {}, None, "right"), "verdict 'right' is not one of correct, wrong, unreadable, not_graded"),
        (Reward("1", {}, None, "wrong"), "value '1' is str, not a number"),
        (Reward(1.0, {}, 3, "correct"), "answer 3 is int, not a text or None"),
        (Reward(1.0, {}, "x" * 10_001, "correct"), "answer has 10,001 characters; at most 10,000"),
        (Reward(1.0, {}, None, "correct", None), "reason None is NoneType, not a text"),
        (Reward(1.0, [1.0], None, "correct"), "parts [1.0] is list, not a dict of names and numbers"),
        (Reward(1.0, {"a/b": 1.0}, None, "correct"), "part 'a/b' is no plain name of at most 40 letters, digits and _"),
        (
            Reward(1.0, {"length": 1.0}, None, "correct"),
            "part 'length' is one that the config adds to a reward; choose",
        ),
        (Reward(1.0, {"mine": None}, None, "correct"), "part 'mine' is None, not a finite number"),
        (Reward(1.0, {"mine": float("inf")}, None, "correct"), "part 'mine' is inf, not a finite number"),
        (Reward(1.0, {f"p{n}": 1.0 for n in range(17)}, None, "correct"), "parts has 17 names; at most 16"),
    ],
)
def test_a_breach_is_not_graded_with_what_is_wrong(reward, reason):
    found = whole_reward(reward)
    assert (found.value, found.verdict) == (None, "not_graded")
    assert found.reason.startswith(reason)
