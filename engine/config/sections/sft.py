"""Supervised fine-tuning: a phase before GRPO, or the whole run."""

from typing import Literal

from engine.config.sections.section import Section, about

SftLoss = Literal["token", "sequence"]


class SftConfig(Section):
    """Supervised fine-tuning on demonstrations, before GRPO or in its place."""

    steps: int = about(
        0, "Optimizer steps of SFT; GRPO's steps come after them, and may be 0.", unit="steps", ge=0, le=1_000_000
    )
    path: str | None = about(
        None,
        'JSONL file with one {"prompt", "response"} a line; empty takes the demonstrations of the task.',
        min_length=1,
    )
    examples: int | None = about(
        None,
        "Examples used, the first of the file or of the task; empty takes the whole file, or 1,024 of the task.",
        unit="examples",
        ge=1,
        le=10_000_000,
    )
    batch_size: int = about(
        32,
        "Examples per optimizer step, put through the model in micro-batches no larger than those of GRPO.",
        unit="examples",
        ge=1,
        le=65536,
    )
    learning_rate: float | None = about(
        None, "Peak learning rate of SFT; empty takes optimizer.learning_rate.", gt=0.0, le=1.0
    )
    loss: SftLoss = about(
        "token", "Mean over the response tokens of the batch, or over its sequences of each one's mean."
    )
