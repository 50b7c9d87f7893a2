"""Attention for one new token per row, without copying keys and values for every query head.

Where several query heads share a key head, transformers' sdpa path repeats keys and values before each call if
there is a mask. For a single new token the query heads of a group can stand in the place of query positions:
same keys, same mask, no copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "grpo_lab_grouped_sdpa"


def grouped_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Return the attention output (rows, positions, heads, dim) of `query` (rows, heads, positions, dim)."""
    rows, query_heads, positions, width = query.shape
    key_heads = key.shape[1]
    plain_mask = attention_mask is None or attention_mask.shape[1:3] == (1, 1)
    if positions != 1 or query_heads == key_heads or not plain_mask or kwargs.get("position_bias") is not None:
        output: Tensor = sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)[
            0
        ]
        return output, None
    grouped = query.reshape(rows, key_heads, query_heads // key_heads, width)
    attended = torch.nn.functional.scaled_dot_product_attention(
        grouped, key, value, attn_mask=attention_mask, scale=scaling
    )
    return attended.reshape(rows, 1, query_heads, -1), None


@contextmanager
def grouped_attention_in(model: Any) -> Iterator[None]:
    """Let a model that attends by sdpa use `grouped_attention` inside the block; leave any other as it is."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    if before != "sdpa":
        yield
        return
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


AttentionInterface.register(NAME, grouped_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
