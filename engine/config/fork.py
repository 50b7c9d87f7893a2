"""What a fork cannot change."""

from collections.abc import Iterator
from typing import Any

from engine.errors import FieldProblem

FIXED = ("model.name", "model.init_from", "lora.rank", "lora.alpha")
"""Fields that say what a checkpoint's weights are of."""


def fork_problems(before: dict[str, Any], after: dict[str, Any], *, step: int) -> Iterator[FieldProblem]:
    """Yield what is wrong with a fork at `step`; both configs as dotted path → value."""
    steps, of_sft = after["grpo.steps"], after["sft.steps"]
    if isinstance(steps, int) and isinstance(of_sft, int) and steps + of_sft <= step:
        fewest = step + 1 - of_sft
        yield FieldProblem(
            "grpo.steps",
            f"grpo.steps={steps} leaves nothing to do: the fork goes on after step {step}; use at least {fewest}",
        )
    for path in FIXED:
        if after[path] != before[path]:
            old, new = ("empty" if tree[path] is None else tree[path] for tree in (before, after))
            yield FieldProblem(
                path, f"{path}={new} does not fit the checkpoint, which is of {path}={old}; keep that one"
            )
