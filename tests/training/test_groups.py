from dataclasses import replace

import pytest

from engine.config import parse_config
from engine.training.groups import assign_advantages

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
def test_advantages_follow_the_settings_of_the_run(rewards, settings, first):
    config = parse_config(BATCH | {"advantage_eps": 0.0} | settings)
    assert assign_advantages(rewards, config).advantages[0, 0] == pytest.approx(first)


def test_a_completion_that_was_not_graded_is_in_no_statistic_of_group_or_batch(rewards):
    holed = [[*rewards[0][:3], replace(rewards[0][3], value=None, verdict="not_graded")], rewards[1]]
    config = parse_config(BATCH | {"advantage_eps": 0.0, "scale": "batch_std", "baseline": "leave_one_out"})
    stats = assign_advantages(holed, config)
    # Of 1, 0, 0 and 0, 0, 1, 0: mean 2/7, sample variance 2/7 · 5/7 · 7/6.
    assert float(stats.batch_std) == pytest.approx((10 / 42) ** 0.5)
    assert stats.advantages[0].tolist() == pytest.approx([1 / (10 / 42) ** 0.5, *[-0.5 / (10 / 42) ** 0.5] * 2, 0])
