from dataclasses import replace
from math import log

import pytest
import torch
from transformers import Cohere2Config, Cohere2ForCausalLM, Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel

from engine.policy.policy import PolicyError
from engine.training import forward
from engine.training.batch import Batch
from engine.training.forward import check_output_layer, score_tokens

SMALL = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}


@pytest.fixture
def batch() -> Batch:
    """Three rows: prompts of 4, 2 and 5 tokens, completions of 3, 6 and 1."""
    prompts, lengths = torch.tensor([4, 2, 5]), torch.tensor([3, 6, 1])
    generator = torch.Generator().manual_seed(0)
    input_ids = torch.randint(0, 32, (3, 8), generator=generator)
    response_ids = torch.zeros(3, 6, dtype=torch.int64)
    for row, (prompt, length) in enumerate(zip(prompts.tolist(), lengths.tolist(), strict=True)):
        response_ids[row, :length] = input_ids[row, prompt : prompt + length]
    mask = torch.arange(6) < lengths.unsqueeze(1)
    return Batch(
        input_ids=input_ids,
        response_ids=response_ids,
        response_mask=mask,
        loss_mask=mask,
        sampler_log_probs=torch.zeros(3, 6),
        prompt_lengths=prompts,
        response_lengths=lengths,
        advantages=torch.zeros(3),
    )


@pytest.fixture
def small_chunks(monkeypatch):
    """Makes `score_tokens` take `limit` tokens at once, fewer than a MiB of logits of 32 tokens would allow."""
    pieces = forward._pieces

    def use(limit: int) -> None:
        monkeypatch.setattr(forward, "_pieces", lambda mask, rows, _: pieces(mask, rows, limit))

    return use


def gradient(model, value: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    value.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def relative(value: torch.Tensor, expected: torch.Tensor) -> float:
    return float((value - expected).abs().max() / expected.abs().max())


def test_scores_are_those_of_the_logits_of_the_whole_sequence(model, batch):
    scores = score_tokens(model, batch, temperature=0.7)
    logits = model(input_ids=batch.input_ids).logits.detach() / 0.7
    for row, (prompt, length) in enumerate(zip([4, 2, 5], [3, 6, 1], strict=True)):
        distribution = torch.distributions.Categorical(logits=logits[row, prompt - 1 : prompt - 1 + length])
        expected = distribution.log_prob(batch.response_ids[row, :length])
        torch.testing.assert_close(scores.log_probs[row, :length].detach(), expected)
        torch.testing.assert_close(scores.entropy[row, :length], distribution.entropy())
    assert not scores.log_probs[~batch.response_mask].any()
    assert not scores.entropy[~batch.response_mask].any()
