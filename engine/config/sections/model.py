"""The model that is trained, and how much of it."""

import re
from typing import Literal

from engine.config.sections.section import Section, about

_CHECKPOINT = re.compile(r"run:(?P<run>.+)@(?P<step>\d+)")


class ModelConfig(Section):
    """The language model that is trained."""

    name: str = about(
        "tiny-math",
        "`tiny-math` (embedded), `smollm2-135m` (made here once), a hub name, or a local folder.",
        min_length=1,
    )
    init_from: str | None = about(
        None,
        "Weights to begin with: a checkpoint, as `run:<id>@<step>`, or a folder; empty takes those of model.name.",
        min_length=1,
    )
    dtype: Literal["float32", "bfloat16"] = about("float32", "Number format of weights and activations.")
    device: Literal["auto", "cpu", "cuda"] = about("auto", "Where the model runs; auto takes a GPU if there is one.")
    threads: int | None = about(
        None,
        "CPU threads; empty takes the share of cores that the worker gives the run.",
        unit="threads",
        ge=1,
        le=256,
    )
    gradient_checkpointing: bool = about(
        False, "Keep one activation per layer and compute the others again in the backward pass."
    )
    logits_memory: int = about(
        512,
        "Most memory that logits may take at once; more tokens are scored in chunks.",
        unit="MiB",
        ge=1,
        le=1_000_000,
    )

    @property
    def initial_checkpoint(self) -> tuple[str, int] | None:
        """The run and the step that `init_from` names; None where it is a folder or empty."""
        found = _CHECKPOINT.fullmatch(self.init_from or "")
        return (found["run"], int(found["step"])) if found else None


class LoraConfig(Section):
    """Low-rank adapters: the weights stay, small matrices beside every linear layer are trained (needs peft)."""

    rank: int | None = about(None, "Rank of the adapters; empty trains all weights.", ge=1, le=1024, words=("lora_r",))
    alpha: float = about(
        32.0, "The adapters' output is multiplied by this over the rank.", gt=0.0, le=4096.0, words=("lora_alpha",)
    )
