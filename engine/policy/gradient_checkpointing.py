"""Gradient checkpointing: one activation per layer is kept, the others are computed again in the backward pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from engine.policy.policy import PolicyError


def enable_gradient_checkpointing(model: Any) -> None:
    """Let the layers of `model` forget their activations in passes inside `checkpointing_layers`.

    Raises:
        PolicyError: if the model has no layers that can, or they compute something else then.
    """
    try:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    except ValueError as error:
        raise PolicyError(
            f"model.gradient_checkpointing=true, but model type {model.config.model_type} cannot: {error}; "
            "set it to false and raise grpo.gradient_accumulation_steps"
        ) from error
    # Set by the call above for the other kind of checkpointing, which loses gradients behind frozen embeddings.
    model.disable_input_require_grads()
    _check_same_logits(model)


@contextmanager
def checkpointing_layers(model: Any) -> Iterator[None]:
    """Let passes inside the block checkpoint the layers of a model for which it is enabled; else change nothing.

    transformers checkpoints only a layer that is in training mode. Here the layer alone is: what is inside it, its
    dropouts among it, stays in evaluation mode, and dropouts that the layer applies itself are 0 for the block.
    Do not sample inside the block: such layers use no cache.
    """
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    dropouts = [(layer, name, value) for layer in layers for name, value in vars(layer).items() if _drops(name, value)]
    modes = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.training = True
        for layer, name, _ in dropouts:
            setattr(layer, name, 0.0)
        yield
    finally:
        for layer, mode in zip(layers, modes, strict=True):
            layer.training = mode
        for layer, name, value in dropouts:
            setattr(layer, name, value)


def _drops(name: str, value: object) -> bool:
    return "drop" in name and isinstance(value, float)


@torch.no_grad()
def _check_same_logits(model: Any) -> None:
    token_ids = torch.arange(4, device=model.device).unsqueeze(0)
    expected = model(input_ids=token_ids, use_cache=False).logits
    with checkpointing_layers(model):
        logits = model(input_ids=token_ids, use_cache=False).logits
    if not torch.equal(logits, expected):
        raise PolicyError(
            f"model.gradient_checkpointing=true, but model type {model.config.model_type} computes other logits "
            f"then, by up to {float((logits - expected).abs().max()):.3g}; set it to false"
        )
