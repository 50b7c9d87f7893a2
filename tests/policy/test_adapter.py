import json
import sys
from collections.abc import Callable

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.policy.adapter import CONFIG, WEIGHTS, add_lora, has_adapter, is_adapted, load_adapter
from engine.policy.policy import Policy, PolicyError, load_policy, save_policy
from engine.rollout.protocol import SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.training.batch import Batch
from engine.training.forward import check_output_layer, score_tokens

LINEAR_LAYERS = 7 * 4


@pytest.fixture(scope="module")
def token_ids() -> torch.Tensor:
    return torch.randint(0, 279, (3, 20), generator=torch.Generator().manual_seed(0))


def trained(**settings) -> Policy:
    """Return a policy whose adapter is far from its beginning."""
    policy = add_lora(load_policy("tiny-math", **settings), 4, 8.0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return policy


def logits_of(policy: Policy, token_ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return policy.model(input_ids=token_ids).logits


def test_a_new_adapter_changes_nothing_and_alone_is_trained(token_ids):
    plain, policy = load_policy("tiny-math"), add_lora(load_policy("tiny-math"), 4, 8.0)
    assert is_adapted(policy)
    assert not is_adapted(plain)
    assert torch.equal(logits_of(policy, token_ids), logits_of(plain, token_ids))
    trainable = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
    assert len(trainable) == 2 * LINEAR_LAYERS
    assert all("lora_" in name for name in trainable)
    assert not any(module.training for module in policy.model.modules())
    assert policy.encode("7 + 12") == plain.encode("7 + 12")


def test_the_output_of_an_adapter_is_alpha_over_rank_times_b_a_x():
    layer = trained().model.get_decoder().layers[0].mlp.down_proj
    x = torch.randn(2, 384, generator=torch.Generator().manual_seed(0))
    a, b = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert a.shape == (4, 384)
    torch.testing.assert_close(layer(x), layer.base_layer(x) + 8 / 4 * x @ a.T @ b.T)


def test_the_seed_alone_decides_where_an_adapter_begins():
    def start(seed: int) -> torch.Tensor:
        torch.rand(3)
        policy = add_lora(load_policy("tiny-math"), 4, 8.0, seed=seed)
        return policy.model.get_decoder().layers[0].mlp.down_proj.lora_A["default"].weight

    state = torch.get_rng_state()
    torch.rand(3)
    expected = torch.rand(1)
    torch.set_rng_state(state)
    assert torch.equal(start(1), start(1))
    assert not torch.equal(start(1), start(2))
    torch.set_rng_state(state)
    start(3)
    assert torch.equal(torch.rand(1), expected)


def test_an_adapter_is_float32_beside_bfloat16_weights(token_ids):
    policy = trained(dtype="bfloat16")
    dtypes = {parameter.requires_grad: parameter.dtype for parameter in policy.model.parameters()}
    assert dtypes == {True: torch.float32, False: torch.bfloat16}
    assert logits_of(policy, token_ids).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_adapter_is_saved_by_itself_and_comes_back_exactly(tmp_path, token_ids, dtype):
    policy = trained(dtype=dtype)
    save_policy(policy, tmp_path)
    files = {file.name for file in tmp_path.iterdir()}
    assert files == {WEIGHTS, CONFIG, "tokenizer.json", "tokenizer_config.json"}
    assert has_adapter(tmp_path)
    again = add_lora(load_policy("tiny-math", dtype=dtype), 4, 8.0, seed=5)
    load_adapter(again, tmp_path)
    assert torch.equal(logits_of(again, token_ids), logits_of(policy, token_ids))
    assert sum(p.requires_grad for p in again.model.parameters()) == 2 * LINEAR_LAYERS


def test_a_folder_with_an_adapter_is_also_a_policy_by_itself(tmp_path, token_ids):
    policy = trained()
    save_policy(policy, tmp_path)
    merged = load_policy(str(tmp_path))
    assert not is_adapted(merged)
    assert all(parameter.requires_grad for parameter in merged.model.parameters())
    torch.testing.assert_close(logits_of(merged, token_ids), logits_of(policy, token_ids), rtol=0.0, atol=1e-4)
    save_policy(merged, tmp_path / "whole")
    assert not has_adapter(tmp_path / "whole")
    assert torch.equal(logits_of(load_policy(str(tmp_path / "whole")), token_ids), logits_of(merged, token_ids))


def damaged(change: Callable[[dict], dict], name: str) -> Callable:
    def damage(folder) -> None:
        if name == CONFIG:
            (folder / CONFIG).write_text(json.dumps(change(json.loads((folder / CONFIG).read_text()))))
        else:
            save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS)

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            damaged(lambda config: config | {"r": 8}, CONFIG),
            r"lora\.rank=4, but the adapter in .* has 8; give the same",
        ),
        (damaged(lambda config: config | {"lora_alpha": 16.0}, CONFIG), r"lora\.alpha=8, but .* has 16; give the same"),
        (
            damaged(lambda tensors: {name: t[..., :3].contiguous() for name, t in tensors.items()}, WEIGHTS),
            r"was made for another model than qwen2",
        ),
        (
            damaged(lambda tensors: dict(list(tensors.items())[1:]), WEIGHTS),
            r"was made for another model than qwen2",
        ),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"half"), r"cannot be read: .*; use one that was written whole"),
        (lambda folder: (folder / WEIGHTS).unlink(), r"cannot be read: "),
        (lambda folder: (folder / CONFIG).write_text("{"), r"cannot be read: "),
    ],
    ids=["rank", "alpha", "shapes", "a layer less", "half a file", "no file", "half a config"],
)
def test_an_adapter_that_does_not_fit_is_refused_and_changes_nothing(tmp_path, token_ids, damage, message):
    save_policy(trained(), tmp_path)
    damage(tmp_path)
    policy = add_lora(load_policy("tiny-math"), 4, 8.0)
    before = logits_of(policy, token_ids)
    with pytest.raises(PolicyError, match=message):
        load_adapter(policy, tmp_path)
    assert torch.equal(logits_of(policy, token_ids), before)


def test_pickled_adapters_are_not_read(tmp_path):
    save_policy(trained(), tmp_path)
    torch.save(load_file(tmp_path / WEIGHTS), tmp_path / "adapter_model.bin")
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy(str(tmp_path))


def test_without_peft_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(PolicyError, match=r"lora\.rank=4 needs the package peft, .*pip install 'grpo-lab\[lora\]'"):
        add_lora(load_policy("tiny-math"), 4, 8.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_sampling_with_an_adapter_agrees_with_the_trainer(dtype):
    policy = trained(dtype=dtype)
    check_output_layer(policy.model)
    engine = TransformersEngine(policy.model, policy.tokenizer)
    prompts = [policy.encode("What is 7 + 12?"), policy.encode("What is 20 - 3 + 4?")]
    groups = engine.generate(prompts, n=4, sampling=SamplingParams(temperature=0.9, max_tokens=24), seed=0)
    rows = [(prompt, completion) for prompt, group in zip(prompts, groups, strict=True) for completion in group]
    scores = score_tokens(policy.model, batch_of(rows), temperature=0.9)
    with policy.model.disable_adapter():
        without = score_tokens(policy.model, batch_of(rows), temperature=0.9)
    assert float((scores.log_probs - without.log_probs).detach().abs().max()) > 0.5
    for row, (_, completion) in enumerate(rows):
        sampled = torch.from_numpy(completion.sampler_log_probs)
        scored = scores.log_probs[row, : len(sampled)].detach()
        torch.testing.assert_close(scored, sampled, rtol=0.0, atol=1e-4 if dtype == "float32" else 0.5)


def batch_of(rows) -> Batch:
    lengths = torch.tensor([len(completion.token_ids) for _, completion in rows])
    prompts = torch.tensor([len(prompt) for prompt, _ in rows])
    input_ids = torch.zeros(len(rows), int((prompts + lengths).max()), dtype=torch.int64)
    response_ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
    for row, (prompt, completion) in enumerate(rows):
        whole = torch.tensor([*prompt, *completion.token_ids])
        input_ids[row, : len(whole)] = whole
        response_ids[row, : len(completion.token_ids)] = whole[len(prompt) :]
    mask = torch.arange(response_ids.shape[1]) < lengths.unsqueeze(1)
    zeros = torch.zeros(response_ids.shape)
    return Batch(input_ids, response_ids, mask, mask, zeros, prompts, lengths, torch.zeros(len(rows)))
