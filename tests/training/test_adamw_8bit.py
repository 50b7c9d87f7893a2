import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.config import parse_config
from engine.errors import ConfigError
from engine.policy.policy import load_policy
from engine.training.adamw_8bit import flat_adamw_8bit, make_adamw_8bit
from engine.training.optimizer import make_optimizer

CONFIG = parse_config({"optimizer.name": "adamw_8bit", "optimizer.weight_decay": 0.1}).optimizer
TABLE = torch.linspace(-1, 1, 256)


class NestedAdamW(torch.optim.Optimizer):
    """Keeps state as bitsandbytes does: a Python step, moments in a dict of their own, one table for all."""

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, settings)

    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state.update(step=0, state1=torch.zeros(parameter.shape, dtype=torch.uint8), qmap1=TABLE)
                state["step"] += 1
                state["state1"] += 1
                parameter.data -= group["lr"] * state["step"] * parameter.grad

    def state_dict(self) -> dict[str, Any]:
        document = super().state_dict()
        nested = {
            index: {"step": entries["step"], "__quantized__": {"state1": entries["state1"], "qmap1": entries["qmap1"]}}
            for index, entries in document["state"].items()
        }
        return document | {"state": nested}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for index, entries in state_dict["state"].items():
            assert type(entries["step"]) is int
            self.state[parameters[index]] = dict(entries)


@pytest.fixture(params=["as documented", "installed"])
def bitsandbytes(request) -> Any:
    if request.param == "installed":
        return pytest.importorskip("bitsandbytes")
    return SimpleNamespace(optim=SimpleNamespace(AdamW8bit=NestedAdamW))


def train(parameters: list[torch.nn.Parameter], optimizer: Any, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        sum(parameter.float().pow(4).sum() for parameter in parameters).backward()
        optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_its_state_goes_through_safetensors_and_training_goes_on_as_if_it_had_not(bitsandbytes, tmp_path, dtype):
    def start() -> list[torch.nn.Parameter]:
        generator = torch.Generator().manual_seed(0)
        return [torch.nn.Parameter(torch.randn(size, generator=generator).to(dtype)) for size in ((96, 64), 10)]

    def optimizer_of(parameters: list[torch.nn.Parameter]) -> Any:
        groups = [{"params": parameters[:1], "weight_decay": 0.1}, {"params": parameters[1:], "weight_decay": 0.0}]
        return flat_adamw_8bit(bitsandbytes)(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)

    # More steps than bfloat16 can count.
    whole, parts = start(), start()
    train(whole, optimizer_of(whole), 261)
    optimizer = optimizer_of(parts)
    train(parts, optimizer, 259)
    state = optimizer.state_dict()["state"]
    assert {index: int(entries["step"]) for index, entries in state.items()} == {0: 259, 1: 259}
    save_file({f"{i}.{key}": value for i, entries in state.items() for key, value in entries.items()}, tmp_path / "s")
    loaded: dict[int, dict[str, torch.Tensor]] = {0: {}, 1: {}}
    for name, tensor in load_file(tmp_path / "s").items():
        loaded[int(name[0])][name[2:]] = tensor
    optimizer = optimizer_of(parts)
    optimizer.load_state_dict({"state": loaded, "param_groups": optimizer.state_dict()["param_groups"]})
    train(parts, optimizer, 2)
    for parameter, expected in zip(parts, whole, strict=True):
        assert torch.equal(parameter, expected)


def test_without_a_gpu_it_is_refused():
    with pytest.raises(ConfigError, match=r"optimizer\.name=adamw_8bit needs a CUDA device, and .* on cpu; or use"):
        make_optimizer(load_policy("tiny-math").model, CONFIG)


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ConfigError, match=r"needs the package bitsandbytes, .*; pip install bitsandbytes; or use"):
        make_adamw_8bit([], CONFIG, torch.device("cuda"))


def test_the_settings_of_the_config_reach_it(bitsandbytes, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", bitsandbytes)
    groups = [{"params": [torch.nn.Parameter(torch.ones(3))], "weight_decay": 0.1}]
    settings = {"optimizer.learning_rate": 1e-5, "optimizer.beta1": 0.8, "optimizer.beta2": 0.9}
    config = parse_config(settings | {"optimizer.adam_eps": 1e-7}).optimizer
    (group,) = make_adamw_8bit(groups, config, torch.device("cuda")).param_groups
    assert {name: group[name] for name in ("lr", "betas", "eps", "weight_decay")} == {
        "lr": 1e-5,
        "betas": (0.8, 0.9),
        "eps": 1e-7,
        "weight_decay": 0.1,
    }
