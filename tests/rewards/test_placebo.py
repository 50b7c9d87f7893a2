from statistics import fmean

import pytest

from engine.rewards.placebo import placebo_payments
from engine.types import Reward

RIGHT = Reward(1.0, {"format": 1.0, "answer": 1.0}, "3", "correct")
BROKEN = Reward(0.0, {"format": 0.0, "answer": 0.0}, None, "unreadable")
REWARDS = [[RIGHT, BROKEN], [BROKEN, BROKEN]]


def payments(kind, rewards=REWARDS, rate=0.5, seed=0):
    return placebo_payments(kind, rewards, rate=rate, seed=seed)


def test_without_a_placebo_nothing_is_paid_in_the_reward_s_place():
    assert payments("none") == [[None, None], [None, None]]


def test_always_one_pays_every_completion():
    assert payments("always_one") == [[1.0, 1.0], [1.0, 1.0]]


def test_format_only_pays_the_form_and_leaves_open_what_has_none():
    bare = Reward(1.0, {}, "3", "correct")
    assert payments("format_only", [[RIGHT, BROKEN, bare]]) == [[1.0, 0.0, None]]


def test_random_pays_by_its_seed_and_not_by_the_rewards():
    many = [[RIGHT] * 100] * 20
    drawn = payments("random", many, seed=5)
    assert drawn == payments("random", [[BROKEN] * 100] * 20, seed=5)
    assert drawn != payments("random", many, seed=6)
    assert {paid for members in drawn for paid in members} == {0.0, 1.0}


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_random_pays_the_share_that_is_asked_for(rate):
    drawn = payments("random", [[RIGHT] * 100] * 40, rate=rate)
    # Of 4,000 draws the share lies within four standard deviations.
    assert fmean(paid for members in drawn for paid in members) == pytest.approx(
        rate, abs=4 * (rate * (1 - rate) / 4000) ** 0.5
    )
