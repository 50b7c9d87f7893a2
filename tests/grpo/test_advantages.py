import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.grpo.advantages import advantages_by_group, group_advantages

NAN = float("nan")
REWARDS = arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 8)),
    elements=st.sampled_from([0.0, 0.1, 0.35, 0.9, 1.0, -2.0, NAN]),
)

BASELINES = st.sampled_from(["group_mean", "leave_one_out"])
SCALES = st.sampled_from(["none", "group_std", "batch_std"])


class TestByHand:
    def test_two_right_of_four_are_centred_and_divided_by_the_sample_std(self, array):
        # mean 1/2; variance 4·(1/4)/3 = 1/3; (1/2)/sqrt(1/3) = 0.8660254
        stats = group_advantages(array([[0, 1, 1, 0]]), eps=0.0)
        assert np.asarray(stats.advantages) == pytest.approx(
            np.array([[-0.8660254, 0.8660254, 0.8660254, -0.8660254]]), abs=1e-6
        )
        assert float(stats.mean[0]) == 0.5
        assert float(stats.std[0]) == pytest.approx(0.57735027)

    def test_eps_is_added_to_the_std_and_not_to_the_variance(self, array):
        # 0.5 / (0.5773503 + 0.0001)
        advantages = group_advantages(array([[1, 0, 1, 0]]), eps=1e-4).advantages
        assert float(advantages[0, 0]) == pytest.approx(0.8658754, abs=1e-6)

    def test_the_population_std_divides_by_the_count(self, array):
        advantages = group_advantages(array([[1, 0, 1, 0]]), std="population", eps=0.0).advantages
        assert np.asarray(advantages).tolist() == [[1, -1, 1, -1]]

    def test_without_std_the_reward_is_only_centred(self, array):
        advantages = group_advantages(array([[0, 0, 1, 0]]), scale="none").advantages
        assert np.asarray(advantages).tolist() == [[-0.25, -0.25, 0.75, -0.25]]

    def test_without_baseline_and_std_the_raw_reward_is_kept_in_flat_groups_too(self, array):
        stats = group_advantages(array([[1, 0], [1, 1]]), baseline="none", scale="none")
        assert np.asarray(stats.advantages).tolist() == [[1, 0], [1, 1]]
        assert np.asarray(stats.flat).tolist() == [False, True]

    def test_without_baseline_but_with_std_a_flat_group_has_nothing_to_be_divided_by_and_gets_zero(self, array):
        # The std of (1, 0) is sqrt(1/2).
        advantages = group_advantages(array([[1, 0], [1, 1]]), baseline="none", eps=0.0).advantages
        assert np.asarray(advantages) == pytest.approx(np.array([[2**0.5, 0], [0, 0]]))

    def test_seven_times_the_same_fraction_is_flat_where_a_float_std_is_not_zero(self, array):
        for value in (0.35, 0.9, 0.1):
            stats = group_advantages(array([[value] * 7, [value] * 6 + [value + 1]]), eps=1e-6)
            assert np.asarray(stats.advantages)[0].tolist() == [0.0] * 7
            assert float(stats.std[0]) == 0.0
            assert np.asarray(stats.flat).tolist() == [True, False]

    def test_all_right_is_exactly_zero_without_any_eps(self, array):
        advantages = group_advantages(array([[1, 1, 1, 1], [0, 0, 0, 0]]), eps=0.0).advantages
        assert np.asarray(advantages).tolist() == [[0] * 4, [0] * 4]

    def test_a_group_of_one_gets_zero(self, array):
        stats = group_advantages(array([[1.0]]), eps=1e-4)
        assert float(stats.advantages[0, 0]) == 0.0
        assert float(stats.std[0]) == 0.0

    def test_a_missing_reward_is_left_out_of_the_statistics_and_gets_zero(self, array):
        # Of 1 and 0 alone: mean 1/2, population std 1/2.
        stats = group_advantages(array([[1, NAN, 0]]), std="population", eps=0.0)
        assert np.asarray(stats.advantages).tolist() == [[1, 0, -1]]
        assert (float(stats.mean[0]), int(stats.graded[0])) == (0.5, 2)

    def test_a_group_without_any_reward_has_advantages_of_zero_and_no_statistics(self, array):
        stats = group_advantages(array([[NAN, NAN]]))
        assert np.asarray(stats.advantages).tolist() == [[0, 0]]
        assert np.isnan([float(stats.mean[0]), float(stats.std[0])]).all()

    def test_the_mean_of_the_others_leaves_oneself_out(self, array):
        # 1 - (0 + 0 + 1)/3 = 2/3 and 0 - (1 + 0 + 1)/3 = -2/3; the centred 1/2 times 4/3.
        stats = group_advantages(array([[1, 0, 0, 1], [1, 1, 1, 1]]), baseline="leave_one_out", scale="none")
        assert np.asarray(stats.advantages) == pytest.approx(np.array([[2 / 3, -2 / 3, -2 / 3, 2 / 3], [0] * 4]))

    def test_a_missing_reward_is_none_of_the_others(self, array):
        # 1 - 0 and 0 - 1, the third does not count.
        advantages = group_advantages(array([[1, NAN, 0]]), baseline="leave_one_out", scale="none").advantages
        assert np.asarray(advantages).tolist() == [[1, 0, -1]]

    def test_the_only_graded_completion_has_no_others_and_gets_zero(self, array):
        advantages = group_advantages(array([[1, NAN], [NAN, NAN]]), baseline="leave_one_out").advantages
        assert np.asarray(advantages).tolist() == [[0, 0], [0, 0]]

    def test_the_std_of_the_batch_measures_all_groups_alike(self, array):
        # Rewards 1, 0, 3, 0 have mean 1 and population variance (0 + 1 + 4 + 1)/4 = 3/2.
        stats = group_advantages(array([[1, 0], [3, 0]]), scale="batch_std", std="population", eps=0.0)
        assert float(stats.batch_std) == pytest.approx(1.5**0.5)
        expected = np.array([[0.5, -0.5], [1.5, -1.5]]) / 1.5**0.5
        assert np.asarray(stats.advantages) == pytest.approx(expected)

    def test_under_the_std_of_the_batch_a_flat_group_has_no_advantage(self, array):
        advantages = group_advantages(array([[1, 1], [1, 0]]), scale="batch_std").advantages
        assert np.asarray(advantages)[0].tolist() == [0, 0]
        assert np.asarray(advantages)[1].tolist() == pytest.approx([1, -1], rel=1e-5)  # 1/2 over sample std 1/2

    def test_without_baseline_a_flat_group_is_still_measured_in_the_std_of_the_batch(self, array):
        advantages = group_advantages(array([[1, 1], [1, 0]]), baseline="none", scale="batch_std", eps=0.0).advantages
        assert np.asarray(advantages) == pytest.approx(np.array([[2, 2], [2, 0]]))

    def test_a_flat_batch_has_a_std_of_exactly_zero_and_gives_zero(self, array):
        for baseline in ("none", "group_mean", "leave_one_out"):
            stats = group_advantages(array([[0.35] * 7] * 3), baseline=baseline, scale="batch_std", eps=0.0)
            assert not np.asarray(stats.advantages).any()
            assert float(stats.batch_std) == 0.0

    def test_a_batch_without_any_reward_has_no_std(self, array):
        stats = group_advantages(array([[NAN, NAN]]), scale="batch_std")
        assert np.asarray(stats.advantages).tolist() == [[0, 0]]
        assert np.isnan(float(stats.batch_std))

    def test_interleaved_groups_are_joined_by_id(self, array):
        advantages = advantages_by_group(array([1, 0, 0, 1]), ["a", "b", "a", "b"], std="population", eps=0.0)
        assert np.asarray(advantages).tolist() == [1, -1, -1, 1]

    def test_groups_by_id_may_differ_in_size(self, array):
        advantages = advantages_by_group(array([1, 5, 0, 3, 2]), [7, 8, 7, 8, 7], scale="none")
        assert np.asarray(advantages).tolist() == [0, 1, -1, -1, 1]

    def test_an_infinite_reward_is_refused(self, array):
        with pytest.raises(ValueError, match="infinite"):
            group_advantages(array([[1, float("inf")]]))

    def test_rewards_must_be_grouped(self, array):
        with pytest.raises(ValueError, match=r"\(prompts, group\)"):
            group_advantages(array([1, 0]))

    def test_every_reward_needs_a_group_id(self, array):
        with pytest.raises(ValueError, match="2 entries for 3 rewards"):
            advantages_by_group(array([1, 0, 1]), [0, 0])


def test_bfloat16_rewards_are_widened_before_the_mean():
    # 2.015625 follows 2 in bfloat16, so their mean does not exist there.
    # Deviations -d, -d, -d, 3d; sample variance 12d²/3, std 2d.
    rewards = torch.tensor([[2, 2, 2, 2.015625]], dtype=torch.bfloat16)
    stats = group_advantages(rewards, eps=0.0)
    assert stats.advantages.dtype == torch.float32
    assert stats.advantages.tolist() == [[-0.5, -0.5, -0.5, 1.5]]


def test_integer_rewards_are_widened():
    assert group_advantages(np.array([[1, 0]]), scale="none").advantages.tolist() == [[0.5, -0.5]]


@given(REWARDS, BASELINES, SCALES, st.sampled_from([0.0, 1e-6]))
def test_centred_advantages_are_finite_and_sum_to_zero(rewards, baseline, scale, eps):
    stats = group_advantages(rewards, baseline=baseline, scale=scale, eps=eps)
    assert np.isfinite(stats.advantages).all()
    assert stats.advantages.sum(axis=1) == pytest.approx(np.zeros(len(rewards)), abs=1e-5)


@given(REWARDS, BASELINES, SCALES)
def test_a_flat_group_has_exactly_no_advantage_and_any_other_has_some(rewards, baseline, scale):
    stats = group_advantages(rewards, baseline=baseline, scale=scale, eps=0.0)
    for row, advantages, flat in zip(rewards, stats.advantages, stats.flat, strict=True):
        assert flat == (len(set(row[~np.isnan(row)].tolist())) <= 1)
        assert flat == (not advantages.any())


@given(REWARDS)
def test_leaving_oneself_out_equals_the_written_out_mean_of_the_others(rewards):
    advantages = group_advantages(rewards, baseline="leave_one_out", scale="none").advantages
    for row, found in zip(rewards.astype(np.float64), advantages, strict=True):
        for place, reward in enumerate(row):
            others = np.delete(row, place)
            others = others[~np.isnan(others)]
            expected = reward - others.mean() if len(others) and not np.isnan(reward) else 0.0
            assert found[place] == pytest.approx(expected, abs=1e-5)


@given(REWARDS, SCALES, st.permutations(range(4)))
def test_the_order_of_groups_changes_nothing(rewards, scale, order):
    order = [place for place in order if place < len(rewards)]
    whole = group_advantages(rewards, scale=scale).advantages
    np.testing.assert_allclose(group_advantages(rewards[order], scale=scale).advantages, whole[order], atol=1e-6)


@given(
    REWARDS,
    st.sampled_from(["none", "group_mean", "leave_one_out"]),
    SCALES,
    st.sampled_from(["sample", "population"]),
)
def test_numpy_and_torch_agree(rewards, baseline, scale, std):
    ours = group_advantages(rewards, baseline=baseline, scale=scale, std=std)
    theirs = group_advantages(torch.asarray(rewards.copy()), baseline=baseline, scale=scale, std=std)
    for field, one, other in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6, err_msg=field)
