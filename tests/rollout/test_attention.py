import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from engine.rollout.attention import grouped_attention, grouped_attention_in


class Module(torch.nn.Module):
    num_key_value_groups = 3
    is_causal = True


def test_one_new_token_attends_as_it_does_with_repeated_keys():
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(4, 6, 1, 8, generator=generator)
    key, value = torch.randn(2, 4, 2, 9, 8, generator=generator)
    mask = torch.ones(4, 1, 1, 9, dtype=torch.bool)
    mask[1, :, :, :5] = False
    for given in (mask, None):
        ours, _ = grouped_attention(Module(), query, key, value, given, scaling=0.3)
        theirs, _ = sdpa_attention_forward(Module(), query, key, value, given, scaling=0.3)
        torch.testing.assert_close(ours, theirs)


def test_it_is_used_inside_the_block_only(model):
    with grouped_attention_in(model):
        assert model.config._attn_implementation != "sdpa"
    assert model.config._attn_implementation == "sdpa"
