"""Demonstrations: what SFT learns from, out of a file or from the task itself."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

from engine.config.sections import SftConfig
from engine.errors import TaskError
from engine.tasks.task import Demonstrates, Task
from engine.types import Demonstration

TASK_EXAMPLES = 1024
"""Demonstrations taken of a task where `sft.examples` does not say how many."""
SHOWN = 10
_WAY_OUT = 'write one {"prompt": "…", "response": "…"} a line'


def load_demonstrations(task: Task, config: SftConfig, *, prompt_name: str, seed: int) -> list[Demonstration]:
    """Return the examples of the file that `config` names, or of the task.

    Raises:
        TaskError: if the file has a fault or too few lines, or the task cannot show how it is solved.
    """
    if config.path is not None:
        return read_demonstrations(Path(config.path), config.examples)
    if not isinstance(task, Demonstrates):
        raise TaskError(
            "sft.path is empty, and this task has no demonstrations of its own; "
            "give a JSONL file (sft.path), or set sft.steps=0"
        )
    n = config.examples or TASK_EXAMPLES
    try:
        return task.demonstrations(n, prompt_name, seed=seed)
    except TaskError as error:
        raise TaskError(f"SFT takes {n} demonstrations of the task (sft.examples): {error}") from error


def read_demonstrations(path: Path, n: int | None = None) -> list[Demonstration]:
    """Return the first `n` demonstrations of a JSONL file, or all; blank lines and further keys are passed over.

    Raises:
        TaskError: with number and reason of each bad line, or if there are fewer than `n`, or none.
    """
    found: list[Demonstration] = []
    faults: list[str] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if len(found) == n:
                    break
                if line.strip():
                    try:
                        found.append(_demonstration(line))
                    except ValueError as error:
                        faults.append(f"line {number}: {error}")
    except OSError as error:
        raise TaskError(f"sft.path={path} cannot be read: {error.strerror}; {_WAY_OUT}") from error
    if faults:
        more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise TaskError("\n".join([f"sft.path={path} has bad lines; {_WAY_OUT}:", *islice(faults, SHOWN), *more]))
    if not found:
        raise TaskError(f"sft.path={path} has no line; {_WAY_OUT}")
    if n is not None and len(found) < n:
        raise TaskError(f"sft.examples={n}, but sft.path={path} has {len(found)}; ask for at most {len(found)}")
    return found


def _demonstration(line: bytes) -> Demonstration:
    """Raises ValueError with the reason why `line` is none."""
    try:
        document = json.loads(line.decode("utf-8-sig").strip())
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start + 1})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("is not an object")
    return Demonstration(_text(document, "prompt"), _text(document, "response"))


def _text(document: dict[str, Any], key: str) -> str:
    if key not in document:
        raise ValueError(f"has no {key}")
    value = document[key]
    if not isinstance(value, str):
        raise ValueError(f"{key} is not text")
    if not value:
        raise ValueError(f"{key} is empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{key} has half of a surrogate pair (character {error.start + 1})") from error
    return value
