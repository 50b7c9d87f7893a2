"""What the public config.json of some well-known models says, for machines that have not fetched them yet.

The `-Instruct` variants have the same shapes.
"""

from collections.abc import Mapping
from typing import Any


def _config(kind: str, *, tied: bool = True, **numbers: int) -> Mapping[str, Any]:
    return {"model_type": kind, "tie_word_embeddings": tied, **numbers}


def _qwen2_1_5b(positions: int) -> Mapping[str, Any]:
    return _config(
        "qwen2",
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        vocab_size=151936,
        max_position_embeddings=positions,
    )


REFERENCE_MODELS: Mapping[str, Mapping[str, Any]] = {
    "Qwen/Qwen2.5-Math-1.5B": _qwen2_1_5b(4096),
    "Qwen/Qwen2.5-1.5B": _qwen2_1_5b(131072),
    "Qwen/Qwen2.5-0.5B": _config(
        "qwen2",
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        vocab_size=151936,
        max_position_embeddings=32768,
    ),
    "Qwen/Qwen2.5-3B": _config(
        "qwen2",
        hidden_size=2048,
        intermediate_size=11008,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=2,
        vocab_size=151936,
        max_position_embeddings=32768,
    ),
    "Qwen/Qwen2.5-7B": _config(
        "qwen2",
        tied=False,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        vocab_size=152064,
        max_position_embeddings=131072,
    ),
    "HuggingFaceTB/SmolLM2-135M": _config(
        "llama",
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
        max_position_embeddings=8192,
    ),
}
