"""Which task reads which of the fields that say where problems come from."""

from collections.abc import Mapping

OF_DATA = ("gsm8k", "math", "finqa", "jsonl")
# Each field of the task, and the tasks that read it; `task.name` itself is every task's.
READ_BY: Mapping[str, tuple[str, ...]] = {
    "path": OF_DATA,
    "question_column": OF_DATA,
    "answer_column": OF_DATA,
    "id_column": OF_DATA,
    "split_column": OF_DATA,
    "validation_from": OF_DATA,
    "held_out_share": OF_DATA,
    "overlap": OF_DATA,
    "gold_faults": OF_DATA,
    "generator": ("reasoning_gym",),
    "generator_options": ("reasoning_gym",),
    "context": ("finqa",),
    "context_rows": ("finqa",),
    "operands_min": ("arithmetic",),
    "operands_max": ("arithmetic",),
    "largest_operand": ("arithmetic",),
    "operators": ("arithmetic",),
}


def reads(task: str, field: str) -> bool:
    """Return whether the task of this name reads a field of the section `task`, such as `path`."""
    return task in READ_BY.get(field, (task,))
