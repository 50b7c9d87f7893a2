"""What a run will be asked, as it goes from the process that finds it out to whoever shows it: plain data and JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from engine.types import Split

Stage = Literal["data", "gold", "tokenizer", "done"]


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a prompt: its id, its text, and whether the tokenizer holds it for a special one."""

    id: int
    text: str
    special: bool


@dataclass(frozen=True, slots=True)
class AskedPrompt:
    """A problem as it is put. `prompt` is what the tokens say, special ones included; lengths in tokens.

    Without a tokenizer there are no tokens and no lengths, and of a chat prompt `prompt` is the message alone.
    """

    problem_id: str
    split: Split
    question: str
    gold: str
    prompt: str
    tokens: tuple[Token, ...] | None = None
    question_length: int | None = None
    gold_length: int | None = None


@dataclass(frozen=True, slots=True)
class FaultyGold:
    """A problem whose gold answer does not grade itself correct, and why."""

    problem_id: str
    split: Split
    gold: str
    reason: str


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """How many gold answers were looked at (None: the reward is none that can be asked) and how many are faulty.

    `whole` tells the whole data from what a run sees first. `first` are the first of the faulty ones; `left_out` says
    that the run goes without them.
    """

    checked: int | None
    whole: bool
    faulty: int = 0
    left_out: bool = False
    first: tuple[FaultyGold, ...] = ()

    @property
    def refuses(self) -> bool:
        """Whether the run is refused for its gold answers."""
        return self.faulty > 0 and not self.left_out


@dataclass(frozen=True, slots=True)
class RunPreview:
    """What is known so far; `stage` says what is being worked out, and `error` why no more of it will be known."""

    stage: Stage = "data"
    error: str | None = None
    sentences: tuple[str, ...] = ()
    rows: tuple[AskedPrompt, ...] = ()
    reward: str = ""
    stop_strings: tuple[str, ...] = ()
    gold: GoldCheck | None = None


def gold_words(gold: GoldCheck) -> str:
    """Return what was found of the gold answers as a sentence."""
    if gold.checked is None:
        return "Gold answers are not checked: this reward compares in a way of its own."
    if not gold.faulty:
        share = "gold answers" if gold.whole else "gold answers of the first step and of the evaluation"
        return f"{gold.checked:,} {share} grade themselves correct."
    which = "does not grade itself" if gold.faulty == 1 else "do not grade themselves"
    said = f"{gold.faulty:,} of {gold.checked:,} gold answers {which} correct"
    if gold.left_out:
        return f"{said} and {'is' if gold.faulty == 1 else 'are'} left out (task.gold_faults=leave_out)."
    return f"{said}, and the run would be refused: correct them, or leave them out with task.gold_faults=leave_out."


def to_json(preview: RunPreview) -> str:
    """Return the preview as JSON on one line, in ASCII: half a surrogate pair in the data is no fault of this line."""
    return json.dumps(asdict(preview))


def from_json(line: str) -> RunPreview:
    """Return the preview that `to_json` wrote."""
    document = json.loads(line)
    gold = document["gold"]
    return RunPreview(
        **{
            **document,
            "sentences": tuple(document["sentences"]),
            "stop_strings": tuple(document["stop_strings"]),
            "rows": tuple(_row(row) for row in document["rows"]),
            "gold": None if gold is None else _gold(gold),
        }
    )


def _row(document: Mapping[str, Any]) -> AskedPrompt:
    row = AskedPrompt(**document)
    return row if row.tokens is None else replace(row, tokens=tuple(Token(**token) for token in document["tokens"]))


def _gold(document: Mapping[str, Any]) -> GoldCheck:
    return replace(GoldCheck(**document), first=tuple(FaultyGold(**fault) for fault in document["first"]))
