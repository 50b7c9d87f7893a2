"""Reads one number exactly. An expression is never evaluated: `6*7` is not read as 42."""

import re
from collections.abc import Callable
from fractions import Fraction

from engine.rewards.readings import Number
from engine.rewards.spelling import plain

LONGEST_NUMBER = 200  # characters; a longer text is not read as a number
LARGEST_EXPONENT = 400  # of ten; a larger one is not read as a number

_INTEGER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.[0-9]*)?|\.[0-9]+)"
_TEX_FRACTION = r"\\frac\s*\{\s*([+-]?[0-9,]+)\s*\}\s*\{\s*([+-]?[0-9,]+)\s*\}"
_FORMS = (
    (
        "scientific",
        rf"({_DECIMAL})\s*(?:[eE]\s*([+-]?[0-9]{{1,3}})"
        r"|(?:\\times|\\cdot|\*|[xX])\s*10\s*\^\s*\{?\s*([+-]?[0-9]{1,3})\s*\}?)",
    ),
    ("power_of_ten", r"10\s*\^\s*(?:\{\s*([+-]?[0-9]{1,3})\s*\}|([0-9]{1,3}))"),
    ("mixed", rf"({_INTEGER})\s*{_TEX_FRACTION}"),
    ("mixed", r"([0-9]+)\s+([0-9]+)\s*/\s*([0-9]+)"),
    ("fraction", _TEX_FRACTION),
    ("fraction", rf"({_INTEGER})\s*/\s*({_INTEGER})"),
    ("repeating", r"([0-9]*)\.([0-9]*)\\(?:overline|bar|dot)\s*\{\s*([0-9]+)\s*\}"),
    ("decimal", rf"({_DECIMAL})"),
)
_PATTERNS = [(form, re.compile(pattern)) for form, pattern in _FORMS]
_AHEAD = re.compile(r"[0-9.^!_]|\s*[\\/*^]|\s+[0-9]|,[0-9]")  # what may not follow a number


def read_number(text: str) -> Fraction | None:
    r"""Return the number that `text` states, exactly; None where it does not state one number.

    Reads integers, decimals, fractions (`3/4`, `\frac{3}{4}`), mixed numbers (`2 1/3`), powers of ten
    (`1.5 \times 10^{3}`, `1.2e6`) and repeating decimals (`0.\overline{3}`), with a sign (`+`, `-`, `−`), with
    commas between groups of three digits, with a full stop at the end, or wrapped in `$…$`, `**…**`, `\(…\)`,
    `\boxed{…}`. `12 13`, `3/0`, `1,2`, `x = 5`, `25%` and `2+2` are not read.
    """
    if len(text) > LONGEST_NUMBER:
        return None
    found = leading_number(plain(text))
    return found[0].value if found is not None and not found[1] else None


def leading_number(text: str) -> tuple[Number, str] | None:
    """Return the number that plain `text` begins with, sign included, and what follows; None where there is none."""
    sign = re.match(r"([+-]?)\s*", text)
    assert sign is not None
    for form, pattern in _PATTERNS:
        found = pattern.match(text, sign.end())
        if found is None:
            continue
        rest = text[found.end() :]
        if len(found.group()) > LONGEST_NUMBER or _AHEAD.match(rest):
            continue
        number = _FORM_READERS[form](*(group for group in found.groups() if group is not None))
        if number is None:
            return None
        return (Number(-number.value, number.place) if sign.group(1) == "-" else number), rest
    return None


def _decimal(digits: str) -> Number:
    digits = digits.replace(",", "")
    _, _, after_point = digits.partition(".")
    return Number(Fraction(digits), Fraction(1, 10 ** len(after_point)))


def _scientific(digits: str, exponent: str) -> Number | None:
    if abs(int(exponent)) > LARGEST_EXPONENT:
        return None
    number, power = _decimal(digits), Fraction(10) ** int(exponent)
    return Number(number.value * power, number.place * power)


def _power_of_ten(exponent: str) -> Number | None:
    return _scientific("1", exponent)


def _fraction(top: str, bottom: str) -> Number | None:
    numerator, denominator = int(top.replace(",", "")), int(bottom.replace(",", ""))
    return None if denominator == 0 else Number(Fraction(numerator, denominator))


def _mixed(whole: str, top: str, bottom: str) -> Number | None:
    part = _fraction(top, bottom)
    if part is None or not 0 < part.value < 1:
        return None
    return Number(int(whole.replace(",", "")) + part.value)


def _repeating(whole: str, before: str, period: str) -> Number:
    steady = Fraction(f"{whole or 0}.{before or 0}")
    return Number(steady + Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(before)))


_FORM_READERS: dict[str, Callable[..., Number | None]] = {
    "scientific": _scientific,
    "power_of_ten": _power_of_ten,
    "mixed": _mixed,
    "fraction": _fraction,
    "repeating": _repeating,
    "decimal": _decimal,
}
