from math import exp, log

import numpy as np
import pytest
import torch

from engine.grpo.advantages import group_advantages
from engine.grpo.kl import kl_estimate, penalized_advantages


class TestByHand:
    @pytest.mark.parametrize(("estimator", "value"), [("k1", log(2)), ("k2", log(2) ** 2 / 2), ("k3", log(2) - 0.5)])
    def test_half_against_a_quarter(self, array, estimator, value):
        estimate = kl_estimate(array([log(1 / 2)]), array([log(1 / 4)]), estimator)
        assert float(estimate[0]) == pytest.approx(value, abs=1e-6)

    @pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
    def test_equal_policies_have_none(self, array, estimator):
        assert float(kl_estimate(array([-1.0]), array([-1.0]), estimator)[0]) == 0.0

    def test_k3_is_never_negative(self, array):
        differences = [-3, -0.1, 0, 0.1, 3]
        estimate = np.asarray(kl_estimate(array([0] * 5), array(differences), "k3"))
        assert estimate.tolist() == pytest.approx([exp(d) - d - 1 for d in differences], abs=1e-5)
        assert (estimate >= 0).all()

    def test_the_mean_of_k3_under_the_policy_is_the_kl(self, array):
        p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
        estimate = np.asarray(kl_estimate(array(np.log(p)), array(np.log(q)), "k3"))
        assert float(p @ estimate) == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-6)

    @pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
    def test_masked_places_are_0_whatever_stands_there(self, array, estimator):
        estimate = kl_estimate(
            array([[-1.0, -800.0]]), array([[-2.0, float("nan")]]), estimator, mask=array([[1.0, 0.0]]) > 0
        )
        assert float(estimate[0, 1]) == 0.0
        assert float(estimate[0, 0]) > 0.0


class TestGradients:
    """Over the policy's own samples, in expectation: two tokens, p = sigmoid(x) for the first, reference 1/4, 3/4."""

    @staticmethod
    def expected_gradient(estimator):
        x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        log_p = torch.stack([torch.nn.functional.logsigmoid(x), torch.nn.functional.logsigmoid(-x)])
        estimate = kl_estimate(log_p, torch.tensor([0.25, 0.75], dtype=torch.float64).log(), estimator)
        (gradient,) = torch.autograd.grad((log_p.exp().detach() * estimate).sum(), x)
        return float(gradient)

    @staticmethod
    def gradient_of(divergence):
        x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        p = torch.stack([torch.sigmoid(x), torch.sigmoid(-x)])
        (gradient,) = torch.autograd.grad(divergence(p, torch.tensor([0.25, 0.75], dtype=torch.float64)), x)
        return float(gradient)

    def test_k2_has_the_gradient_of_the_kl(self):
        expected = self.gradient_of(lambda p, q: (p * (p / q).log()).sum())
        assert self.expected_gradient("k2") == pytest.approx(expected)

    def test_k3_has_the_gradient_of_the_kl_turned_round(self):
        expected = self.gradient_of(lambda p, q: (q * (q / p).log()).sum())
        assert self.expected_gradient("k3") == pytest.approx(expected)

    def test_k1_has_none(self):
        assert self.expected_gradient("k1") == pytest.approx(0.0, abs=1e-12)


class TestInTheReward:
    def test_it_is_the_advantage_of_the_penalized_reward_where_nothing_is_scaled(self, array):
        rewards, divergence = array([[1.0, 0.0, 0.0, 1.0]]), array([[2.0, 1.0, 0.0, 1.0]])
        for baseline in ("none", "group_mean", "leave_one_out"):
            stats = group_advantages(rewards, baseline=baseline, scale="none")
            penalized = penalized_advantages(stats.advantages, divergence, beta=0.1, baseline=baseline)
            whole = group_advantages(rewards - 0.1 * divergence, baseline=baseline, scale="none")
            assert np.asarray(penalized) == pytest.approx(np.asarray(whole.advantages), abs=1e-6)

    def test_in_a_flat_group_it_is_all_there_is_and_stays_small(self, array):
        """All right; divergences of 3 and 1 nats: ∓ 0.01 · 1, where a division by the std would give ∓ 0.7."""
        rewards, divergence = array([[1.0, 1.0]]), array([[3.0, 1.0]])
        stats = group_advantages(rewards)
        penalized = penalized_advantages(stats.advantages, divergence, beta=0.01, baseline="group_mean")
        assert np.asarray(penalized)[0].tolist() == pytest.approx([-0.01, 0.01])

    def test_a_missing_reward_keeps_its_0_and_is_in_no_mean(self, array):
        rewards, divergence = array([[1.0, float("nan"), 0.0]]), array([[2.0, float("nan"), 0.0]])
        stats = group_advantages(rewards, scale="none")
        penalized = penalized_advantages(stats.advantages, divergence, beta=0.1, baseline="group_mean")
        assert np.asarray(penalized)[0].tolist() == pytest.approx([0.4, 0.0, -0.4])
