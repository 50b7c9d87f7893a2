from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.grpo.aggregation import aggregate, aggregation_totals, aggregation_weights
from engine.grpo.diagnostics import clip_metrics
from engine.grpo.kl import kl_estimate
from engine.grpo.loss import LOSSES, clip_bindings

NAN = float("nan")
WITH_RATIO = ["grpo_no_clip", "grpo_clip"]
NEEDS_RATIO = [*WITH_RATIO, "cispo"]


def one_token(ratio, advantage, **clip):
    """Loss and d loss / d log p of one token."""
    log_probs = torch.tensor([[log(ratio) - 1]], requires_grad=True)
    result = LOSSES["grpo_clip"](
        log_probs,
        torch.tensor([advantage]),
        torch.ones(1, 1, dtype=torch.bool),
        old_log_probs=torch.tensor([[-1.0]]),
        **clip,
    )
    result.loss.sum().backward()
    return float(result.loss.detach()), float(log_probs.grad), bool(result.clipped_low), bool(result.clipped_high)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "low", "high"),
    [
        (1.5, 1.0, -1.2, 0.0, False, True),  # min(1.5, 1.2)
        (1.5, -1.0, 1.5, 1.5, False, False),  # min(-1.5, -1.2)
        (0.5, 1.0, -0.5, -0.5, False, False),  # min(0.5, 0.8)
        (0.5, -1.0, 0.8, 0.0, True, False),  # min(-0.5, -0.8)
        (1.1, 2.0, -2.2, -2.2, False, False),
        (1.5, 0.0, 0.0, 0.0, False, False),
    ],
)
def test_the_clip_acts_on_the_side_that_the_advantage_pushes_to(ratio, advantage, loss, gradient, low, high):
    result = one_token(ratio, advantage, clip_eps_low=0.2, clip_eps_high=0.2)
    assert result[:2] == pytest.approx((loss, gradient), abs=1e-5)
    assert result[2:] == (low, high)


def test_the_two_sides_have_their_own_bound():
    assert one_token(1.25, 1.0, clip_eps_low=0.2, clip_eps_high=0.28)[1] == pytest.approx(-1.25)
    assert one_token(1.3, 1.0, clip_eps_low=0.2, clip_eps_high=0.28)[0] == pytest.approx(-1.28)


def test_a_clipped_token_has_no_gradient_even_where_its_ratio_overflows():
    log_probs = torch.tensor([[-1.0]], requires_grad=True)
    old = torch.tensor([[-1000.0]])
    result = LOSSES["grpo_clip"](log_probs, torch.ones(1), torch.ones(1, 1, dtype=torch.bool), old_log_probs=old)
    result.loss.sum().backward()
    assert (float(result.loss.detach()), float(log_probs.grad)) == (pytest.approx(-1.2), 0.0)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "dual"),
    [
        (5.0, -1.0, 3.0, 0.0, True),  # min(5, 3)
        (2.0, -1.0, 2.0, 2.0, False),  # between 1 + eps and the dual clip the loss still grows
        (5.0, -2.0, 6.0, 0.0, True),
        (0.5, -1.0, 0.8, 0.0, False),  # the lower clip is where it was
        (5.0, 1.0, -1.2, 0.0, False),  # a positive advantage is the upper clip's
    ],
)
def test_the_dual_clip_bounds_what_a_negative_advantage_can_do(ratio, advantage, loss, gradient, dual):
    log_probs = torch.tensor([[log(ratio) - 1]], requires_grad=True)
    mask = torch.ones(1, 1, dtype=torch.bool)
    result = LOSSES["grpo_clip"](
        log_probs, torch.tensor([advantage]), mask, old_log_probs=torch.tensor([[-1.0]]), dual_clip=3.0
    )
    result.loss.sum().backward()
    assert (float(result.loss.detach()), float(log_probs.grad)) == pytest.approx((loss, gradient), abs=1e-5)
    assert bool(result.clipped_dual) is dual


@given(ratio=st.floats(0.05, 20), advantage=st.floats(-3, 3), dual=st.floats(1.5, 10))
def test_the_dual_clipped_loss_is_the_larger_of_objective_and_bound(ratio, advantage, dual):
    mask = torch.ones(1, 1, dtype=torch.bool)
    log_probs, old = torch.tensor([[log(ratio)]]), torch.zeros(1, 1)
    loss = LOSSES["grpo_clip"](log_probs, torch.tensor([advantage]), mask, old_log_probs=old, dual_clip=dual).loss
    objective = min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
    objective = max(objective, dual * advantage) if advantage < 0 else objective
    assert float(loss) == pytest.approx(-objective, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("ratio", "advantage", "weight"),
    [
        (1.5, 1.0, 1.28),  # min(1.5, 1.28)
        (1.5, -1.0, 1.28),
        (1.1, 2.0, 1.1),
        (0.01, -1.0, 0.01),  # nothing holds it below
        (1.5, 0.0, 1.28),
    ],
)
def test_cispo_weighs_the_log_prob_with_a_capped_ratio_and_drops_no_token(ratio, advantage, weight):
    log_probs = torch.tensor([[-1.0]], requires_grad=True)
    mask = torch.ones(1, 1, dtype=torch.bool)
    old = torch.tensor([[-1.0 - log(ratio)]])
    result = LOSSES["cispo"](log_probs, torch.tensor([advantage]), mask, old_log_probs=old, clip_eps_high=0.28)
    result.loss.sum().backward()
    # d/dlogp of -w·A·log p with w outside the graph
    assert float(result.loss.detach()) == pytest.approx(weight * advantage, abs=1e-6)
    assert float(log_probs.grad) == pytest.approx(-weight * advantage, abs=1e-6)
    assert bool(result.clipped_high) is (ratio > 1.28)


class TestSequenceRatio:
    mask = torch.tensor([[True, True, False], [True, True, True]])
    old = torch.full((2, 3), -2.0)

    def loss(self, ratios, name="grpo_clip", **settings):
        log_probs = (self.old + torch.log(torch.tensor(ratios))).requires_grad_()
        advantages = torch.tensor([1.0, -1.0])
        settings = {"old_log_probs": self.old, "ratio_level": "sequence"} | settings
        return log_probs, LOSSES[name](log_probs, advantages, self.mask, **settings)

    def test_it_is_the_geometric_mean_over_the_unmasked_tokens(self):
        # sqrt(4 · 1) = 2; cube root of 1 · 8 · 1 = 2; the 64 is masked.
        _, result = self.loss([[4.0, 1.0, 64.0], [1.0, 8.0, 1.0]])
        assert result.ratio.tolist() == [pytest.approx([2, 2, 1]), pytest.approx([2, 2, 2])]

    def test_the_clip_takes_or_leaves_a_whole_sequence(self):
        log_probs, result = self.loss([[4.0, 1.0, 1.0], [1.0, 8.0, 1.0]])
        result.loss.sum().backward()
        # Row 0, A = 1: min(2, 1.2), no gradient. Row 1, A = -1: 2 at each token, of gradient 2.
        assert result.loss.flatten().tolist() == pytest.approx([-1.2, -1.2, 0, 2, 2, 2])
        assert log_probs.grad.flatten().tolist() == pytest.approx([0, 0, 0, 2, 2, 2])
        assert result.clipped_high.tolist() == [[True, True, False], [False] * 3]

    def test_cispo_takes_it_for_its_weight(self):
        log_probs, result = self.loss([[4.0, 1.0, 1.0], [1.0, 8.0, 1.0]], "cispo", clip_eps_high=4.0)
        result.loss.sum().backward()
        assert log_probs.grad.flatten().tolist() == pytest.approx([-2, -2, 0, 2, 2, 2])

    @pytest.mark.parametrize("mode", ["mean", "constant", "token", "microbatch"])
    def test_the_gradient_is_that_through_the_mean(self, mode):
        """GSPO and GSPO-token agree where a row has one advantage and one weight."""
        random = torch.Generator().manual_seed(0)
        mask = torch.arange(6)[None, :] < torch.tensor([[6], [2], [4]])
        old = -torch.rand(3, 6, generator=random) - 1
        log_probs = (old + 0.3 * torch.randn(3, 6, generator=random)).requires_grad_()
        advantages = torch.tensor([0.7, -1.3, 0.4])
        weights = aggregation_weights(mask, mode, totals=aggregation_totals(mask), constant=10)

        settings = {"old_log_probs": old, "ratio_level": "sequence"}
        aggregate(LOSSES["grpo_no_clip"](log_probs, advantages, mask, **settings).loss, weights).backward()
        ours, log_probs.grad = log_probs.grad.clone(), None
        mean = torch.where(mask, log_probs - old, 0).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        (-(advantages[:, None] * mean.exp()) * weights).sum().backward()
        torch.testing.assert_close(ours, log_probs.grad, rtol=1e-5, atol=1e-8)

    def test_a_row_without_tokens_has_ratio_one_and_no_loss(self):
        mask, log_probs = torch.zeros(1, 2, dtype=torch.bool), torch.full((1, 2), NAN, requires_grad=True)
        settings = {"old_log_probs": torch.zeros(1, 2), "ratio_level": "sequence"}
        result = LOSSES["grpo_clip"](log_probs, torch.ones(1), mask, **settings)
        result.loss.sum().backward()
        assert (result.ratio.tolist(), result.loss.tolist()) == ([[1, 1]], [[0, 0]])
        assert log_probs.grad.tolist() == [[0, 0]]

    @given(st.lists(st.floats(-0.5, 0.5, width=32), min_size=3, max_size=3), st.floats(-2, 2, width=32))
    def test_on_a_sequence_of_one_token_it_is_the_ratio_of_the_token(self, differences, advantage):
        log_probs, old = torch.tensor(differences)[:, None], torch.zeros(3, 1)
        mask, advantages = torch.ones(3, 1, dtype=torch.bool), torch.full((3,), advantage)
        for name in NEEDS_RATIO:
            one = LOSSES[name](log_probs, advantages, mask, old_log_probs=old)
            other = LOSSES[name](log_probs, advantages, mask, old_log_probs=old, ratio_level="sequence")
            assert all(torch.equal(left, right) for left, right in zip(one, other, strict=True))


@pytest.mark.parametrize("name", WITH_RATIO)
def test_on_policy_the_loss_is_zero_and_the_gradient_is_not(name):
    log_probs = torch.tensor([[-1.0, -2.0], [-1.5, -0.5]], requires_grad=True)
    mask = torch.ones(2, 2, dtype=torch.bool)
    result = LOSSES[name](log_probs, torch.tensor([1.0, -1.0]), mask, old_log_probs=log_probs.detach())
    loss = aggregate(result.loss, aggregation_weights(mask, "token", totals=aggregation_totals(mask)))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert log_probs.grad.tolist() == [[-0.25, -0.25], [0.25, 0.25]]


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data())
def test_at_ratio_one_the_gradient_is_the_plain_policy_gradient(name, level, data):
    floats = st.floats(-3, 3, width=32)
    advantages = torch.tensor(data.draw(st.lists(floats, min_size=2, max_size=2)))
    values = data.draw(st.lists(st.floats(-9, 0, width=32), min_size=6, max_size=6))
    log_probs = torch.tensor(values).reshape(2, 3).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    settings = {"old_log_probs": log_probs.detach(), "ratio_level": level, "dual_clip": 3.0}
    LOSSES[name](log_probs, advantages, mask, **settings).loss.sum().backward()
    torch.testing.assert_close(log_probs.grad, torch.where(mask, -advantages[:, None], 0.0))


@given(
    ratio=st.floats(0.05, 4),
    advantage=st.floats(-3, 3),
    low=st.floats(0.05, 0.5),
    high=st.floats(0.05, 0.5),
)
def test_the_clipped_loss_is_the_smaller_of_the_two_products(ratio, advantage, low, high):
    loss, gradient, clipped_low, clipped_high = one_token(ratio, advantage, clip_eps_low=low, clip_eps_high=high)
    inside = min(max(ratio, 1 - low), 1 + high)
    assert loss == pytest.approx(-min(ratio * advantage, inside * advantage), rel=1e-4, abs=1e-5)
    assert gradient == pytest.approx(0 if clipped_low or clipped_high else -ratio * advantage, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", LOSSES)
def test_masked_places_carry_no_loss_no_gradient_and_no_nan(name, level):
    log_probs = torch.tensor([[-1.0, NAN, -torch.inf]], requires_grad=True)
    old = torch.tensor([[-1.0, -2.0, NAN]])
    mask = torch.tensor([[True, False, False]])
    result = LOSSES[name](log_probs, torch.tensor([2.0]), mask, old_log_probs=old, ratio_level=level)
    result.loss.sum().backward()
    assert log_probs.grad.tolist() == [[-2, 0, 0]]
    assert result.loss[0, 1:].tolist() == [0, 0]
    assert result.ratio.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("name", NEEDS_RATIO)
def test_a_ratio_needs_old_log_probs(name):
    with pytest.raises(ValueError, match="old_log_probs is missing"):
        LOSSES[name](torch.zeros(1, 1), torch.zeros(1), torch.ones(1, 1, dtype=torch.bool))


def test_the_plain_losses_report_the_ratio_they_do_not_correct_for():
    log_probs, old = torch.tensor([[log(0.3)]]), torch.tensor([[log(0.2)]])
    mask = torch.ones(1, 1, dtype=torch.bool)
    loss = LOSSES["reinforce_with_baseline"]
    assert float(loss(log_probs, torch.ones(1), mask, old_log_probs=old).ratio) == pytest.approx(1.5)
    assert float(loss(log_probs, torch.ones(1), mask).ratio) == 1.0


def test_advantages_may_be_given_per_token():
    log_probs, mask = torch.tensor([[-1.0, -2.0]]), torch.ones(1, 2, dtype=torch.bool)
    loss = LOSSES["no_baseline"](log_probs, torch.tensor([[1.0, -3.0]]), mask).loss
    assert loss.tolist() == [[1.0, -6.0]]


def test_the_ratio_is_outside_the_graph():
    log_probs = torch.tensor([[-1.0]], requires_grad=True)
    for loss in LOSSES.values():
        result = loss(log_probs, torch.ones(1), torch.ones(1, 1, dtype=torch.bool), old_log_probs=log_probs)
        assert not result.ratio.requires_grad


def test_clip_metrics_count_only_tokens_where_the_clip_binds(array):
    ratio, advantages = array([1.5, 1.5, 0.5, 0.5]), array([1, -1, 1, -1])
    bindings = clip_bindings(ratio, advantages, clip_eps_low=0.2, clip_eps_high=0.2)
    assert clip_metrics(*bindings, array([1, 1, 1, 1], "bool")) == (0.25, 0.25, 0.5)
    assert clip_metrics(*bindings, array([1, 0, 0, 0], "bool")) == (0, 1, 1)
    assert clip_metrics(*bindings, array([0, 0, 0, 0], "bool")) == (0, 0, 0)


@pytest.mark.parametrize("settings", [{}, {"ratio_level": "sequence"}, {"dual_clip": 1.05}])
@pytest.mark.parametrize("name", LOSSES)
def test_numpy_and_torch_agree(name, settings):
    random = np.random.default_rng(0)
    log_probs, old = -random.random((2, 4, 6)).astype(np.float32)
    advantages = random.normal(size=4).astype(np.float32)
    mask = random.random((4, 6)) < 0.7
    ours = LOSSES[name](log_probs, advantages, mask, old_log_probs=old, **settings)
    tensors = [torch.asarray(each) for each in (log_probs, advantages, mask, old)]
    theirs = LOSSES[name](*tensors[:3], old_log_probs=tensors[3], **settings)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-6)


def test_centred_advantages_on_policy_leave_beta_times_kl_as_the_loss():
    # log p = log 1/2, log p_ref = log 1/4: k3 = 1/2 + log 2 - 1; times 0.04
    log_probs, ref = torch.full((2, 1), log(0.5)), torch.full((2, 1), log(0.25))
    mask = torch.ones(2, 1, dtype=torch.bool)
    token_loss = LOSSES["grpo_clip"](log_probs, torch.tensor([1.0, -1.0]), mask, old_log_probs=log_probs).loss
    token_loss = token_loss + 0.04 * kl_estimate(log_probs, ref, "k3")
    weights = aggregation_weights(mask, "token", totals=aggregation_totals(mask))
    assert float(aggregate(token_loss, weights)) == pytest.approx(0.04 * (log(2) - 0.5), abs=1e-6)
