import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from engine.policy.adapter import add_lora
from engine.policy.attention import NAME, attention
from engine.policy.policy import load_policy


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
        ours, _ = attention(Module(), query, key, value, given, scaling=0.3)
        theirs, _ = sdpa_attention_forward(Module(), query, key, value, given, scaling=0.3)
        torch.testing.assert_close(ours, theirs)


def test_a_loaded_model_attends_by_it_also_beneath_an_adapter():
    policy = load_policy("tiny-math")
    for model in (policy.model, add_lora(policy, 4, 8.0).model):
        assert model.get_decoder().layers[0].self_attn.config._attn_implementation == NAME
