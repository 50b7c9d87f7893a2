"""Attention over packed tokens: no padding outside of it, and a prompt that several completions share is there once.

All tokens of a pass stand in one row, N long. What is done for a token by itself (embedding, projections, norms, MLP)
is done N times; attention alone unpacks them, into blocks of sequences of like length.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_BEYOND = ("softcap", "s_aux", "position_bias", "sliding_window")


class NotPackableError(ValueError):
    """A layer attends in a way that `packed_attention` does not know."""


@dataclass(frozen=True, slots=True)
class Block:
    """R sequences that attend in one call, Q of their tokens to K. Padding points at place 0 and is not read."""

    queries: Tensor  # (R, Q) int64, places of packed tokens
    keys: Tensor  # (R, K) int64
    mask: Tensor | None  # (R or 1, 1, Q, K) bool, who sees whom; None: Q = K, each token what came before it and itself
    filled: Tensor  # (n,) int64, the places of the flattened (R, Q) that hold a token

    def to(self, device: torch.device) -> "Block":
        """Return the block on `device`."""
        mask = None if self.mask is None else self.mask.to(device)
        return Block(self.queries.to(device), self.keys.to(device), mask, self.filled.to(device))


@dataclass(frozen=True, slots=True)
class Packing:
    """N packed tokens, and how they attend. The filled places of the blocks are these tokens in order."""

    token_ids: Tensor  # (1, N) int64
    position_ids: Tensor  # (1, N) int64, each token's place in its own sequence
    blocks: tuple[Block, ...]
    scoring: Tensor  # (B, T) int64, the place whose state scores each completion token

    def to(self, device: torch.device) -> "Packing":
        """Return the packing on `device`."""
        return Packing(
            self.token_ids.to(device),
            self.position_ids.to(device),
            tuple(block.to(device) for block in self.blocks),
            self.scoring.to(device),
        )


def packed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packing: Packing,
    *,
    scaling: float | None,
    dropout: float,
    **kwargs: Any,
) -> Tensor:
    """Return the output (1, N, heads, dim) of `query` (1, heads, N, dim) over `key` and `value` (1, key heads, N, dim).

    Raises:
        NotPackableError: if the layer asks for more than scaled dot products: a window, a soft cap, sinks, a bias.
    """
    asked = [name for name in _BEYOND if kwargs.get(name) is not None]
    if asked:
        raise NotPackableError(f"attention with {', '.join(asked)} is not packed; rows are padded instead")
    repeats = query.shape[1] // key.shape[1]
    queries, keys, values = (_token_major(states) for states in (query, key, value))
    outputs = []
    for block in packing.blocks:
        block_keys, block_values = _unpack(keys, block.keys), _unpack(values, block.keys)
        if repeats > 1:
            block_keys = block_keys.repeat_interleave(repeats, 1)
            block_values = block_values.repeat_interleave(repeats, 1)
        attended = scaled_dot_product_attention(
            _unpack(queries, block.queries),
            block_keys,
            block_values,
            attn_mask=block.mask,
            dropout_p=dropout,
            is_causal=block.mask is None,
            scale=scaling,
        )
        outputs.append(attended.transpose(1, 2).flatten(0, 1).index_select(0, block.filled))
    return torch.cat(outputs).unsqueeze(0)


def _token_major(states: Tensor) -> Tensor:
    """Return (N, heads, dim) of (1, heads, N, dim)."""
    return states[0].transpose(0, 1).contiguous()


def _unpack(states: Tensor, places: Tensor) -> Tensor:
    """Return (R, heads, L, dim) of `states` (N, heads, dim) at `places` (R, L)."""
    return states.index_select(0, places.flatten()).view(*places.shape, *states.shape[1:]).transpose(1, 2)
