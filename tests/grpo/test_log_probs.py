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
