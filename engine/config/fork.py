"""What a fork cannot change."""

from collections.abc import Iterator
from typing import Any

from engine.errors import FieldProblem

FIXED = ("model.name", "lora.rank", "lora.alpha")
"""Fields that say what a checkpoint's weights are of."""


def fork_problems(before: dict[str, Any], after: dict[str, Any], *, step: int) -> Iterator[FieldProblem]:
    """Yield what is wrong with a fork at `step`; both configs as dotted path → value."""
    steps = after["grpo.steps"]
    if isinstance(steps, int) and steps <= step:
        yield FieldProblem(
            "grpo.steps",
            f"grpo.steps={steps} leaves nothing to do: the fork goes on after step {step}; use at least {step + 1}",
        )
    for path in FIXED:
        if after[path] != before[path]:
            old, new = ("empty" if tree[path] is None else tree[path] for tree in (before, after))
            yield FieldProblem(
                path, f"{path}={new} does not fit the checkpoint, which is of {path}={old}; keep that one"
            )
