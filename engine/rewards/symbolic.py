"""Compares expressions by math-verify, for ever and with all the memory there is: call it where it can be killed.

Its own timeouts are off: they work in a main thread only. So is its stripping of units, to which `2t` is 2 tons.
"""

import logging
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended.math_normalization import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from engine.errors import RewardError
from engine.rewards.equality import FINE_DECIMAL
from engine.rewards.readings import Equation, Expression, Listing, Quantity, Reading

_LATEX = LatexExtractionConfig(
    boxed_match_priority=-1,
    normalization_config=NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="none"
    ),
)
_DIGITS = 30  # of a value that a decimal is held against

for name in ("math_verify", "math_verify.parser", "math_verify.grader", "latex2sympy2_extended"):
    logging.getLogger(name).setLevel(logging.ERROR)  # it warns of its timeouts being off


def same(answer: Expression | Quantity, gold: Expression | Quantity) -> bool | None:
    """Whether two values are equal; None where `answer` cannot be parsed.

    Raises:
        RewardError: if `gold` cannot be parsed.
    """
    theirs = _parse(_latex(gold))
    if not theirs:
        raise RewardError(f"gold: {_latex(gold)!r} cannot be parsed by math-verify; rewrite or drop the problem.")
    ours = _parse(_latex(answer))
    if not ours:
        return None
    for decimal, value in ((answer, theirs[0]), (gold, ours[0])):
        if isinstance(decimal, Quantity) and 0 < decimal.number.place <= FINE_DECIMAL and _is_close(decimal, value):
            return True
    if _is_in_degrees(answer) and _is_in_radians(gold):
        ours = [ours[0] * sympy.pi / 180]
    elif _is_in_degrees(gold) and _is_in_radians(answer):
        theirs = [theirs[0] * sympy.pi / 180]
    return bool(verify(theirs, ours, strict=True, timeout_seconds=None, allow_set_relation_comp=True))


def check(gold: Reading) -> None:
    """Raise RewardError if any expression of `gold` cannot be parsed."""
    if isinstance(gold, Listing):
        for item in gold.items:
            check(item)
    elif isinstance(gold, Equation):
        check(gold.value)
    elif isinstance(gold, Expression):
        same(gold, gold)


def warm_up() -> None:
    """Have everything imported and cached that an ordinary comparison needs."""
    same(Expression(r"\frac{3x+7}{10}"), Expression(r"\frac{7+3x}{10}"))
    same(Expression(r"\frac{\sqrt{3}}{2}"), Expression(r"\sin(\frac{\pi}{3})"))


def _parse(latex: str) -> list[Any]:
    found = parse(f"${latex}$", extraction_config=[_LATEX], fallback_mode="no_fallback", parsing_timeout=None)
    return [_with_imaginary_unit(each) for each in found if not isinstance(each, str)]


def _with_imaginary_unit(value: Any) -> Any:
    """Return `value` with a free `i` as the imaginary unit; to math-verify it is one letter among others."""
    units = {symbol: sympy.I for symbol in getattr(value, "free_symbols", ()) if symbol.name == "i"}
    return value.subs(units) if units else value


def _latex(value: Expression | Quantity) -> str:
    if isinstance(value, Expression):
        return value.text
    number = value.number.value / (100 if value.percent else 1) * value.scale
    return _exact(number)


def _exact(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    sign = "-" if number < 0 else ""
    return rf"{sign}\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"


def _is_in_degrees(value: Expression | Quantity) -> bool:
    return value.unit is not None and value.unit.dimension == "angle"


def _is_in_radians(value: Expression | Quantity) -> bool:
    return isinstance(value, Expression) and value.unit is None and r"\pi" in value.text


def _is_close(decimal: Quantity, value: object) -> bool:
    if not isinstance(value, sympy.Expr) or value.free_symbols:
        return False
    exact = sympy.N(value, _DIGITS)
    if not exact.is_real:
        return False
    number = decimal.number
    return abs(Fraction(str(exact)) - number.value) <= number.place
