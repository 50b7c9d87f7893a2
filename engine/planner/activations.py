"""What the layers keep for the backward pass, in bytes per token.

After Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", section 4, counted
anew for the layers at hand: RMSNorm computed in float32, grouped queries, a gated MLP, no dropout. Attention by sdpa
keeps no matrix of token pairs, so nothing grows with the square of the length.

`width` is the bytes of one activation: 4 in float32, 2 in bfloat16. `rank` is that of float32 adapters beside frozen
linear layers, None where all weights are trained.
"""

from engine.planner.shapes import ModelShape

FLOAT32 = 4


def layer_bytes(shape: ModelShape, width: int, rank: int | None = None) -> int:
    """Return what one decoder layer keeps per token.

    Norms: their input in float32 and the normed values, twice. Attention: query, key, value, output and in float32
    the log-sum of each head. MLP: gate, its SiLU and up. And what goes into the linear layers.
    """
    norms = 2 * norm_bytes(shape, width, rank)
    mlp = 3 * width * shape.intermediate
    return norms + _attention(shape, width, rank) + mlp + _inputs(shape, width, rank)


def norm_bytes(shape: ModelShape, width: int, rank: int | None = None) -> int:
    """Return what one RMSNorm keeps per token: its input in float32, its scale, and the normed values if it is trained.

    In float32 the input is the residual stream itself; else it is a copy.
    """
    return shape.hidden * FLOAT32 + FLOAT32 + (width * shape.hidden if rank is None else 0)


def _attention(shape: ModelShape, width: int, rank: int | None) -> int:
    kept = width * shape.head_dim * 2 * (shape.heads + shape.kv_heads) + FLOAT32 * shape.heads
    if not shape.head_norms:
        return kept
    per_head = shape.head_dim * (FLOAT32 + (width if rank is None else 0)) + FLOAT32
    return kept + (shape.heads + shape.kv_heads) * per_head


def _inputs(shape: ModelShape, width: int, rank: int | None) -> int:
    """Return what is kept of the inputs of linear layers.

    Each input is kept once: query, key and value share one, gate and up another, and that of the output projection
    is the output of attention. A float32 adapter in a bfloat16 model keeps a float32 copy of its own.
    """
    if rank is not None and width != FLOAT32:
        copies = sum(inputs for inputs, _ in shape.linear_layers)
        return FLOAT32 * (copies + rank * len(shape.linear_layers))
    shared = width * (2 * shape.hidden + shape.intermediate)
    return shared if rank is None else shared + FLOAT32 * rank * len(shape.linear_layers)
