"""What a reward function owes: a whole Reward, whatever wrote it."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, get_args

from engine.types import Reward, Verdict

LONGEST_ANSWER = 10_000  # characters
MOST_PARTS = 16
RESERVED = ("placebo", "length", "repetition", "overlong")  # parts that the sections `reward` and `truncation` add


def whole_reward(returned: object) -> Reward:
    """Return `returned` where it is a whole Reward, else one that is not graded, with what is wrong as the reason."""
    if not isinstance(returned, Reward):
        return not_graded(f"the reward function returned {type(returned).__name__}, not Reward")
    fault = _fault(returned)
    return not_graded(fault) if fault else returned


def not_graded(reason: str) -> Reward:
    """Return the reward of a completion that could not be judged."""
    return Reward(value=None, parts={}, answer=None, verdict="not_graded", reason=reason)


def _fault(reward: Any) -> str | None:  # its fields are whatever the function put there
    if reward.verdict not in get_args(Verdict):
        return f"verdict {reward.verdict!r} is not one of {', '.join(get_args(Verdict))}"
    if (reward.value is None) != (reward.verdict == "not_graded"):
        return f"value {reward.value} does not go with verdict {reward.verdict!r}"
    if reward.value is not None and not isinstance(reward.value, Real):
        return f"value {reward.value!r} is {type(reward.value).__name__}, not a number"
    if reward.value is not None and not math.isfinite(reward.value):
        return f"value {reward.value} is not finite"
    if not isinstance(reward.answer, str | None):
        return f"answer {reward.answer!r} is {type(reward.answer).__name__}, not a text or None"
    if reward.answer is not None and len(reward.answer) > LONGEST_ANSWER:
        return f"answer has {len(reward.answer):,} characters; at most {LONGEST_ANSWER:,}"
    if not isinstance(reward.reason, str):
        return f"reason {reward.reason!r} is {type(reward.reason).__name__}, not a text"
    return _fault_of_parts(reward.parts)


def _fault_of_parts(parts: Any) -> str | None:
    if not isinstance(parts, Mapping):
        return f"parts {parts!r} is {type(parts).__name__}, not a dict of names and numbers"
    if len(parts) > MOST_PARTS:
        return f"parts has {len(parts)} names; at most {MOST_PARTS}"
    for name, value in parts.items():
        if not isinstance(name, str) or not name.isidentifier() or len(name) > 40:
            return f"part {name!r} is no plain name of at most 40 letters, digits and _"
        if name in RESERVED:
            return f"part {name!r} is one that the config adds to a reward; choose another name"
        if not isinstance(value, Real) or not math.isfinite(value):
            return f"part {name!r} is {value!r}, not a finite number"
    return None
