from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import parse_config
from engine.errors import RewardError
from engine.training.batch import build_batch
from engine.training.groups import RewardedGroup, assign_advantages
from engine.training.summary import rollout_metrics
from engine.types import Reward

BATCH = {"rollout.rollout_batch_size": 8, "rollout.group_size": 4}


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({}, 0.8660254),  # (1 - 1/2) / sqrt(1/3)
        ({"std": "population"}, 1.0),  # (1 - 1/2) / (1/2)
        ({"baseline": "leave_one_out", "scale": "none"}, 2 / 3),  # 1 - (0 + 0 + 1)/3
        ({"scale": "batch_std", "std": "population"}, 0.5 / (15 / 64) ** 0.5),  # three of eight right: 3/8 · 5/8
        ({"use_std_normalization": False}, 0.5),
        ({"loss_type": "no_baseline"}, 1.0),
    ],
)
def test_advantages_follow_the_settings_of_the_run(groups, rewards, settings, first):
    config = parse_config(BATCH | {"advantage_eps": 0.0} | settings)
    assert assign_advantages(groups, rewards, config).advantages[0, 0] == pytest.approx(first)


def test_a_completion_that_was_not_graded_is_in_no_statistic_of_group_or_batch(groups, rewards):
    holed = [[*rewards[0][:3], replace(rewards[0][3], value=None, verdict="not_graded")], rewards[1]]
    config = parse_config(BATCH | {"advantage_eps": 0.0, "scale": "batch_std", "baseline": "leave_one_out"})
    stats = assign_advantages(groups, holed, config)
    # Of 1, 0, 0 and 0, 0, 1, 0: mean 2/7, sample variance 2/7 · 5/7 · 7/6.
    assert float(stats.batch_std) == pytest.approx((10 / 42) ** 0.5)
    assert stats.advantages[0].tolist() == pytest.approx([1 / (10 / 42) ** 0.5, *[-0.5 / (10 / 42) ** 0.5] * 2, 0])


def test_every_completion_cut_off_and_excluded_leaves_no_advantage_and_no_spread(groups, rewards):
    cut = [
        replace(group, completions=tuple(replace(each, finish_reason="length") for each in group.completions))
        for group in groups
    ]
    stats = assign_advantages(cut, rewards, parse_config(BATCH | {"truncation.completions": "exclude"}))
    assert not stats.advantages.any()
    metrics = rollout_metrics(cut, rewards, stats)
    assert metrics["reward"] == 3 / 8
    assert "reward_std" not in metrics


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_wrong_number_of_rewards_is_refused_and_never_spread(groups, rewards, count):
    members = (rewards[0] * 2)[:count]
    with pytest.raises(RewardError, match=f"{count} for the 4 completions of problem p0"):
        RewardedGroup(groups[0], tuple(members))
    with pytest.raises(ValueError, match="one for each completion"):
        build_batch(groups, [members, rewards[1]], device=torch.device("cpu"))
    with pytest.raises(ValueError, match="one for each completion"):
        build_batch(groups, rewards, device=torch.device("cpu")).with_advantages(np.zeros((2, count), np.float32))
    with pytest.raises(ValueError, match="zip"):
        assign_advantages(groups, [members, rewards[1]], parse_config(BATCH))


def test_every_part_has_mean_and_std_over_the_graded_completions_that_have_it(groups, rewards):
    rewards[0][0] = replace(rewards[0][0], parts={"format": 1.0, "answer": 1.0, "mine": 4.0})
    rewards[1][3] = replace(rewards[1][3], parts={"format": 1.0, "answer": 0.0, "mine": 1.0})
    rewards[1][2] = Reward(None, {}, None, "not_graded")
    metrics = rollout_metrics(groups, rewards, assign_advantages(groups, rewards, parse_config(BATCH)))
    assert metrics["rewards/answer/mean"] == pytest.approx(2 / 7)
    assert metrics["rewards/answer/std"] == pytest.approx((10 / 49) ** 0.5)  # 2/7 · 5/7
    assert (metrics["rewards/format/mean"], metrics["rewards/format/std"]) == (1.0, 0.0)
    assert (metrics["rewards/mine/mean"], metrics["rewards/mine/std"]) == (2.5, 1.5)
