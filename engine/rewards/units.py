"""Units of measurement: which two can be compared, and by what factor. A word that is no unit here is not compared."""

import re
from dataclasses import dataclass
from fractions import Fraction

from engine.rewards.spelling import TEXT_OPEN, without_marks

SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 1_000, "million": 10**6, "mn": 10**6, "billion": 10**9, "bn": 10**9,
    "trillion": 10**12,
}  # fmt: skip
CURRENCIES = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee", "Rs": "rupee"}

# dimension: unit of it, with its size in the first one's terms
_TABLE: dict[str, dict[str, Fraction | int]] = {
    "length": {
        "m meter metre": 1, "mm millimeter millimetre": Fraction(1, 1000), "cm centimeter centimetre": Fraction(1, 100),
        "dm decimeter decimetre": Fraction(1, 10), "km kilometer kilometre": 1000,
        "in inch inche": Fraction(254, 10_000), "ft foot feet": Fraction(3048, 10_000),
        "yd yard": Fraction(9144, 10_000), "mi mile": Fraction(1_609_344, 1000),
    },
    "volume": {"l liter litre": 1, "ml milliliter millilitre": Fraction(1, 1000), "cl": Fraction(1, 100)},
    "mass": {
        "g gm gram gramme": 1, "mg milligram": Fraction(1, 1000), "kg kilogram kilo": 1000,
        "oz ounce": Fraction(28_349_523_125, 10**9), "lb pound": Fraction(45_359_237, 100_000),
    },
    "time": {
        "s sec second": 1, "min minute": 60, "h hr hour": 3600, "day": 86_400, "week wk": 604_800,
    },
    "calendar": {"month": 1, "year yr": 12},
    "angle": {"degree deg": 1},
    "dollar": {"dollar usd us$ buck": 1, "cent ¢": Fraction(1, 100)},
    "euro": {"euro eur": 1},
    "gbp": {"gbp": 1},
    "yen": {"yen jpy": 1},
    "rupee": {"rupee rs inr": 1},
    "speed": {"mph": 1},
    "kilometre per hour": {"kmh kph kmph": 1},
}  # fmt: skip
_KNOWN = {
    name: (dimension, Fraction(factor))
    for dimension, units in _TABLE.items()
    for names, factor in units.items()
    for name in names.split()
}
_SINGLE_LETTERS = {"m", "g", "s", "h", "l"}
_POWER = re.compile(r"\^\s*\{?\s*([23])\s*\}?$")
_WORDS = re.compile(r"[A-Za-z$€£¥¢][A-Za-z$.'/-]*(?:\s+[A-Za-z(][A-Za-z.'/)-]*){0,5}(?:\s*\^\s*\{?\s*[23]\s*\}?)?")
_TEXT_WORDS = re.compile(r"[^0-9,;=<>]*(?:\^\s*\{?\s*[23]\s*\}?)?")
# Words that make something else of the number before them.
_NO_UNIT = frozenset(
    """and or not to plus minus over mod choose factorial squared cubed half halves third thirds quarter quarters
    fourths fifths sixths sevenths eighths ninths tenths hundredths thousandths sin cos tan cot sec csc log ln exp lim
    max min sqrt frac if but maybe perhaps possibly through between either neither divided multiplied power root
    is are was times""".split()  # noqa: SIM905
) - {"min", "sec"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it was written; `dimension` is None where it is not in the table."""

    words: str
    dimension: str | None = None
    factor: Fraction = Fraction(1)


def read_unit(text: str, *, apart: bool) -> Unit | None:
    """Return the unit that `text` names, as it stands after a number; None where it is something else.

    A single letter right after a number is a variable; `apart` says that it is set off by a space or as text.
    """
    set_as_text = TEXT_OPEN in text
    text = re.sub(r"\s+", " ", without_marks(text, " ")).strip(" .,").replace(" ^", "^")
    if not (_TEXT_WORDS if set_as_text else _WORDS).fullmatch(text):
        return None
    words = text.lower().replace(".", "").split()
    if not words or (any(word in _NO_UNIT for word in words) and words != ["times"]):  # `3 times` as much
        return None
    if len(text) == 1 and not (set_as_text or (apart and text.lower() in _SINGLE_LETTERS) or text in CURRENCIES):
        return None
    return _known(words) or Unit(text)


def currency(sign: str) -> Unit:
    """Return the unit of a currency sign."""
    return Unit(sign, CURRENCIES[sign])


def _known(words: list[str]) -> Unit | None:
    power = 1
    if words[0] in ("square", "sq", "cubic", "cu") and len(words) == 2:
        power, words = (2 if words[0].startswith("sq") else 3), words[1:]
    text = " ".join(words)
    if raised := _POWER.search(text):
        power, text = int(raised.group(1)), text[: raised.start()]
    text = re.sub(r"^(?:us|u s) ", "", text)
    if text in ("miles per hour", "mile per hour", "mi/h"):
        text = "mph"
    if text in ("km/h", "kilometers per hour", "kilometres per hour", "km per hour"):
        text = "kmh"
    found = _KNOWN.get(text) or _KNOWN.get(text.removesuffix("s")) or _KNOWN.get(text.removesuffix("es"))
    if found is None or (power > 1 and found[0] != "length"):
        return None
    dimension, factor = found
    return Unit(" ".join(words), dimension if power == 1 else f"{dimension}^{power}", factor**power)
