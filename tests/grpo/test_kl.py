from math import exp, log

import numpy as np
import pytest

from engine.grpo.kl import kl_estimate


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
