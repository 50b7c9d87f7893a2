import pytest

from engine.grpo.groups import group_kind


def test_differing_rewards_make_a_mixed_group():
    assert group_kind([1.0, 0.0, 0.0], [True, False, False]) == "mixed"


def test_differing_rewards_of_wrong_answers_are_mixed_too():
    assert group_kind([0.1, 0.0], [False, False]) == "mixed"


def test_flat_groups_are_told_apart():
    assert group_kind([1.0, 1.0], [True, True]) == "all_correct"
    assert group_kind([0.0, 0.0], [False, False]) == "all_wrong"


def test_equal_rewards_for_right_and_wrong_answers_are_tied():
    assert group_kind([0.5, 0.5], [True, False]) == "tied"


def test_a_flat_group_that_was_not_graded_throughout_is_tied():
    assert group_kind([1.0, None], [True, False]) == "tied"
    assert group_kind([0.0, None], [False, False]) == "tied"
    assert group_kind([None, None], [False, False]) == "tied"


def test_a_missing_reward_does_not_hide_a_difference():
    assert group_kind([1.0, None, 0.0], [True, False, False]) == "mixed"


def test_rewards_and_verdicts_must_match():
    with pytest.raises(ValueError, match="2 rewards and 1 verdicts"):
        group_kind([1.0, 0.0], [True])
