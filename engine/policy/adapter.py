"""A low-rank adapter: small trained matrices beside the frozen weights of a policy, made and stored by peft.

Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", y = W x + (alpha / rank) B A x.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from engine.policy.policy import Policy, PolicyError, load_policy, load_tokenizer

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"


def has_adapter(folder: Path) -> bool:
    """Return whether `folder` holds an adapter rather than the weights of a model."""
    return (folder / CONFIG).is_file()


def is_adapted(policy: Policy) -> bool:
    """Return whether `policy` has an adapter."""
    return hasattr(policy.model, "peft_config")


def add_lora(policy: Policy, rank: int, alpha: float, *, seed: int = 0) -> Policy:
    """Return the policy with an adapter beside each linear layer but the output layer; all else is frozen.

    B begins at zero, so the policy samples as before; A is drawn from `seed`. Both are float32 whatever the
    model's dtype: the steps of a small learning rate are lost in bfloat16. The model is changed in place.

    Raises:
        PolicyError: if peft is not installed, or the model has no linear layer.
    """
    peft = _peft(rank)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM", r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules="all-linear"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model = peft.get_peft_model(policy.model, config, autocast_adapter_dtype=True)
        except ValueError as error:
            raise PolicyError(
                f"lora.rank={rank}: peft cannot adapt {policy.model.config.model_type}: {error}; "
                "leave lora.rank empty to train all weights"
            ) from error
    return replace(policy, model=model.eval())


def save_adapter(policy: Policy, folder: Path) -> None:
    """Write the adapter alone, in peft's format."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(_adapter_tensors(policy.model), folder / WEIGHTS, metadata={"format": "pt"})
    policy.model.active_peft_config.save_pretrained(folder)


def load_adapter(policy: Policy, folder: Path) -> None:
    """Put the weights in `folder` into the adapter of `policy`.

    Raises:
        PolicyError: if there is none, or it is of another rank, alpha or model.
    """
    from peft import set_peft_model_state_dict

    stored, own = _read_config(folder), policy.model.active_peft_config
    for field, name in (("lora.rank", "r"), ("lora.alpha", "lora_alpha")):
        if stored[name] != getattr(own, name):
            raise PolicyError(
                f"{field}={getattr(own, name):g}, but the adapter in {folder} has {stored[name]:g}; give the same"
            )
    try:
        tensors = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise PolicyError(f"adapter in {folder} cannot be read: {error}; use one that was written whole") from error
    expected = _adapter_tensors(policy.model)
    if {name: tensor.shape for name, tensor in tensors.items()} != {
        name: tensor.shape for name, tensor in expected.items()
    }:
        raise PolicyError(
            f"adapter in {folder} was made for another model than {policy.model.config.model_type} "
            f"({policy.model.config.name_or_path}); give the model.name that it was trained with"
        )
    set_peft_model_state_dict(policy.model, tensors)


def load_merged(folder: Path, *, dtype: str, device: str) -> Policy:
    """Return the model that the adapter in `folder` was trained on, the adapter added to its weights.

    Raises:
        PolicyError: if model or adapter cannot be loaded.
    """
    stored = _read_config(folder)
    base = load_policy(str(stored["base_model_name_or_path"]), dtype=dtype, device=device)
    adapted = add_lora(base, stored["r"], stored["lora_alpha"])
    load_adapter(adapted, folder)
    model = adapted.model.merge_and_unload()
    model.requires_grad_(True)
    # An adapter beside these weights names the folder as what it was trained on, not the model without this adapter.
    model.name_or_path = str(folder)
    return Policy(model=model.eval(), tokenizer=load_tokenizer(str(folder)))


def _adapter_tensors(model: Any) -> dict[str, torch.Tensor]:
    from peft import get_peft_model_state_dict

    # The embeddings are never adapted; to find that out by itself peft would ask the hub.
    tensors: dict[str, torch.Tensor] = get_peft_model_state_dict(model, save_embedding_layers=False)
    return tensors


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        stored: dict[str, Any] = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError) as error:
        raise PolicyError(f"adapter in {folder} cannot be read: {error}; use one that was written whole") from error
    return stored


def _peft(rank: int) -> Any:
    try:
        import peft
    except ImportError as error:
        raise PolicyError(
            f"lora.rank={rank} needs the package peft, which is not installed; "
            "pip install 'grpo-lab[lora]', or leave lora.rank empty to train all weights"
        ) from error
    return peft
