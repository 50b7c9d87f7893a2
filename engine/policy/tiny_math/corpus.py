"""The text that tiny-math is pre-trained on: arithmetic written in mixed habits, generated as it is read.

Web text holds the same sum worked out with care, blurted out, worked out with a slip, or left half
finished. So does this corpus. A habit shows in its opening words, though not surely, so that a policy
that favours the good habit has a first token to say so with. The shares below are properties of the base
model alone; MODEL_CARD.md gives what they lead to.

Every problem comes from the training split of `engine.tasks.arithmetic`: a held-out problem is never shown.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from engine.policy.tiny_math.tokenizer import END
from engine.tasks.arithmetic import random_expression, split_of, to_text
from engine.tasks.prompts import load_prompt
from engine.tasks.worked import boxed, tagged, worked

OPERATORS = "+-"
LARGEST_OPERAND = 20
OPERAND_COUNTS = {2: 0.25, 3: 0.4, 4: 0.35}
BLURT_RIGHT = 0.2  # share of blurted answers that are right
DRILL_SHARE = 0.2  # share of texts that are a row of sums, without a prompt
R1_ZERO_SHARE = 0.6  # share of prompted texts under r1_zero; the rest are under question_only
DRILL_LENGTH = 5  # sums in a drill
PROMPTS = {name: load_prompt(name) for name in ("r1_zero", "question_only")}

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Sample:
    """One training text, in pieces: a piece is `(text, learned)`, and the loss is taken on the learned ones."""

    pieces: tuple[tuple[str, bool], ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(text for text, _ in self.pieces)


# Openings and their weights. "" means that the steps or the answer start at once.
CAREFUL = {" Step by step:": 0.5, "": 0.4, " Let me see:": 0.1}
HASTY = {" Quickly:": 0.5, "": 0.4, " Step by step:": 0.1}
LOOSE = {" Let me see:": 0.5, "": 0.4, " Step by step:": 0.1}
BLURTED = {" Easy.": 0.5, " A guess:": 0.5}


def sample(rng: random.Random) -> Sample:
    """The next text of the corpus."""
    if rng.random() < DRILL_SHARE:
        return _drill(rng)
    operands, operators = _expression(rng)
    question = f"What is {to_text(operands, operators)}?"
    name = "r1_zero" if rng.random() < R1_ZERO_SHARE else "question_only"
    habit = _choose(rng, {habit: share for habit, (share, _) in HABITS[name].items()})
    completion = HABITS[name][habit][1](rng, operands, operators)
    return Sample(((PROMPTS[name].render(question), False), (completion + END, True)))


def _right(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    return _choose(rng, CAREFUL) + tagged(worked(operands, operators))


def _slip(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    work = worked(operands, operators, rng.randrange(len(operators)), _error(rng))
    return _choose(rng, HASTY) + tagged(work)


def _blurt(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    value = _blurted_value(rng, operands, operators)
    return f"{_choose(rng, BLURTED)} </think> <answer> {value} </answer>"


def _untagged(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    """Right steps under `r1_zero` whose tags are missing, unclosed or in the wrong order."""
    work = worked(operands, operators)
    ending = _choose(
        rng,
        {
            f" </think> {work.value}": 0.3,
            f" <answer> {work.value} </answer>": 0.2,
            f" </think> <answer> {work.value}": 0.2,
            "": 0.3,
        },
    )
    return _choose(rng, LOOSE) + work.steps + ending


def _boxed(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    return _choose(rng, LOOSE) + boxed(worked(operands, operators))


def _boxed_slip(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    work = worked(operands, operators, rng.randrange(len(operators)), _error(rng))
    return _choose(rng, HASTY) + boxed(work)


def _boxed_blurt(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    return f"{_choose(rng, BLURTED)} \\boxed{{{_blurted_value(rng, operands, operators)}}}"


def _plain(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> str:
    work = worked(operands, operators)
    if rng.random() < 0.5:
        return f" The answer is {work.value}."
    return f"{_choose(rng, LOOSE)}{work.steps}."


Writer = Callable[[random.Random, tuple[int, ...], tuple[str, ...]], str]

# For each prompt: the habits, their shares of its texts, and how each is written.
HABITS: dict[str, dict[str, tuple[float, Writer]]] = {
    "r1_zero": {
        "right": (0.12, _right),
        "slip": (0.2, _slip),
        "blurt": (0.28, _blurt),
        "untagged": (0.27, _untagged),
        "boxed": (0.13, _boxed),
    },
    "question_only": {
        "boxed": (0.45, _boxed),
        "boxed_slip": (0.1, _boxed_slip),
        "boxed_blurt": (0.2, _boxed_blurt),
        "plain": (0.25, _plain),
    },
}


def _drill(rng: random.Random) -> Sample:
    """A row of sums, each a step as it comes up in a longer problem. Only the results are learned."""
    pieces = []
    for _ in range(DRILL_LENGTH):
        value, operand = rng.randint(1, 3 * LARGEST_OPERAND), rng.randint(1, LARGEST_OPERAND)
        op = "-" if operand <= value and rng.random() < 0.5 else "+"
        result = value + operand if op == "+" else value - operand
        pieces += [(f" {value}{op}{operand}=", False), (f"{result};", True)]
    return Sample((*pieces, (END, True)))


def _expression(rng: random.Random) -> tuple[tuple[int, ...], tuple[str, ...]]:
    count = _choose(rng, OPERAND_COUNTS)
    while True:
        operands, operators = random_expression(rng, count, LARGEST_OPERAND, OPERATORS)
        if split_of(operands, operators) == "train":
            return operands, operators


def _blurted_value(rng: random.Random, operands: tuple[int, ...], operators: tuple[str, ...]) -> int:
    value = worked(operands, operators).value
    return value if rng.random() < BLURT_RIGHT else value + _error(rng)


def _error(rng: random.Random) -> int:
    return rng.choice((-10, -3, -2, -1, 1, 2, 3, 10))


def _choose(rng: random.Random, weights: Mapping[K, float]) -> K:
    return rng.choices(list(weights), list(weights.values()))[0]
