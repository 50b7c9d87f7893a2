"""AdamW with its moments in 8 bits, by bitsandbytes, with a state that a checkpoint can hold."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from engine.config.sections import OptimizerConfig
from engine.errors import ConfigError, FieldProblem


def make_adamw_8bit(groups: list[dict[str, Any]], config: OptimizerConfig, device: torch.device) -> Any:
    """Return the optimizer over parameter `groups` on `device`.

    Parameters of fewer than 4,096 numbers keep 32-bit moments. It has not yet run on a CUDA device.

    Raises:
        ConfigError: unless `device` is a CUDA device and bitsandbytes is installed.
    """
    if device.type != "cuda":
        raise _refusal(f"needs a CUDA device, and the model is on {device}")
    try:
        import bitsandbytes
    except ImportError as error:
        raise _refusal("needs the package bitsandbytes, which is not installed; pip install bitsandbytes") from error
    return flat_adamw_8bit(bitsandbytes)(
        groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), eps=config.adam_eps
    )


def flat_adamw_8bit(bitsandbytes: Any) -> Any:
    """Return the class AdamW8bit with a state that is tensors by name for each parameter, as torch's AdamW has it.

    Its own is nested, counts steps in a Python number, and shares tables between parameters; safetensors takes
    none of these.
    """

    class FlatAdamW8bit(bitsandbytes.optim.AdamW8bit):  # type: ignore[misc]  # bitsandbytes is not type-checked here
        def state_dict(self) -> dict[str, Any]:
            document: dict[str, Any] = super().state_dict()
            return document | {"state": {index: dict(_flat(entries)) for index, entries in document["state"].items()}}

        def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            # A tensor would be rounded to the dtype of the parameter: bfloat16 counts to 256.
            state = {
                index: {key: int(value) if key == "step" else value for key, value in entries.items()}
                for index, entries in state_dict["state"].items()
            }
            super().load_state_dict(state_dict | {"state": state}, *args, **kwargs)

    return FlatAdamW8bit


def _flat(entries: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for key, value in entries.items():
        if isinstance(value, dict):
            yield from _flat(value)
        elif key.startswith("qmap"):
            yield key, value.clone()
        else:
            yield key, torch.as_tensor(value)


def _refusal(reason: str) -> ConfigError:
    return ConfigError(
        [FieldProblem("optimizer.name", f"optimizer.name=adamw_8bit {reason}; or use optimizer.name=adamw")]
    )
