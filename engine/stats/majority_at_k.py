"""majority@k: how often the most frequent of k answers to a problem is right."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vote:
    """One of the k answers to a problem: the text that was read out of it (None: nothing), and the verdict on it."""

    answer: str | None
    correct: bool


def majority_at_k(problems: Sequence[Sequence[Vote]]) -> float:
    """Return the share of problems (P of them, k votes each) whose most frequent answer is right, between 0 and 1.

    Source: Wang et al. 2023, "Self-Consistency Improves Chain of Thought Reasoning in Language Models".

    Raises:
        ValueError: if there is no problem.
    """
    if not problems:
        raise ValueError("problems is empty; majority@k needs at least one")
    return sum(majority_right(votes) for votes in problems) / len(problems)


def majority_right(votes: Sequence[Vote]) -> float:
    """Return the chance that the majority of one problem's votes is right: 0 or 1 unless the right answer is tied.

    Two answers are the same if their text is, blanks at its ends aside, or if both are judged correct, however they
    are written. So an answer whose form alone was judged wrong votes with correct ones of its text. An answer out of
    which nothing was read is no vote; without any vote the majority is wrong. Among m most frequent answers one is
    taken by chance: 1/m if the right one is among them.
    """
    of_correct = {vote.answer.strip() for vote in votes if vote.correct and vote.answer is not None}
    counts: Counter[str | None] = Counter()  # None stands for the right answer
    for vote in votes:
        if vote.correct:
            counts[None] += 1
        elif vote.answer is not None:
            text = vote.answer.strip()
            counts[None if text in of_correct else text] += 1
    if not counts:
        return 0.0
    most = max(counts.values())
    return (counts[None] == most) / sum(count == most for count in counts.values())
