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


@pytest.mark.parametrize("name", WITH_RATIO)
def test_on_policy_the_loss_is_zero_and_the_gradient_is_not(name):
    log_probs = torch.tensor([[-1.0, -2.0], [-1.5, -0.5]], requires_grad=True)
    mask = torch.ones(2, 2, dtype=torch.bool)
    result = LOSSES[name](log_probs, torch.tensor([1.0, -1.0]), mask, old_log_probs=log_probs.detach())
    loss = aggregate(result.loss, aggregation_weights(mask, "token", totals=aggregation_totals(mask)))
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert log_probs.grad.tolist() == [[-0.25, -0.25], [0.25, 0.25]]


@pytest.mark.parametrize("name", LOSSES)
@given(data=st.data())
def test_at_ratio_one_the_gradient_is_the_plain_policy_gradient(name, data):
    floats = st.floats(-3, 3, width=32)
    advantages = torch.tensor(data.draw(st.lists(floats, min_size=2, max_size=2)))
    values = data.draw(st.lists(st.floats(-9, 0, width=32), min_size=6, max_size=6))
    log_probs = torch.tensor(values).reshape(2, 3).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    LOSSES[name](log_probs, advantages, mask, old_log_probs=log_probs.detach()).loss.sum().backward()
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


@pytest.mark.parametrize("name", LOSSES)
def test_masked_places_carry_no_loss_no_gradient_and_no_nan(name):
    log_probs = torch.tensor([[-1.0, NAN, -torch.inf]], requires_grad=True)
    old = torch.tensor([[-1.0, -2.0, NAN]])
    mask = torch.tensor([[True, False, False]])
    result = LOSSES[name](log_probs, torch.tensor([2.0]), mask, old_log_probs=old)
    result.loss.sum().backward()
    assert log_probs.grad.tolist() == [[-2, 0, 0]]
    assert result.loss[0, 1:].tolist() == [0, 0]
    assert result.ratio.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("name", WITH_RATIO)
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


@pytest.mark.parametrize("name", LOSSES)
def test_numpy_and_torch_agree(name):
    random = np.random.default_rng(0)
    log_probs, old = -random.random((2, 4, 6)).astype(np.float32)
    advantages = random.normal(size=4).astype(np.float32)
    mask = random.random((4, 6)) < 0.7
    ours = LOSSES[name](log_probs, advantages, mask, old_log_probs=old)
    tensors = [torch.asarray(each) for each in (log_probs, advantages, mask, old)]
    theirs = LOSSES[name](*tensors[:3], old_log_probs=tensors[3])
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
