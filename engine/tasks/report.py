"""What was found when data was read: how much, how often the same, and in which splits at once."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.types import Problem, Split


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two splits, the number of questions in both, and the ids of a few of them in the first."""

    first: Split
    second: Split
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataReport:
    """Counts of one data set, in problems.

    `read` is what its files hold. Of every split are left out `incomplete` (no question or no answer) and `copies`
    (question, answer and split of another row); `left_out` of training are also in validation or test; `held_out` went
    from training to validation. `problems` is what remains. `overlaps` are of the data as read.
    """

    source: str
    read: Mapping[Split, int]
    incomplete: int
    copies: int
    overlaps: tuple[Overlap, ...]
    left_out: int
    held_out: int
    problems: Mapping[Split, int]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words, the first always, the others where there is something to say."""
        counts = ", ".join(f"{split} {count}" for split, count in self.problems.items() if count)
        said = [f"{self.source}: {counts} problems."]
        if self.incomplete:
            said.append(f"{self.incomplete} rows lack a question or an answer and are left out.")
        if self.copies:
            said.append(f"{self.copies} rows repeat another one of their split and are left out.")
        said += [
            f"{each.count} questions are in {each.first} and in {each.second} ({', '.join(each.examples)})."
            for each in self.overlaps
        ]
        if self.left_out:
            said.append(f"{self.left_out} training problems that are also validation or test problems are left out.")
        if self.held_out:
            said.append(f"{self.held_out} training problems are held out for validation.")
        return tuple(said)


def question_key(text: str) -> str:
    """The question without what makes no other question of it: case, spaces, compatibility forms of characters."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def overlaps(splits: Mapping[Split, Sequence[tuple[str, Problem]]]) -> tuple[Overlap, ...]:
    """The questions that two splits share, for each two; `splits` has (key, problem) pairs."""
    ids = {split: {key: problem.problem_id for key, problem in reversed(pairs)} for split, pairs in splits.items()}
    names = list(splits)
    found = []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            shared = [key for key in dict.fromkeys(key for key, _ in splits[first]) if key in ids[second]]
            if shared:
                found.append(Overlap(first, second, len(shared), tuple(ids[first][key] for key in shared[:3])))
    return tuple(found)
