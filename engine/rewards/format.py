"""Whether a completion keeps the form that its prompt asks for. Says nothing of the answer."""

import re

from engine.rewards import extraction

_TOLERANT = re.compile(r"</think>\s*<answer>(?:(?!</?answer>).)*</answer>", re.DOTALL)


def keeps_r1_zero_format(text: str) -> bool:
    """True where `</think> <answer>` (one space between) and `</answer>` both occur.

    The rule of `r1_zero_reward_fn` in Stanford CS336 assignment 5; strict on purpose: a line break between
    the tags breaks it.
    """
    return "</think> <answer>" in text and "</answer>" in text


def holds_box(text: str) -> bool:
    r"""True where the text holds a complete `\boxed{…}`."""
    return extraction.boxed(text) is not None


def holds_anything(text: str) -> bool:
    """True where the text holds more than white space."""
    return extraction.whole(text) is not None


def keeps_r1_zero_tolerant_format(text: str) -> bool:
    """True where a complete `<answer>…</answer>` follows `</think>` with at most white space between."""
    return _TOLERANT.search(text) is not None


def holds_hash_line(text: str) -> bool:
    """True where the text holds `####`."""
    return "####" in text


def holds_answer_line(text: str) -> bool:
    """True where an answer is marked as one: by tags, "Answer:" or "answer is"."""
    return extraction.answer_line(text) is not None
