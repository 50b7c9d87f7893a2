"""The optimizer and its schedule."""

from typing import Literal

from engine.config.sections.section import Section, about

OptimizerName = Literal["adamw", "adamw_8bit"]
Schedule = Literal["constant", "linear", "cosine"]


class OptimizerConfig(Section):
    """AdamW and its schedule."""

    name: OptimizerName = about(
        "adamw", "AdamW, or AdamW with its moments in 8 bits (bitsandbytes, on a CUDA device).", words=("optim",)
    )
    learning_rate: float = about(1e-4, "Peak learning rate.", gt=0.0, le=1.0, words=("learning_rate",))
    beta1: float = about(0.9, "Decay of the first moment.", ge=0.0, lt=1.0)
    beta2: float = about(0.95, "Decay of the second moment.", ge=0.0, lt=1.0)
    adam_eps: float = about(1e-8, "Added to the root of the second moment.", gt=0.0, le=1.0)
    weight_decay: float = about(0.0, "Decoupled weight decay.", ge=0.0, le=1.0)
    max_grad_norm: float = about(1.0, "Gradients with a larger norm are scaled to it.", gt=0.0, le=1e6)
    schedule: Schedule = about("constant", "Shape of the learning rate after warm-up.")
    warmup_steps: int = about(
        0,
        "Steps of linear warm-up from zero; SFT and GRPO each have a schedule of their own.",
        unit="steps",
        ge=0,
        le=1_000_000,
    )
