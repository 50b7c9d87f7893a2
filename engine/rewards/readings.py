"""What an answer can say."""

from dataclasses import dataclass
from fractions import Fraction

from engine.rewards.units import Unit


@dataclass(frozen=True, slots=True)
class Number:
    """A number with the worth of its last decimal place: 0.01 for `12.50`, 1 for `12`, 0 where it is a fraction."""

    value: Fraction
    place: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, with what stands around it. `scale` is 1000 for `5 thousand`."""

    number: Number
    percent: bool = False
    scale: int = 1
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Numeral:
    """Digits in a base, as in `101_2`."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Words:
    """Words, a choice letter or a time of day; `text` is in lower case."""

    text: str


@dataclass(frozen=True, slots=True)
class Expression:
    """Something that only an algebra system can compare; `text` is LaTeX."""

    text: str
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Equation:
    """`text` as a whole, the reading of its last side, and the first side where that is a name (`x`, `f(x)`, `AB`)."""

    text: str
    value: "Reading"
    name: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    r"""Several answers. `brackets` is "" or `{}` for a set, else two signs: `()`, `[)`, `\\` for a matrix row, `∪`."""

    items: tuple["Reading", ...]
    brackets: str = ""

    @property
    def ordered(self) -> bool:
        """Whether the order of the items counts."""
        return self.brackets not in ("", "{}", "∪")


Reading = Quantity | Numeral | Words | Expression | Equation | Listing
