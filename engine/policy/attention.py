"""Attention of a policy: transformers' sdpa, and two cases of it that need less work.

- Rows packed without padding, prompts shared (engine/policy/packed_attention.py).
- One new token per row: where several query heads share a key head, transformers repeats keys and values before each
  call if there is a mask. The query heads of a group can stand in the place of query positions instead: same keys,
  same mask, no copy.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from engine.policy.packed_attention import Packing, packed_attention

NAME = "grpo_lab_sdpa"


def use_attention(model: Any) -> None:
    """Let a model that attends by sdpa attend by `attention`; leave any other as it is."""
    config = model.config.get_text_config()
    if config._attn_implementation == "sdpa":
        config._attn_implementation = NAME


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    packing: Packing | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Return the attention output (rows, positions, heads, dim) of `query` (rows, heads, positions, dim).

    With a `packing` there is one row of packed tokens, and `attention_mask` is not read.
    """
    if packing is not None:
        return packed_attention(query, key, value, packing, scaling=scaling, dropout=dropout, **kwargs), None
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


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
