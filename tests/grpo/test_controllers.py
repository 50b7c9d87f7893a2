from math import inf, nan

import pytest

from engine.grpo.controllers import active_entropy_bonus, adapted_beta, adapted_entropy_bonus


class TestBeta:
    @pytest.mark.parametrize(
        ("kl", "factor"),
        [(0.10, 1.0), (0.11, 1.01), (0.09, 0.99), (0.12, 1.02), (5.0, 1.02), (0.0, 0.98)],
    )
    def test_it_grows_with_the_relative_error_and_by_a_fifth_of_the_gain_at_most(self, kl, factor):
        assert adapted_beta(0.5, kl, target=0.10, gain=0.1) == pytest.approx(0.5 * factor)

    def test_it_stays_above_0_at_the_largest_gain(self):
        assert adapted_beta(1.0, 0.0, target=1.0, gain=4.0) == pytest.approx(0.2)

    @pytest.mark.parametrize("kl", [nan, inf, -inf])
    def test_a_divergence_that_is_not_finite_leaves_it(self, kl):
        assert adapted_beta(0.5, kl, target=0.1, gain=0.1) == 0.5


class TestEntropyBonus:
    def test_it_grows_below_the_target_and_shrinks_above_it_down_to_0(self):
        assert adapted_entropy_bonus(0.01, 0.2, target=0.3, change=0.005) == pytest.approx(0.015)
        assert adapted_entropy_bonus(0.01, 0.4, target=0.3, change=0.005) == pytest.approx(0.005)
        assert adapted_entropy_bonus(0.001, 0.4, target=0.3, change=0.005) == 0.0
        assert adapted_entropy_bonus(0.01, nan, target=0.3, change=0.005) == 0.01

    def test_it_rests_while_the_entropy_is_above_the_target(self):
        assert active_entropy_bonus(0.01, 0.4, target=0.3) == 0.0
        assert active_entropy_bonus(0.01, 0.3, target=0.3) == 0.01
        assert active_entropy_bonus(0.01, None, target=0.3) == 0.01

    def test_without_a_target_it_is_what_it_is(self):
        assert active_entropy_bonus(0.01, 9.0, target=None) == 0.01
