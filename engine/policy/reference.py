"""The reference policy: a second set of weights for the one model, put in place for a forward pass."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from engine.errors import CheckpointError

Kind = Literal["start", "ema", "copy"]


class ReferencePolicy:
    """The trained parameters as they were at the start, or a moving average or a renewed copy of them.

    Only what is trained is kept: with adapters the frozen weights serve both policies.
    """

    def __init__(self, model: Any, *, kind: Kind = "start", ema_decay: float = 0.99, copy_every: int = 50) -> None:
        self._model = model
        self._kind = kind
        self._ema_decay = ema_decay
        self._copy_every = copy_every
        # In bfloat16 an average with a decay of .99 would stand still.
        dtype = torch.float32 if kind == "ema" else None
        self._weights = {
            name: parameter.detach().to(dtype or parameter.dtype, copy=True) for name, parameter in self._trained()
        }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model compute with the reference's weights inside the block, and with its own again after it."""
        own = {name: parameter.data for name, parameter in self._trained()}
        try:
            for name, parameter in self._trained():
                parameter.data = self._weights[name].to(parameter.dtype)
            yield
        finally:
            for name, parameter in self._trained():
                parameter.data = own[name]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move the reference after 1-based `step`, as its kind has it."""
        if self._kind == "ema":
            for name, parameter in self._trained():
                self._weights[name].lerp_(parameter.float(), 1 - self._ema_decay)
        elif self._kind == "copy" and step % self._copy_every == 0:
            self.begin_anew()

    @torch.no_grad()
    def begin_anew(self) -> None:
        """Take the trained parameters as they are now for the start."""
        for name, parameter in self._trained():
            self._weights[name].copy_(parameter)

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights by name, for a checkpoint."""
        return self._weights

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the weights of a checkpoint.

        Raises:
            CheckpointError: if they are not those of this model.
        """
        shapes = {name: tensor.shape for name, tensor in self._weights.items()}
        if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
            raise CheckpointError(
                "the checkpoint's reference policy does not fit this run's model; fork the run, which begins a new one"
            )
        for name, tensor in tensors.items():
            self._weights[name].copy_(tensor)

    def _trained(self) -> Iterator[tuple[str, Any]]:
        return ((name, parameter) for name, parameter in self._model.named_parameters() if parameter.requires_grad)
