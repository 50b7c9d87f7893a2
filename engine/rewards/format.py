"""Whether a completion keeps the form that its prompt asks for. Says nothing of the answer."""

from engine.rewards import extraction


def keeps_r1_zero_format(text: str) -> bool:
    """True where `</think> <answer>` (one space between) and `</answer>` both occur.

    The rule of `r1_zero_reward_fn` in Stanford CS336 assignment 5; strict on purpose: a line break between
    the tags breaks it.
    """
    return "</think> <answer>" in text and "</answer>" in text


def holds_box(text: str) -> bool:
    r"""True where the text holds a complete `\boxed{…}`."""
    return extraction.boxed(text) is not None
