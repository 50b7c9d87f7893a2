from math import log

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Cohere2Config,
    Gemma2Config,
    GPT2Config,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from engine.policy.policy import PolicyError
from engine.training import forward
from engine.training.batch import Batch
from engine.training.forward import check_output_layer, score_tokens

WIDE = 2**16  # 4 tokens have a MiB of float32 logits
PROMPTS, LENGTHS = [4, 2, 5], [3, 6, 1]
MASK = torch.arange(6) < torch.tensor(LENGTHS).unsqueeze(1)
SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


def make_batch(vocabulary: int) -> Batch:
    """Return three rows: prompts of 4, 2 and 5 tokens, completions of 3, 6 and 1."""
    generator = torch.Generator().manual_seed(0)
    input_ids = torch.randint(0, vocabulary, (3, 8), generator=generator)
    response_ids = torch.zeros(3, 6, dtype=torch.int64)
    for row, (prompt, length) in enumerate(zip(PROMPTS, LENGTHS, strict=True)):
        response_ids[row, :length] = input_ids[row, prompt : prompt + length]
    return Batch(
        input_ids=input_ids,
        response_ids=response_ids,
        response_mask=MASK,
        loss_mask=MASK,
        sampler_log_probs=torch.zeros(3, 6),
        prompt_lengths=torch.tensor(PROMPTS),
        response_lengths=torch.tensor(LENGTHS),
        advantages=torch.zeros(3),
    )


@pytest.fixture
def wide() -> Qwen2ForCausalLM:
    """A model with so large a vocabulary that 10 tokens make three chunks of a MiB."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=WIDE, tie_word_embeddings=True, **SMALL)).eval()


def gradient(model, value: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    value.backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def relative(value: torch.Tensor, expected: torch.Tensor) -> float:
    return float((value - expected).detach().abs().max() / expected.detach().abs().max())


def test_scores_are_those_of_the_logits_of_the_whole_sequence(model):
    batch = make_batch(32)
    scores = score_tokens(model, batch, temperature=0.7)
    logits = model(input_ids=batch.input_ids).logits.detach() / 0.7
    for row, (prompt, length) in enumerate(zip(PROMPTS, LENGTHS, strict=True)):
        distribution = torch.distributions.Categorical(logits=logits[row, prompt - 1 : prompt - 1 + length])
        expected = distribution.log_prob(batch.response_ids[row, :length])
        torch.testing.assert_close(scores.log_probs[row, :length].detach(), expected)
        torch.testing.assert_close(scores.entropy[row, :length], distribution.entropy())
    assert not scores.log_probs[~MASK].any()
    assert not scores.entropy[~MASK].any()


def test_a_chunked_uniform_policy_has_the_log_prob_and_the_entropy_of_its_vocabulary(wide):
    wide.lm_head.weight.data.zero_()
    scores = score_tokens(wide, make_batch(WIDE), temperature=1.0, logits_memory=1)
    assert scores.log_probs[MASK].tolist() == pytest.approx([-16 * log(2)] * 10, rel=1e-6)
    assert scores.entropy[MASK].tolist() == pytest.approx([16 * log(2)] * 10, rel=1e-6)


@pytest.mark.parametrize("entropy_rows", [None, torch.tensor([False, True, True])], ids=["all", "two rows"])
def test_chunks_change_neither_values_nor_gradients(wide, entropy_rows):
    weights = torch.linspace(-1, 1, 18).view(3, 6)

    def value_and_gradient(logits_memory: int):
        scores = score_tokens(
            wide,
            make_batch(WIDE),
            temperature=0.7,
            logits_memory=logits_memory,
            entropy_rows=entropy_rows,
            entropy_graph=True,
        )
        entropy = torch.where(scores.entropy.isnan(), 0.0, scores.entropy)
        return scores, gradient(wide, (weights * (scores.log_probs + 10 * entropy)).sum())

    whole, whole_gradient = value_and_gradient(512)
    chunked, chunked_gradient = value_and_gradient(1)
    torch.testing.assert_close(chunked, whole, rtol=1e-6, atol=0.0, equal_nan=True)
    assert relative(chunked_gradient, whole_gradient) < 1e-5


def test_what_chunks_keep_for_the_backward_pass_is_less_than_one_token_of_logits(wide):
    def kept(logits_memory: int) -> int:
        bytes_kept = 0

        def pack(tensor):
            nonlocal bytes_kept
            bytes_kept += 0 if isinstance(tensor, torch.nn.Parameter) else tensor.nbytes
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            scores = score_tokens(wide, batch, temperature=0.7, logits_memory=logits_memory)
        assert scores.log_probs.requires_grad
        return bytes_kept

    batch = make_batch(WIDE)
    assert kept(512) > 10 * 4 * WIDE
    assert kept(1) < 4 * WIDE


def test_the_gradient_of_the_entropy_is_that_of_its_definition(wide):
    batch = make_batch(WIDE)
    entropy = score_tokens(wide, batch, temperature=0.7, logits_memory=1, entropy_graph=True).entropy
    ours = gradient(wide, entropy.sum())
    positions = torch.tensor(PROMPTS).unsqueeze(1) - 1 + torch.arange(6)
    rows = torch.arange(3).unsqueeze(1).expand(3, 6)
    logits = wide(input_ids=batch.input_ids).logits[rows[MASK], positions[MASK]]
    probabilities = torch.softmax(logits / 0.7, -1)
    theirs = gradient(wide, -(probabilities * probabilities.log()).sum())
    assert relative(ours, theirs) < 1e-4


def test_without_a_bonus_the_entropy_has_no_gradient(wide):
    for logits_memory in (1, 512):
        assert not score_tokens(wide, make_batch(WIDE), temperature=1.0, logits_memory=logits_memory).entropy.grad_fn


@pytest.mark.parametrize("logits_memory", [1, 512])
def test_entropy_is_nan_in_rows_that_were_not_asked_for_and_log_probs_are_there(wide, logits_memory):
    batch, rows = make_batch(WIDE), torch.tensor([False, True, False])
    every = score_tokens(wide, batch, temperature=1.0)
    some = score_tokens(wide, batch, temperature=1.0, logits_memory=logits_memory, entropy_rows=rows)
    torch.testing.assert_close(some.log_probs, every.log_probs)
    torch.testing.assert_close(some.entropy[1], every.entropy[1])
    assert torch.equal(some.entropy.isnan(), MASK & ~rows.unsqueeze(1))
    assert not some.entropy[~MASK].any()


def test_no_entropy_is_computed_when_no_row_asks_for_it(wide, monkeypatch):
    monkeypatch.setattr(forward, "token_scores", None)
    scores = score_tokens(wide, make_batch(WIDE), temperature=1.0, entropy_rows=torch.zeros(3, dtype=torch.bool))
    assert scores.entropy[MASK].isnan().all()
    assert scores.log_probs[MASK].isfinite().all()


def test_a_bfloat16_model_has_float32_scores(wide):
    batch = make_batch(WIDE)
    exact = score_tokens(wide, batch, temperature=1.0)
    for logits_memory in (1, 512):
        scores = score_tokens(wide.bfloat16(), batch, temperature=1.0, logits_memory=logits_memory)
        assert scores.log_probs.dtype == scores.entropy.dtype == torch.float32
        # Log-probs near −11 would be multiples of 1/16 in bfloat16.
        assert ((scores.log_probs[MASK] * 16) % 1 != 0).any()
        torch.testing.assert_close(scores, exact, rtol=0.0, atol=0.02)
        scores.log_probs.sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in wide.parameters())


@pytest.mark.parametrize(
    "config",
    [Qwen2Config(vocab_size=32, **SMALL), GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2)],
    ids=lambda config: config.model_type,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_model_whose_logits_come_from_its_output_layer_is_taken(config, dtype):
    check_output_layer(AutoModelForCausalLM.from_config(config).to(dtype).eval())


@pytest.mark.parametrize(
    "config",
    [
        Gemma2Config(vocab_size=32, head_dim=8, final_logit_softcapping=0.5, **SMALL),
        Cohere2Config(vocab_size=32, logit_scale=0.25, **SMALL),
    ],
    ids=lambda config: config.model_type,
)
def test_a_model_that_changes_its_logits_afterwards_is_refused(config):
    model = AutoModelForCausalLM.from_config(config).eval()
    with pytest.raises(PolicyError, match=rf"model type {config.model_type}: its logits differ .* use a model"):
        check_output_layer(model)


def test_a_model_without_an_output_layer_of_its_own_is_refused(wide, monkeypatch):
    monkeypatch.setattr(wide, "get_output_embeddings", lambda: None)
    with pytest.raises(PolicyError, match="model type qwen2 has no output layer"):
        check_output_layer(wide)
