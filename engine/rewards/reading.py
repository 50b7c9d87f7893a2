"""Reads what an answer says, as far as it can be told without computing anything."""

import re
from functools import lru_cache

from engine.rewards.quantities import read_quantity
from engine.rewards.readings import Equation, Expression, Listing, Numeral, Reading, Words
from engine.rewards.spelling import TEXT_CLOSE, TEXT_OPEN, plain, without_marks
from engine.rewards.splitting import depth, enclosed, split
from engine.rewards.units import CURRENCIES, read_unit

LONGEST_ANSWER = 1_000  # characters
DEEPEST = 30  # brackets in each other
MOST_WORDS = 5  # of an answer that is words

_SEPARATOR = re.compile(r",?\s+(?:and|or)\s+(?:or\s+)?|;|,(?![0-9]{3}(?![0-9]))\s*(?:(?:and|or)\s+)?|(?<=[^0-9]),")
_COMMA = re.compile(",|;")
_SET_COMMA = re.compile(r",(?![0-9]{3}(?![0-9]))|;")  # `{1,365}` holds one number
_UNION = re.compile(r"\\cup(?![a-zA-Z])|(?<=[)\]])\s*U\s*(?=[(\[])")
_APPROX = re.compile(r"\\(?:thick)?approx(?![a-zA-Z])")
_EQUALS = re.compile(r"(?<![<>!:\\])=(?!=)")
_RELATION = re.compile(r"\\le(?![a-zA-Z])|\\ge(?![a-zA-Z])|\\lt(?![a-zA-Z])|\\gt(?![a-zA-Z])|<|>")
_NAME = re.compile(
    r"[a-zA-Z](?:_\{?\w+\}?)?|\\[a-z]+|[a-zA-Z]\s*\(\s*[a-zA-Z0-9]\s*\)|[A-Z]{2,4}|[A-Za-z][a-z]+(?: [a-z]+){0,3}"
)
_MEMBER = re.compile(r"([a-zA-Z])\s*\\in(?![a-zA-Z])\s*")
_PLUS_MINUS = re.compile(r"\\pm(?![a-zA-Z])")
_MATRIX = re.compile(r"\\begin\s*\{([pbvBV]?matrix|array)\}(?:\{[^{}]*\})?(.*)\\end\s*\{\1\}", re.DOTALL)
_NUMERAL = re.compile(r"(-?[0-9A-Z.]+)\s*_\s*\{?\s*([0-9]{1,2})\s*\}?")
_TIME = re.compile(
    r"0?([0-9]{1,2})\s*:\s*([0-9]{2}(?:\s*:\s*[0-9]{2})?)\s*([ap]\s*\.?\s*m\.?)?|([0-9]{1,2})\s*([ap]\s*\.?\s*m\.?)",
    re.IGNORECASE,
)
_UNIT_AT_END = re.compile(rf"\s*{TEXT_OPEN}([^{TEXT_CLOSE}]*){TEXT_CLOSE}\s*(\^\s*\{{?\s*[23]\s*\}}?)?$")
_WORDS_AT_END = re.compile(r"(?<=[0-9)}\sa-z])\s+([a-z]{3,}(?:\s+[a-z]{2,})*)$")
_LETTERS = re.compile(r"[A-Za-z]{2,}(?:['-][A-Za-z]+)*(?:,? (?:[aAI]|[A-Za-z]{2,}(?:['-][A-Za-z]+)*))*")
# A letter with what it stands for; a second letter makes it a list.
_CHOICE = re.compile(r"(?:\(?([A-Z])(?:\)\s*:?|[.:])\s+|\(([A-Z])\)\s*)(?![,;&]|and\b|or\b)(?!.*\b[A-Z][.):]).+")
_POINTS = re.compile(
    r"\\(?:angle|triangle|overline|overrightarrow|overleftrightarrow|vec|widehat|measuredangle)\s*\{?\s*([A-Z]{1,5})\s*\}?"
)
_JOINED = re.compile(r",|\b(?:and|or)\b")
_ALL_NUMBERS = re.compile(r"\\mathbb\s*\{?R\}?|\\R|(?:all )?real numbers|all reals", re.IGNORECASE)
_SENTENCE = re.compile(r"[A-Za-z][^=0-9\\]*\s(?:is|are|was|were|equals|has|have)\s+(?:equal to\s+)?(.+)")
_DEGREES = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s*{TEXT_OPEN} degrees{TEXT_CLOSE}")
_FUNCTIONS = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_HEDGE = re.compile(r"(?<![\\a-zA-Z])(?:to|if|but|more|less|least|most|around|unless)(?![a-zA-Z])", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|never|neither|nor|or|either|cannot|maybe|perhaps|between|than)\b|n't\b", re.IGNORECASE)
_SOMETHING = re.compile(r"\w|\\emptyset|\\infty|\\\{")
_NOTHING = frozenset(("nan", "none", "null", "n/a", "na", "?", "-"))


@lru_cache(maxsize=4096)
def read(text: str, *, accounts: bool = False) -> Reading | None:
    """Return what `text` says, or None where it says nothing that is an answer.

    `accounts` reads `(1,234)` as −1,234, as accounts have it.
    """
    if len(text) > LONGEST_ANSWER:
        return None
    text = plain(text)
    if len(text) > LONGEST_ANSWER or text.lower() in _NOTHING or not _SOMETHING.search(text):
        return None
    nested = depth(text)
    return _read(text, accounts) if nested is not None and nested <= DEEPEST else None


def _read(text: str, accounts: bool) -> Reading | None:
    text = re.sub(r"^\+(?!\s*[+-])\s*", "", text.strip())
    return (
        _time(text)
        or read_quantity(text, accounts=accounts)
        or _numeral(text)
        or _choice(text)
        or _listing(text, accounts)
        or _relation(text, accounts)
        or _words(text)
        or (None if _DENIAL.search(text) else _sentence(text, accounts) or _expression(text))
    )


def _numeral(text: str) -> Numeral | None:
    found = _NUMERAL.fullmatch(without_marks(text))
    if found is None or not re.search(r"[0-9]", found.group(1)):
        return None
    return Numeral(found.group(1), int(found.group(2)))


def _time(text: str) -> Words | None:
    found = _TIME.fullmatch(without_marks(text).strip())
    if found is None:
        return None
    hour, minute, half, lone_hour, lone_half = found.groups()
    clock = f"{int(hour)}:{minute}" if hour else f"{int(lone_hour)}:00"
    return Words(re.sub(r"[ .]", "", clock + (half or lone_half or "").lower()))


def _choice(text: str) -> Words | None:
    """A choice letter in brackets, or one followed by what it stands for."""
    bare = without_marks(text)
    if re.fullmatch(r"\(\s*[A-Za-z]\s*\)", bare):
        return Words(bare.strip("( )").lower())
    found = _CHOICE.fullmatch(bare)
    return Words((found.group(1) or found.group(2)).lower()) if found else None


def _listing(text: str, accounts: bool) -> Reading | None:
    if _ALL_NUMBERS.fullmatch(without_marks(text)):
        return Listing((Expression(r"-\infty"), Expression(r"\infty")), "()")
    inner = text
    if text.startswith(TEXT_OPEN) and text.endswith(TEXT_CLOSE) and text.count(TEXT_OPEN) == 1:
        inner = text[1:-1].strip()
        if (pair := enclosed(inner)) is not None and "," not in inner:
            inner = pair[1]
        if not _JOINED.search(inner):
            return Words(_folded(inner)) if _is_wordy(inner) else _read(inner, accounts)
    if (matrix := _MATRIX.fullmatch(inner)) is not None:
        rows = [split(row, re.compile("&")) for row in re.split(r"\\\\", matrix.group(2)) if row.strip()]
        return _items([part for row in rows for part in row], f"\\{len(rows)}", accounts)
    unions = split(inner, _UNION)
    if len(unions) > 1:
        return _items(unions, "∪", accounts)
    if (member := _MEMBER.match(inner)) is not None:
        return _read(inner[member.end() :], accounts)
    parts = [part for part in split(inner, _SEPARATOR) if part]
    if len(parts) > 1:
        return _items(parts, "", accounts)
    if (pair := enclosed(inner)) is not None:
        return _bracketed(*pair, accounts)
    signs = split(inner, _PLUS_MINUS)
    if len(signs) == 2 and inner.count(r"\pm") == 1 and "=" not in signs[1]:
        start = signs[0].rpartition("=")[2]
        both = [f"{start} + {signs[1]}", f"{start} - {signs[1]}"] if start else [signs[1], f"-{_braced(signs[1])}"]
        return _items(both, "", accounts)
    return None


def _bracketed(opening: str, content: str, closing: str, accounts: bool) -> Reading | None:
    braces = opening == "\\{"
    if not content:
        return Expression(r"\emptyset") if braces else None
    parts = split(content, _SET_COMMA if braces else _COMMA)
    if len(parts) == 1:
        inner = _read(content, accounts)
        return Listing((inner,), "{}") if braces and inner is not None and not isinstance(inner, Listing) else inner
    return _items(parts, "{}" if braces or opening == "{" else opening + closing, accounts)


def _items(parts: list[str], brackets: str, accounts: bool) -> Listing | None:
    readings: list[Reading] = []
    for part in parts:
        reading = _read(part, accounts) if part else None
        if reading is None:
            return None
        if isinstance(reading, Listing) and brackets in ("", "{}", "∪") and reading.brackets == "":
            readings.extend(reading.items)
        else:
            readings.append(reading)
    return Listing(tuple(readings), brackets)


def _relation(text: str, accounts: bool) -> Reading | None:
    """The last side of an equation, the interval that an inequality names, the exact side of an approximation."""
    sides = split(text, _APPROX)
    if len(sides) == 2 and all(sides):
        return _read(sides[1] if _NAME.fullmatch(sides[0]) else sides[0], accounts)
    sides = split(text, _EQUALS)
    if len(sides) > 1:
        return _equation(text, sides, accounts) if all(sides) else None
    return _interval(text)


def _equation(text: str, sides: list[str], accounts: bool) -> Reading | None:
    last = _read(sides[-1], accounts)
    names = _NAME.fullmatch(sides[0])
    computed = not re.search(r"(?<![\\a-zA-Z])[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", "".join(sides)))
    if last is None or computed:
        return last
    return Equation(text, last, re.sub(r"\s", "", sides[0]) if names is not None else None)


def _interval(text: str) -> Listing | None:
    """The interval of `x < 3`, `3 \\ge x` or `0 \\le x < 1`."""
    sides, signs = split(text, _RELATION), _RELATION.findall(text)
    if len(signs) != len(sides) - 1 or len(sides) not in (2, 3) or not all(sides):
        return None
    below = [sign in ("<", r"\le", r"\lt") for sign in signs]
    closed = [sign in (r"\le", r"\ge") for sign in signs]
    infinity = Expression(r"\infty")
    if len(sides) == 3:
        if not re.fullmatch(r"[a-zA-Z]|\\theta", sides[1]) or below[0] != below[1]:
            return None
        low, high = (sides[0], sides[2]) if below[0] else (sides[2], sides[0])
        shut = closed if below[0] else closed[::-1]
        ends = (_read(low, False), _read(high, False))
        brackets = ("[" if shut[0] else "(") + ("]" if shut[1] else ")")
    else:
        name_first = re.fullmatch(r"[a-zA-Z]|\\theta", sides[0]) is not None
        if not name_first and not re.fullmatch(r"[a-zA-Z]|\\theta", sides[1]):
            return None
        end = _read(sides[1] if name_first else sides[0], False)
        upper = below[0] == name_first
        ends = (Expression(r"-\infty"), end) if upper else (end, infinity)
        brackets = ("(" + ("]" if closed[0] else ")")) if upper else (("[" if closed[0] else "(") + ")")
    return None if ends[0] is None or ends[1] is None else Listing((ends[0], ends[1]), brackets)


def _words(text: str) -> Words | None:
    """Words or the points that name a figure, but not a letter or two, which are a variable or a product."""
    bare = without_marks(text).strip()
    if (points := _POINTS.fullmatch(bare)) is not None:
        return Words(points.group(1).lower())
    if not _LETTERS.fullmatch(bare) or (len(bare) < 3 and bare.lower() not in ("no",)):
        return None
    return Words(_folded(bare)) if len(bare.split()) <= MOST_WORDS and _is_wordy(bare) else None


def _sentence(text: str, accounts: bool) -> Reading | None:
    found = _SENTENCE.fullmatch(without_marks(text, " "))
    if found is None:
        return None
    return _read(plain(found.group(1)), accounts)


def _expression(text: str) -> Expression | None:
    unit = None
    if _HEDGE.search(text):
        return None
    if _FUNCTIONS.search(text):
        text = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    if (found := _UNIT_AT_END.search(text)) is not None and found.start() > 0:
        unit = read_unit(found.group(1) + (found.group(2) or ""), apart=True)
        text = text[: found.start()]
    elif (found := _WORDS_AT_END.search(text)) is not None:
        unit = read_unit(found.group(1), apart=True)
        text = text[: found.start()] if unit is not None else text
    for sign in CURRENCIES:
        text = text.removeprefix(sign)
    text = without_marks(re.sub(rf"{TEXT_OPEN} degrees{TEXT_CLOSE}", "", text)).strip()
    if not text or not text.isascii() or len(re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]{4,}", text)) > 2:
        return None
    return Expression(text, unit)


def _is_wordy(text: str) -> bool:
    return _LETTERS.fullmatch(text) is not None or re.fullmatch(r"[\w ,.:'\"-]+", text) is not None


def _folded(text: str) -> str:
    text = re.sub(r"[\s.,:'\"-]+", " ", text).strip().lower()
    return re.sub(r"^(?:a|an|the) (?=\S)", "", text)


def _braced(text: str) -> str:
    return text if re.fullmatch(r"[\w\\{}]+", text) else f"({text})"
