"""Reads a number with what stands around it: `US$ 2,500`, `12.5 %`, `3 million`, `42 dollars`."""

import re
from dataclasses import replace
from fractions import Fraction

from engine.rewards.number_words import leading_number_words, read_number_words
from engine.rewards.numbers import leading_number
from engine.rewards.readings import Number, Quantity
from engine.rewards.spelling import without_marks
from engine.rewards.units import SCALES, Unit, currency, read_unit

_SIGN = re.compile(r"([+-]|(?:minus|negative)(?=\s))?\s*", re.IGNORECASE)
_CODES = {"EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_CURRENCY = re.compile(
    r"(?:US|U\.S\.|A|C|CA|AU|NZ|HK)?\s?(\$|€|£|¥|₹|Rs)\.?\s*|(USD|EUR|GBP|JPY|INR)(?=[\s0-9$])\s*\$?\s*", re.IGNORECASE
)
_PERCENT = re.compile(r"\s*(?:%|per\s?cent(?:age)?(?: points?)?(?![a-z])|pct\.?(?![a-z]))", re.IGNORECASE)
_ASIDE = re.compile(r"\s+\(([A-Za-z][A-Za-z -]*)\)")  # `42 (forty-two)`, `42 (dollars)`
_SCALE = re.compile(rf"\s*({'|'.join(SCALES)})s?(?![a-z])", re.IGNORECASE)


def read_quantity(text: str, *, accounts: bool = False) -> Quantity | None:
    """Return the number that plain `text` states, with sign, currency, percent sign, word of scale and unit.

    `accounts` reads `(5)` as −5. None where anything else stands in the text.
    """
    sign = _SIGN.match(text)
    assert sign is not None
    negative, body = sign.group(1) not in (None, "+"), text[sign.end() :]
    money = _CURRENCY.match(body)
    unit = None
    if money is not None:
        body = body[money.end() :]
        unit = _unit_of(money)
    if accounts and not negative and (pair := re.match(r"\(\s*([^()]*?)\s*\)", body)):
        negative, body = True, pair.group(1) + body[pair.end() :]
        if (money := _CURRENCY.match(body)) is not None:
            body, unit = body[money.end() :], _unit_of(money)
        if body.startswith(("-", "+")):
            return None
    elif negative and body.startswith(("-", "+")):
        return None
    found = leading_number(body)
    if found is None:
        return None if unit is not None else _number_word(body, negative)
    number, rest = found
    if negative:
        number = Number(-number.value, number.place)
    percent = _PERCENT.match(rest)
    rest = rest[percent.end() :] if percent else rest
    scale = _SCALE.match(rest)
    rest = rest[scale.end() :] if scale else rest
    quantity = Quantity(number, bool(percent), SCALES[scale.group(1).lower()] if scale else 1, unit)
    if (aside := _ASIDE.fullmatch(rest)) is not None:
        said = read_number_words(aside.group(1))
        if said is not None and said != number.value:
            return None
        rest = f" {aside.group(1)}" if said is None else ""
    if not rest.strip(" .,"):
        return quantity
    if percent is None and re.match(r"[(\[{+\-=<>:|&]", rest.lstrip()):
        return None
    named = read_unit(rest, apart=rest.startswith(" ") or scale is not None)
    if named is None:
        return None
    return replace(quantity, unit=unit if unit is not None and named.dimension is None else named)


def _unit_of(money: re.Match[str]) -> Unit:
    sign, code = money.groups()
    if sign is None:
        return currency(_CODES.get(code.upper(), "$"))
    return currency("Rs" if sign.lower() == "rs" else sign)


def _number_word(text: str, negative: bool) -> Quantity | None:
    found = leading_number_words(without_marks(text), scales=SCALES)
    if found is None:
        return None
    value, rest = found
    scale = _SCALE.fullmatch(rest)
    unit = None
    if rest and scale is None and (unit := read_unit(rest, apart=True)) is None:
        return None
    number = Number(Fraction(-value if negative else value), Fraction(1))
    return Quantity(number, scale=SCALES[scale.group(1).lower()] if scale else 1, unit=unit)
