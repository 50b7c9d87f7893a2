from math import log

import pytest
import torch

from engine.grpo.log_probs import entropy_from_logits, next_tokens, token_log_probs, token_scores
from engine.grpo.masking import masked_mean


def test_row_t_scores_token_t_plus_1():
    # Row 0 gives token 1 three quarters, row 1 one quarter; row 2 scores what is not there.
    logits = torch.tensor([[[0, log(3)], [log(3), 0], [0, 0]]])
    aligned = next_tokens(logits, torch.tensor([[0, 1, 1]]))
    assert token_log_probs(*aligned)[0].tolist() == pytest.approx([log(3 / 4), log(1 / 4)])


def test_logits_are_divided_by_the_sampling_temperature_first():
    # log 4 / 2 = log 2, so p = 2/3; at temperature 1 it would be 4/5.
    logits = torch.tensor([[[0, log(4)]]])
    assert float(token_log_probs(logits, torch.tensor([[1]]), 2.0)) == pytest.approx(log(2 / 3))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_zero_is_refused(temperature):
    logits, token_ids = torch.zeros(1, 1, 2), torch.zeros(1, 1, dtype=torch.int64)
    for function in (
        lambda: token_log_probs(logits, token_ids, temperature),
        lambda: token_scores(logits, token_ids, temperature),
        lambda: entropy_from_logits(logits, temperature),
    ):
        with pytest.raises(ValueError, match="must be above 0"):
            function()


def test_entropy_of_known_distributions():
    # Uniform over 4; and 1/2, 1/4, 1/4.
    logits = torch.tensor([[[0, 0, 0, 0], [log(2), 0, 0, -torch.inf]]])
    assert entropy_from_logits(logits)[0].tolist() == pytest.approx([log(4), 0.5 * log(2) + 0.5 * log(4)])


def test_mean_entropy_is_over_unmasked_tokens_only():
    logits = torch.tensor([[[0.0, 0, 0, 0], [50, 0, 0, 0]]])
    assert float(masked_mean(entropy_from_logits(logits), torch.tensor([[True, False]]))) == pytest.approx(log(4))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_those_of_a_float32_log_softmax(temperature, dtype):
    generator = torch.Generator().manual_seed(0)
    logits = (torch.randn(3, 5, 11, generator=generator) * 4).to(dtype)
    logits[0, 0, 3] = -torch.inf
    token_ids = torch.randint(4, 11, (3, 5), generator=generator)
    distribution = torch.distributions.Categorical(logits=logits.float() / temperature)
    scores = token_scores(logits, token_ids, temperature)
    assert scores.log_probs.dtype == scores.entropy.dtype == torch.float32
    torch.testing.assert_close(scores.log_probs, distribution.log_prob(token_ids))
    torch.testing.assert_close(token_log_probs(logits, token_ids, temperature), scores.log_probs)
    torch.testing.assert_close(entropy_from_logits(logits, temperature), scores.entropy)
    expected = -(distribution.probs * distribution.logits.clamp(min=-1e30)).sum(-1)
    torch.testing.assert_close(scores.entropy, expected)


def test_gradients_flow_through_log_probs_and_not_through_entropy():
    logits = torch.tensor([[[0.0, log(3)]]], requires_grad=True)
    scores = token_scores(logits, torch.tensor([[1]]), 2.0)
    assert not scores.entropy.requires_grad
    scores.log_probs.sum().backward()
    # d log p_1 / dz = (onehot - p) / T with p_1 = sqrt(3) / (1 + sqrt(3))
    p = 3**0.5 / (1 + 3**0.5)
    assert logits.grad.flatten().tolist() == pytest.approx([-(1 - p) / 2, (1 - p) / 2])


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_entropy_of_two_tokens_has_its_known_gradient(temperature):
    # With p = 3/4, q = 1/4: H = p log(1/p) + q log(1/q), dH/dz = -p q log(p/q) / T for the likelier token.
    logits = torch.tensor([[[0.0, temperature * log(3)]]], requires_grad=True)
    entropy = token_scores(logits, torch.tensor([[1]]), temperature, entropy_graph=True).entropy
    assert float(entropy.detach()) == pytest.approx(0.75 * log(4 / 3) + 0.25 * log(4))
    entropy.sum().backward()
    slope = 3 / 16 * log(3) / temperature
    assert logits.grad.flatten().tolist() == pytest.approx([slope, -slope])


def test_the_gradient_of_the_entropy_is_that_of_minus_the_sum_of_p_log_p():
    logits = (torch.randn(2, 3, 50, generator=torch.Generator().manual_seed(0)) * 3).requires_grad_()
    token_scores(logits, torch.zeros(2, 3, dtype=torch.int64), 0.7, entropy_graph=True).entropy.sum().backward()
    ours, logits.grad = logits.grad, None
    p = torch.softmax(logits.double() / 0.7, -1)
    (-(p * p.log()).sum()).backward()
    torch.testing.assert_close(ours, logits.grad, rtol=1e-5, atol=1e-6)


def test_an_impossible_token_has_no_entropy_gradient():
    logits = torch.tensor([[[0.0, log(3), -torch.inf]]], requires_grad=True)
    token_scores(logits, torch.tensor([[1]]), entropy_graph=True).entropy.sum().backward()
    slope = 3 / 16 * log(3)
    assert logits.grad.flatten().tolist() == pytest.approx([slope, -slope, 0.0])


def test_without_autograd_the_entropy_has_no_graph():
    with torch.no_grad():
        scores = token_scores(torch.zeros(1, 1, 2, requires_grad=True), torch.tensor([[1]]), entropy_graph=True)
    assert not scores.entropy.requires_grad
    assert not scores.log_probs.requires_grad
