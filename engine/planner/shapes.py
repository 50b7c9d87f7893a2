"""The shape of a model: what its memory depends on, read without loading it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.planner.catalogue import SMOLLM2, TINY_MATH, TINY_MATH_FOLDER
from engine.planner.hub_cache import cached_file
from engine.planner.reference_models import REFERENCE_MODELS


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder as Qwen2, Qwen3, Llama and Mistral are: RMSNorm, grouped queries, gated MLP.

    `heads`, `kv_heads` and `head_dim` are those of attention; `vocabulary` counts the rows of the embedding,
    `positions` the longest sequence. `tied`: the output layer is the embedding.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    positions: int
    tied: bool
    query_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_norms: bool = False

    @property
    def linear_layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of the linear layers in one decoder layer: query, key, value, output, gate, up, down."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = ((self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden))
        wide = (self.hidden, self.intermediate)
        return (*attention, wide, wide, (self.intermediate, self.hidden))

    @property
    def parameters(self) -> int:
        """The number of weights, an output layer tied to the embedding counted once."""
        biased = (self.query_bias,) * 3 + (self.output_bias,) + (self.mlp_bias,) * 3
        matrices = sum(inputs * outputs for inputs, outputs in self.linear_layers)
        biases = sum(outputs for (_, outputs), has in zip(self.linear_layers, biased, strict=True) if has)
        norms = 2 * self.hidden + (2 * self.head_dim if self.head_norms else 0)
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * (matrices + biases + norms) + embeddings + self.hidden

    def adapter_parameters(self, rank: int) -> int:
        """The number of weights of LoRA adapters beside every linear layer: r · (inputs + outputs) each.

        Source: Hu et al. 2021, "LoRA", section 4.1. Embedding and output layer have none.
        """
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.linear_layers)


def find_shape(name: str) -> ModelShape | None:
    """Return the shape of a model by its `model.name`; None where nothing here tells it.

    Looked for in this order: the models with a short name, a local folder's config.json, a config.json in the local
    Hugging Face cache, the table of well-known models. Nothing is fetched.
    """
    if name == TINY_MATH:
        return _read(TINY_MATH_FOLDER / "config.json")
    if name == SMOLLM2:
        return _well_known("HuggingFaceTB/SmolLM2-135M")
    in_folder = Path(name) / "config.json"
    found = _read(in_folder) or _read(_in_cache(name))
    return found or _well_known(name)


def shape_of_config(config: Mapping[str, Any]) -> ModelShape | None:
    """Return the shape that a transformers config.json describes; None for an architecture not known here."""
    kind = config.get("model_type")
    if kind not in ("qwen2", "qwen3", "llama", "mistral"):
        return None
    try:
        heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
        bias = bool(config.get("attention_bias", False))
        return ModelShape(
            layers=int(config["num_hidden_layers"]),
            hidden=hidden,
            intermediate=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden // heads),
            vocabulary=int(config["vocab_size"]),
            positions=int(config["max_position_embeddings"]),
            tied=bool(config.get("tie_word_embeddings", False)),
            query_bias=bias or kind == "qwen2",
            output_bias=bias,
            mlp_bias=bool(config.get("mlp_bias", False)),
            head_norms=kind == "qwen3",
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _well_known(name: str) -> ModelShape | None:
    config = REFERENCE_MODELS.get(name.removesuffix("-Instruct"))
    return None if config is None else shape_of_config(config)


def _in_cache(name: str) -> Path | None:
    return cached_file(name, "config.json")


def _read(path: Path | None) -> ModelShape | None:
    try:
        config = json.loads(path.read_text("utf-8")) if path is not None else None
    except (OSError, ValueError):
        return None  # not there, not readable or no JSON: nothing here tells the shape
    return shape_of_config(config) if isinstance(config, dict) else None
