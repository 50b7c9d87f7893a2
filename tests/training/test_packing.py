import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma2Config, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config

from engine.policy.attention import use_attention
from engine.policy.gradient_checkpointing import checkpointing_layers, enable_gradient_checkpointing
from engine.training import passes
from engine.training.batch import Batch, pad_rows
from engine.training.forward import score_tokens
from engine.training.packing import pack_rows, packed_states, packs_rows
from engine.training.passes import packed_passes, row_passes

CPU = torch.device("cpu")
SMALL = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
PROMPTS = [(1, 2, 3), (7, 8), (11, 12, 13, 14, 15)]


def make_model(config) -> torch.nn.Module:
    torch.manual_seed(0)
    # As loaded: large enough weights for attention to matter.
    config.initializer_range = 0.3
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()


def make_batch(owners: list[int], lengths: list[int], *, shared: bool = True) -> Batch:
    rng = np.random.default_rng(0)
    rows = [(PROMPTS[owner], tuple(rng.integers(0, 32, n).tolist())) for owner, n in zip(owners, lengths, strict=True)]
    return pad_rows(rows, prompts=np.array(owners) if shared else None, device=CPU)


MIXED = ([0, 1, 0, 2, 1, 0, 2], [4, 1, 9, 2, 6, 1, 30])


def scored(model, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return log-probs and entropies (B, T) of `batch` and the gradient of their weighted sum."""
    model.zero_grad()
    weights = torch.linspace(-1, 2, batch.response_mask.numel()).view(batch.response_mask.shape)
    with checkpointing_layers(model):
        scores = score_tokens(model, batch, temperature=0.7, entropy_graph=True)
        (weights * (scores.log_probs + scores.entropy)).sum().backward()
    return (
        scores.log_probs.detach(),
        scores.entropy.detach(),
        torch.cat([parameter.grad.flatten() for parameter in model.parameters()]),
    )


def test_each_prompt_is_there_once_and_the_last_token_of_a_completion_not_at_all():
    rows = [((1, 2, 3), (4, 5)), ((1, 2, 3), (6,)), ((7, 8), (9, 10, 11))]
    packing = pack_rows(pad_rows(rows, prompts=np.array([0, 0, 1]), device=CPU))
    assert packing.token_ids.tolist() == [[7, 8, 1, 2, 3, 4, 9, 10]]
    assert packing.position_ids.tolist() == [[0, 1, 0, 1, 2, 3, 2, 3]]
    assert packing.scoring[0, :2].tolist() == [4, 5]
    assert packing.scoring[1, :1].tolist() == [4]
    assert packing.scoring[2].tolist() == [1, 6, 7]


def test_rows_of_their_own_prompts_are_packed_whole():
    packing = pack_rows(pad_rows([((1, 2, 3), (4, 5)), ((1, 2, 3), (6,))], device=CPU))
    assert packing.token_ids.tolist() == [[1, 2, 3, 1, 2, 3, 4]]
    assert packing.scoring[0].tolist() == [5, 6]
    assert packing.scoring[1, :1].tolist() == [2]
    assert all(block.mask is None for block in packing.blocks)


@pytest.mark.parametrize(
    "config",
    [
        Qwen2Config(**SMALL),
        LlamaConfig(**SMALL),
        GPT2Config(vocab_size=32, n_embd=16, n_layer=2, n_head=2, n_positions=64),
    ],
    ids=["qwen2", "llama", "gpt2"],
)
@pytest.mark.parametrize("shared", [True, False])
def test_packed_rows_have_the_scores_and_the_gradient_of_padded_ones(config, shared):
    model, batch = make_model(config), make_batch(*MIXED, shared=shared)
    assert not packs_rows(model)
    padded = scored(model, batch)
    model = make_model(config)
    use_attention(model)
    assert packs_rows(model)
    for one, other in zip(scored(model, batch), padded, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_checkpointed_layers_unpack_as_they_did_when_they_are_computed_again():
    model, batch = make_model(Qwen2Config(**SMALL)), make_batch(*MIXED)
    use_attention(model)
    whole = scored(model, batch)
    enable_gradient_checkpointing(model)
    assert packs_rows(model)
    for one, other in zip(scored(model, batch), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_group_of_one_token_answers_is_its_prompt_alone():
    model = make_model(Qwen2Config(**SMALL))
    use_attention(model)
    batch = make_batch([0, 0, 0], [1, 1, 1])
    packing = pack_rows(batch)
    assert packing.token_ids.tolist() == [[1, 2, 3]]
    expected = torch.log_softmax(model(torch.tensor([[1, 2, 3]])).logits[0, -1], -1)[batch.response_ids[:, 0]]
    torch.testing.assert_close(score_tokens(model, batch, temperature=1.0).log_probs[:, 0], expected)


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SMALL, sliding_window=4),
        MistralConfig(**SMALL, sliding_window=60),
        Gemma2Config(**SMALL, head_dim=4, final_logit_softcapping=None),
    ],
    ids=["window", "window wider than the trial", "window and soft cap"],
)
def test_a_model_that_attends_in_another_way_is_padded_and_scored_right(config):
    model, batch = make_model(config), make_batch(*MIXED)
    before = scored(model, batch)
    use_attention(model)
    assert not packs_rows(model)
    for one, other in zip(scored(model, batch), before, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_model_whose_tokens_meet_outside_of_attention_is_padded():
    class Mixing(torch.nn.Module):
        def forward(self, states):
            return states.cumsum(1)

    model = make_model(Qwen2Config(**SMALL))
    use_attention(model)
    model.get_decoder().layers[1].mlp = Mixing()
    assert not packs_rows(model)


def test_packed_states_are_computed_for_no_padding():
    model, seen = make_model(Qwen2Config(**SMALL)), []
    use_attention(model)
    batch = make_batch(*MIXED)
    model.get_decoder().layers[0].mlp.register_forward_hook(lambda _, given, __: seen.append(given[0].shape))
    packed_states(model, pack_rows(batch))
    prompts, completions = sum(map(len, PROMPTS)), sum(MIXED[1]) - len(MIXED[1])
    assert seen == [(1, prompts + completions, 16)]


def test_passes_are_of_like_size_and_keep_the_rows_of_a_prompt_together(monkeypatch):
    monkeypatch.setitem(passes.PASS_TOKENS, "cpu", 12)
    batch = make_batch([0, 1, 0, 1, 2, 2], [5, 4, 5, 4, 2, 2])
    # 13 tokens of prompt 0, 10 of prompt 1, 9 of prompt 2: three passes of at most 12 or so.
    taken = packed_passes(torch.tensor([5, 4, 3, 2, 1, 0]), batch)
    assert [sorted(part.tolist()) for part in taken] == [[0, 2], [1, 3], [4, 5]]


def test_a_pass_is_not_cut_where_the_rows_fit_into_one():
    model = make_model(Qwen2Config(**SMALL))
    use_attention(model)
    (only,) = row_passes(model, torch.arange(7), make_batch(*MIXED))
    assert sorted(only.tolist()) == list(range(7))


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_every_row_is_in_one_pass_whatever_the_limit(monkeypatch, limit):
    monkeypatch.setitem(passes.PASS_TOKENS, "cpu", limit)
    taken = packed_passes(torch.arange(7), make_batch(*MIXED))
    assert sorted(torch.cat(taken).tolist()) == list(range(7))
