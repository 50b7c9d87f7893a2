"""Splits plain text where it is not inside brackets."""

import re

_BRACKET = re.compile(r"\\\{|\\\}|[()\[\]{}]")
_OPENING = frozenset(("\\{", "(", "[", "{"))


def split(text: str, separator: re.Pattern[str]) -> list[str]:
    """Return the parts of `text` between the matches of `separator` outside all brackets, spaces removed.

    Brackets of any two kinds may close each other, as in the interval `[0,1)`.
    """
    depths = _depths(text)
    parts, start = [], 0
    for found in separator.finditer(text):
        if depths[found.start()] == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    return [*parts, text[start:].strip()]


def enclosed(text: str) -> tuple[str, str, str] | None:
    r"""Return opening bracket, content and closing bracket where one pair encloses all of `text`, else None."""
    opening = _BRACKET.match(text)
    if opening is None or opening.group() not in _OPENING:
        return None
    now = 0
    for found in _BRACKET.finditer(text):
        now += 1 if found.group() in _OPENING else -1
        if now == 0:
            if found.end() != len(text):
                return None
            return opening.group(), text[opening.end() : found.start()].strip(), found.group()
    return None


def depth(text: str) -> int | None:
    """Return how many brackets stand in each other at most; None where one does not open or close."""
    now = deepest = 0
    for found in _BRACKET.finditer(text):
        now += 1 if found.group() in _OPENING else -1
        deepest = max(deepest, now)
        if now < 0:
            return None
    return deepest if now == 0 else None


def _depths(text: str) -> list[int]:
    depths, now, position = [0] * (len(text) + 1), 0, 0
    for found in _BRACKET.finditer(text):
        depths[position : found.start()] = [now] * (found.start() - position)
        position = found.start()
        now += 1 if found.group() in _OPENING else -1
    depths[position:] = [now] * (len(text) + 1 - position)
    return depths
