"""Whether an answer says what the gold answer says. True, False, or None where only an algebra system can tell."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from engine.rewards.readings import Equation, Expression, Listing, Numeral, Quantity, Reading, Words
from engine.rewards.spelling import key

# Compares two values that are not both plain numbers; gives None where it cannot tell.
Leaf = Callable[[Expression | Quantity, Expression | Quantity], bool | None]

FINE_DECIMAL = Fraction(1, 10**6)  # six decimals stand for a value that does not end
# What a rounded figure may be off by, relative to gold: gold that is a round figure may well be exact.
ANSWER_ROUNDED, GOLD_ROUNDED = Fraction(5, 100), Fraction(1, 100)
_FUNCTION = re.compile(r"[a-zA-Z]\(.*\)")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two answers are compared: `rounded` lets either be a rounding of the other, `leaf` compares expressions."""

    leaf: Leaf
    rounded: bool = False

    def same(self, answer: Reading, gold: Reading) -> bool | None:
        """Whether `answer` says the same as `gold`."""
        if isinstance(answer, Equation) or isinstance(gold, Equation):
            return self._equations(answer, gold)
        if isinstance(answer, Listing) or isinstance(gold, Listing):
            return self._listings(_listing(answer), _listing(gold))
        if isinstance(answer, Numeral) or isinstance(gold, Numeral):
            return _same_numerals(answer, gold)
        if isinstance(answer, Words) or isinstance(gold, Words):
            return _same_words(answer, gold)
        if isinstance(answer, Quantity) and isinstance(gold, Quantity):
            return _same_quantities(answer, gold, self.rounded)
        return self._values(answer, gold)

    def _values(self, answer: Expression | Quantity, gold: Expression | Quantity) -> bool | None:
        if isinstance(answer, Expression) and isinstance(gold, Expression) and key(answer.text) == key(gold.text):
            return not _units_differ(answer, gold)
        if _units_differ(answer, gold) or _is_infinite(answer) or _is_infinite(gold):
            return False
        if isinstance(answer, Quantity) != isinstance(gold, Quantity) and (_is_variable(answer) or _is_variable(gold)):
            return False
        return self.leaf(answer, gold)

    def _equations(self, answer: Reading, gold: Reading) -> bool | None:
        if not isinstance(gold, Equation):
            assert isinstance(answer, Equation)
            return self.same(answer.value, gold)
        if not isinstance(answer, Equation):
            return self.same(answer, gold.value) if gold.name is not None else False
        if answer.name is not None and gold.name is not None:
            return False if _names_differ(answer.name, gold.name) else self.same(answer.value, gold.value)
        return self._values(Expression(answer.text), Expression(gold.text))

    def _listings(self, answer: Listing, gold: Listing) -> bool | None:
        if _is_union(answer) or _is_union(gold):
            answer, gold = _union(answer), _union(gold)
        if len(answer.items) != len(gold.items):
            return False
        if _brackets_differ(answer.brackets, gold.brackets):
            return False
        if answer.ordered or gold.ordered:
            return _all(self.same(*pair) for pair in zip(answer.items, gold.items, strict=True))
        return self._match(list(answer.items), list(gold.items))

    def _match(self, answers: list[Reading], golds: list[Reading]) -> bool | None:
        """Pair each gold item with an answer of its own; equality being transitive, any partner will do."""
        undecided = False
        for gold in golds:
            verdicts = [self.same(answer, gold) for answer in answers]
            if True in verdicts:
                del answers[verdicts.index(True)]
            elif None in verdicts:
                undecided = True
            else:
                return False
        return None if undecided else True


def _same_quantities(answer: Quantity, gold: Quantity, rounded: bool) -> bool:
    if _units_differ(answer, gold):
        return False
    factor = Fraction(1)
    if answer.unit is not None and gold.unit is not None and answer.unit.dimension is not None:
        factor = answer.unit.factor / gold.unit.factor
    for answer_factor in _worths(answer, gold):
        for gold_factor in _worths(gold, answer):
            scaled = answer_factor * factor
            if _same_numbers(answer, scaled, gold, gold_factor, rounded):
                return True
    return False


def _worths(quantity: Quantity, other: Quantity) -> list[Fraction]:
    """What the number may be multiplied by: a percent sign or a word of scale that the other lacks may be left out."""
    worth = Fraction(quantity.scale, 100 if quantity.percent else 1)
    extra = (quantity.scale > 1 and other.scale == 1) or (quantity.percent and not other.percent)
    if extra and (not quantity.percent or abs(quantity.number.value) > 1):
        return [worth, Fraction(1)]
    return [worth]


def _same_numbers(
    answer: Quantity, answer_factor: Fraction, gold: Quantity, gold_factor: Fraction, rounded: bool
) -> bool:
    ours, theirs = answer.number.value * answer_factor, gold.number.value * gold_factor
    gap = abs(ours - theirs)
    if gap == 0:
        return True
    our_place, their_place = answer.number.place * answer_factor, gold.number.place * gold_factor
    if rounded:
        return (2 * gap <= our_place and gap <= ANSWER_ROUNDED * abs(theirs)) or (
            2 * gap <= their_place and gap <= GOLD_ROUNDED * abs(theirs)
        )
    for place, exact in ((our_place, theirs), (their_place, ours)):
        if 0 < place <= FINE_DECIMAL and _never_ends(exact):
            return gap <= place
    return False


def _never_ends(value: Fraction) -> bool:
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return rest > 1


def _units_differ(answer: Expression | Quantity, gold: Expression | Quantity) -> bool:
    ours, theirs = answer.unit, gold.unit
    if isinstance(answer, Quantity) and isinstance(gold, Quantity) and answer.percent != gold.percent:
        return (theirs if answer.percent else ours) is not None
    if ours is None or theirs is None or ours.dimension is None or theirs.dimension is None:
        return False
    if isinstance(answer, Quantity) and isinstance(gold, Quantity):
        return ours.dimension != theirs.dimension
    return (ours.dimension, ours.factor) != (theirs.dimension, theirs.factor)


def _is_infinite(value: Expression | Quantity) -> bool:
    return isinstance(value, Expression) and value.text.lstrip("+- ") == r"\infty"


def _is_variable(value: Expression | Quantity) -> bool:
    """A lone letter that is no constant (`e`, `i`)."""
    return isinstance(value, Expression) and re.fullmatch("[a-df-hj-zA-DF-HJ-Z]", value.text) is not None


def _same_numerals(answer: Reading, gold: Reading) -> bool:
    if not isinstance(gold, Numeral):
        return False  # a base is never added
    if isinstance(answer, Numeral):
        return (answer.digits.lstrip("0"), answer.base) == (gold.digits.lstrip("0"), gold.base)
    if isinstance(answer, Quantity):
        number = answer.number.value
        return answer.unit is None and number.denominator == 1 and str(number) == gold.digits.lstrip("0")
    return isinstance(answer, Expression) and key(answer.text) == gold.digits


def _same_words(answer: Reading, gold: Reading) -> bool:
    if isinstance(answer, Words) and isinstance(gold, Words):
        if answer.text == gold.text:
            return True
        if re.match("[0-9]", gold.text):  # a time of day: the half of the day may be left out
            ours, theirs = answer.text.rstrip("apm"), gold.text.rstrip("apm")
            return ours == theirs and (ours == answer.text or theirs == gold.text)
        return False
    words, other = (answer, gold) if isinstance(answer, Words) else (gold, answer)
    assert isinstance(words, Words)
    if isinstance(other, Quantity) and other is answer:  # the full hour
        return other.unit is None and words.text.rstrip("apm") == f"{other.number.value}:00"
    return isinstance(other, Expression) and key(other.text).lower() == words.text.replace(" ", "")


def _names_differ(ours: str, theirs: str) -> bool:
    """Whether two names are of two things; `f(x)` is `y`, and a whole word may be any letter."""
    ours, theirs = (_FUNCTION.sub("y", name).lower() for name in (ours, theirs))
    return all(len(name) <= 4 or "_" in name for name in (ours, theirs)) and ours != theirs


def _listing(reading: Reading) -> Listing:
    return reading if isinstance(reading, Listing) else Listing((reading,))


def _is_union(listing: Listing) -> bool:
    return listing.brackets == "∪"


def _union(listing: Listing) -> Listing:
    if _is_union(listing):
        return listing
    intervals = all(isinstance(item, Listing) for item in listing.items)
    return Listing(listing.items if listing.brackets == "" and intervals else (listing,), "∪")


def _brackets_differ(ours: str, theirs: str) -> bool:
    r"""Whether two lists of equal length are of two kinds.

    A list without brackets is what the other is; `[1,2]` may be a list for a set; a matrix of one row or column may
    be a pair; nothing else may be another.
    """
    if ours == theirs or "" in (ours, theirs):
        return "∪" in (ours, theirs) and ours != theirs
    sets, pairs, matrices = {"{}", "∪"}, {"()", "[]", "[)", "(]"}, ours.startswith("\\") or theirs.startswith("\\")
    if matrices:
        return not (ours in ("()", "[]") or theirs in ("()", "[]"))
    if ours in pairs and theirs in pairs:
        return True
    return not (ours == "[]" and theirs in sets)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    found = list(verdicts)
    if False in found:
        return False
    return None if None in found else True
