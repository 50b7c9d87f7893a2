"""A made-up model as a GGUF file: the shape of a Llama, two layers of width 32, one matrix quantised to four bits."""

from pathlib import Path
from typing import Any

import numpy as np

LAYERS, HIDDEN, WIDE, HEADS, KV_HEADS = 2, 32, 64, 4, 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_gguf(path: Path) -> dict[str, Any]:
    """Write the file, and return its matrices by their names in GGUF, as float32."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import dequantize, quantize
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    tokens = [*SPECIAL, *bytes_to_unicode().values(), "12"]
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges(["1 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)

    rng = np.random.default_rng(0)
    shapes = {"token_embd.weight": (len(tokens), HIDDEN), "output_norm.weight": (HIDDEN,)}
    keys = HIDDEN // HEADS * KV_HEADS
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (HIDDEN,),
            f"blk.{layer}.attn_q.weight": (HIDDEN, HIDDEN),
            f"blk.{layer}.attn_k.weight": (keys, HIDDEN),
            f"blk.{layer}.attn_v.weight": (keys, HIDDEN),
            f"blk.{layer}.attn_output.weight": (HIDDEN, HIDDEN),
            f"blk.{layer}.ffn_norm.weight": (HIDDEN,),
            f"blk.{layer}.ffn_gate.weight": (WIDE, HIDDEN),
            f"blk.{layer}.ffn_up.weight": (WIDE, HIDDEN),
            f"blk.{layer}.ffn_down.weight": (HIDDEN, WIDE),
        }
    matrices = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, matrix in matrices.items():
        if name.endswith("ffn_up.weight"):
            packed = quantize(matrix, GGMLQuantizationType.Q4_1)
            matrices[name] = dequantize(packed, GGMLQuantizationType.Q4_1)
            writer.add_tensor(name, packed, raw_dtype=GGMLQuantizationType.Q4_1)
        else:
            writer.add_tensor(name, matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return matrices
