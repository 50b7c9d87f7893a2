"""Compares numbers exactly. An expression is never evaluated: `6*7` is not read as 42."""

import re
from fractions import Fraction

LONGEST_NUMBER = 200  # characters; a longer text is not read as a number

_INTEGER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = re.compile(rf"([+-]?)\s*({_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)")
_SLASH = re.compile(rf"([+-]?)\s*({_INTEGER})\s*/\s*({_INTEGER})")
_TEX_FRACTION = re.compile(r"([+-]?)\s*\\[dt]?frac\s*(?:\{\s*([0-9]+)\s*\}|([0-9]))\s*(?:\{\s*([0-9]+)\s*\}|([0-9]))")
_WRAPPERS = (("\\boxed{", "}"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("$", "$"))


def read_number(text: str) -> Fraction | None:
    r"""The number that `text` states, exactly; None where it does not state one number.

    Reads integers, decimals and fractions (`3/4`, `\frac{3}{4}`), with a sign (`+`, `-`, `−`), with commas
    between groups of three digits, a full stop at the end, or wrapped in `$…$`, `**…**`, `\(…\)`, `\boxed{…}`.
    `12 13`, `3/0`, `1,2`, `x = 5`, `25%` and `2+2` are not read.
    """
    text = _unwrap(text.replace("−", "-"))
    if len(text) > LONGEST_NUMBER:
        return None
    if match := _DECIMAL.fullmatch(text):
        sign, digits = match.groups()
        return _signed(sign, Fraction(digits.replace(",", "")))
    if match := _SLASH.fullmatch(text):
        sign, top, bottom = match.groups()
        return _ratio(sign, top, bottom)
    if match := _TEX_FRACTION.fullmatch(text):
        sign, top, short_top, bottom, short_bottom = match.groups()
        return _ratio(sign, top or short_top, bottom or short_bottom)
    return None


def _unwrap(text: str) -> str:
    """`text` without spaces, wrappers and full stops around it."""
    while True:
        bare = text.strip()
        if len(bare) > 1 and bare.endswith("."):
            bare = bare[:-1]
        for opening, closing in _WRAPPERS:
            if len(bare) > len(opening + closing) and bare.startswith(opening) and bare.endswith(closing):
                bare = bare[len(opening) : -len(closing)]
        if bare == text:
            return text
        text = bare


def _ratio(sign: str, top: str, bottom: str) -> Fraction | None:
    numerator, denominator = int(top.replace(",", "")), int(bottom.replace(",", ""))
    return None if denominator == 0 else _signed(sign, Fraction(numerator, denominator))


def _signed(sign: str, size: Fraction) -> Fraction:
    return -size if sign == "-" else size
