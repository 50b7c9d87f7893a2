import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, OPTConfig, Qwen2Config

from engine.policy.adapter import add_lora
from engine.policy.gradient_checkpointing import checkpointing_layers, enable_gradient_checkpointing
from engine.policy.policy import PolicyError, load_policy

CONFIGS = [
    Qwen2Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        attention_dropout=0.5,
    ),
    GPT2Config(vocab_size=32, n_embd=16, n_layer=2, n_head=2),
    OPTConfig(
        vocab_size=32,
        hidden_size=16,
        ffn_dim=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        word_embed_proj_dim=16,
        dropout=0.5,
        layerdrop=0.5,
    ),
]
TOKEN_IDS = torch.randint(0, 32, (3, 20), generator=torch.Generator().manual_seed(0))


def gradients_and_bytes_kept(model) -> tuple[dict[str, torch.Tensor], int]:
    bytes_kept = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal bytes_kept
        bytes_kept += 0 if isinstance(tensor, torch.nn.Parameter) else tensor.nbytes
        return tensor

    model.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = model(input_ids=TOKEN_IDS, use_cache=False).logits.log_softmax(-1)[..., 0].sum()
    value.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.requires_grad}, bytes_kept


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.model_type)
def test_gradients_are_those_of_evaluation_mode_and_less_is_kept_for_them(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    expected, kept = gradients_and_bytes_kept(model)
    enable_gradient_checkpointing(model)
    with checkpointing_layers(model):
        gradients, kept_less = gradients_and_bytes_kept(model)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert torch.equal(gradient, expected[name]), name
    assert kept_less < kept / 2


def test_an_adapter_behind_frozen_embeddings_has_the_same_gradients():
    model = add_lora(load_policy("tiny-math"), 4, 8.0).model
    expected, kept = gradients_and_bytes_kept(model)
    enable_gradient_checkpointing(model)
    with checkpointing_layers(model):
        gradients, kept_less = gradients_and_bytes_kept(model)
    assert len(gradients) == 2 * 7 * 4
    for name, gradient in gradients.items():
        assert torch.equal(gradient, expected[name]), name
    assert any(gradient.any() for gradient in gradients.values())
    assert kept_less < kept / 2


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.model_type)
def test_after_the_block_the_model_is_as_before_and_can_sample(config):
    model = AutoModelForCausalLM.from_config(config).eval()
    enable_gradient_checkpointing(model)

    def numbers() -> list:
        return [
            (name, key, value)
            for name, module in model.named_modules()
            for key, value in vars(module).items()
            if isinstance(value, int | float)
        ]

    before = numbers()
    with checkpointing_layers(model):
        assert numbers() != before
    assert numbers() == before
    with torch.inference_mode():
        first = model(input_ids=TOKEN_IDS[:, :-1], use_cache=True)
        last = model(input_ids=TOKEN_IDS[:, -1:], past_key_values=first.past_key_values, use_cache=True).logits[:, -1]
    torch.testing.assert_close(last, model(input_ids=TOKEN_IDS).logits[:, -1].detach(), rtol=0.0, atol=1e-5)


def test_a_model_that_it_is_not_enabled_for_is_left_alone():
    model = load_policy("tiny-math").model
    with checkpointing_layers(model):
        assert not any(module.training for module in model.modules())


def test_a_model_that_has_no_such_layers_is_refused(monkeypatch):
    model = load_policy("tiny-math").model
    monkeypatch.setattr(type(model), "supports_gradient_checkpointing", False)
    with pytest.raises(PolicyError, match=r"model\.gradient_checkpointing=true, but model type qwen2 cannot: .*"):
        enable_gradient_checkpointing(model)


def test_a_model_whose_layers_compute_something_else_then_is_refused():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIGS[0]).eval()
    layer = model.get_decoder().layers[0]
    layer.register_forward_hook(lambda layer, _, output: output * 1.5 if layer.training else output)
    with pytest.raises(PolicyError, match="computes other logits then, by up to"):
        enable_gradient_checkpointing(model)
