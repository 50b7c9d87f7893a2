"""A key-value cache that appends in place and lets rows leave."""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

SMALLEST_GROWTH = 16


class GrowingLayer(DynamicLayer):  # type: ignore[misc]  # transformers is not type-checked here
    """A layer with room for the tokens to come.

    The layer that transformers brings copies all of its keys and values for every token. This one copies them
    when its room is used up, and then takes a quarter more (at least 16 tokens).
    """

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room on the first update, when shapes are known."""
        super().lazy_initialization(key_states, value_states)
        self._length = 0
        self._key_room = key_states[:, :, :0]
        self._value_room = value_states[:, :, :0]

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append states (rows, heads, new, dim); return all keys and values so far as views."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self._length = self._length, self._length + key_states.shape[-2]
        if self._length > self._key_room.shape[-2]:
            capacity = self._length + max(SMALLEST_GROWTH, self._length // 4)
            self._key_room = _with_capacity(self._key_room, key_states, start, capacity)
            self._value_room = _with_capacity(self._value_room, value_states, start, capacity)
        self._key_room[:, :, start : self._length] = key_states
        self._value_room[:, :, start : self._length] = value_states
        self._show()
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the rows `beam_idx`, which may repeat a row or leave one out."""
        self._key_room = self._key_room.index_select(0, beam_idx)
        self._value_room = self._value_room.index_select(0, beam_idx)
        self._show()

    def _show(self) -> None:
        self.keys = self._key_room[:, :, : self._length]
        self.values = self._value_room[:, :, : self._length]


def growing_cache(config: Any) -> Any:
    """Return an empty cache for a model's config. Layers of other kinds (sliding, linear) stay as they are."""
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _with_capacity(room: Tensor, like: Tensor, length: int, capacity: int) -> Tensor:
    rows, heads, _, width = like.shape
    larger = torch.empty((rows, heads, capacity, width), dtype=like.dtype, device=like.device)
    larger[:, :, :length] = room[:, :, :length]
    return larger
