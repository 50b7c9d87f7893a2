"""Loads a person's own reward in a grader process and calls it. A fault is told with its line in the file."""

import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.errors import RewardError
from engine.rewards.contract import whole_reward
from engine.types import Problem, Reward

FUNCTION = "reward"
_LONGEST = 500  # characters of a reason


@lru_cache(maxsize=4)
def load(path: str, source: str) -> Callable[..., object]:
    """Return the function `reward` of a file with this text, which is run for it.

    Raises:
        RewardError: if it cannot be, with the line; or there is no such function.
    """
    file = Path(path)
    module = ModuleType(f"own_reward_{file.stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except BaseException as error:  # SystemExit among them: no file ends this process
        raise RewardError(fault_words(error, path)) from None
    function = getattr(module, FUNCTION, None)
    if not callable(function):
        raise RewardError(f"{file.name} has no function `{FUNCTION}(completion, gold, problem)`; define one")
    return function  # type: ignore[no-any-return]


def judge(function: Callable[..., object], path: str, completion: str, problem: dict[str, Any]) -> dict[str, Any]:
    """Return the reward of one completion and its seconds as a JSON document; not graded where the function raises."""
    started = time.perf_counter()
    try:
        document = as_document(whole_reward(function(completion, problem["gold"], Problem(**problem))))
    except BaseException as error:  # SystemExit as well: whatever it raises costs one completion
        document = {"verdict": "not_graded", "reason": fault_words(error, path), "worn": isinstance(error, MemoryError)}
    return document | {"seconds": time.perf_counter() - started}


def as_document(reward: Reward) -> dict[str, Any]:
    """Return a whole reward in plain numbers and texts."""
    return {
        "value": None if reward.value is None else float(reward.value),
        "parts": {str(name): float(value) for name, value in reward.parts.items()},
        "answer": reward.answer,
        "verdict": reward.verdict,
        "reason": reward.reason[:_LONGEST],
    }


def fault_words(error: BaseException, path: str) -> str:
    """Return type and message of `error`, and the line of the file at `path` that it came from (innermost frame)."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    said = error.msg if isinstance(error, SyntaxError) else _message(error)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f" ({Path(path).name} line {line})" if line is not None else f" ({Path(path).name})"
    what = type(error).__name__ + (f": {said}" if said else "")
    return " ".join(what.split())[: _LONGEST - len(place)] + place


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "more than a grader process may have"
    try:
        return str(error)
    except Exception:  # its own __str__ may be at fault
        return "(its message cannot be read)"
