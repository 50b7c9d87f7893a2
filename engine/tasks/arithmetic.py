"""Generated arithmetic: "What is 7 + 12 - 3?" with the gold answer "16".

The split of a problem is decided by a hash of its canonical form, in which the order of addends and of
factors does not count: so training and held-out problems are disjoint by construction, for every seed and
every difficulty, and "7 + 12" is never trained on where "12 + 7" is asked in the test.

Operands are 1 … `largest_operand`. No partial result, read from left to right, is negative.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from math import prod

from engine.errors import TaskError
from engine.tasks.prompts import load_prompt
from engine.tasks.worked import SOLUTIONS, worked
from engine.types import Demonstration, Problem, Split

OPERATORS = "+-*"
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
BUCKETS = 10  # one bucket in ten is the test split, one the validation split, the rest trains
SMALL_SPACE = 20_000  # expressions; a smaller space is listed in full, a larger one sampled
PATIENCE = 20_000  # draws in a row without a new problem before a sampled space counts as used up

Expression = tuple[tuple[int, ...], tuple[str, ...]]  # operands, and the operators between them


def problems(
    split: Split,
    n: int,
    *,
    seed: int = 0,
    operands_min: int = 2,
    operands_max: int = 4,
    largest_operand: int = 20,
    operators: Sequence[str] = "+-",
) -> list[Problem]:
    """`n` distinct problems of `split`, the same for the same arguments; a larger `n` only adds to them.

    The number of operands is drawn evenly from `operands_min` … `operands_max`; a number of operands whose
    problems are used up is no longer drawn. `*` binds tighter than `+` and `-`.

    Raises TaskError for a difficulty out of range, and where `split` holds fewer than `n` problems.
    """
    name = f"arithmetic/{split}/{seed}"
    drawn = _draw(split, n, name, operands_min, operands_max, largest_operand, "".join(operators))
    return [to_problem(*expression) for expression in drawn]


def train_batch(
    step: int,
    n: int,
    *,
    seed: int = 0,
    operands_min: int = 2,
    operands_max: int = 4,
    largest_operand: int = 20,
    operators: Sequence[str] = "+-",
) -> list[Problem]:
    """The `n` distinct training problems of step `step`, whatever steps were asked before.

    An endless stream with random access: a resumed run needs nothing but the step number. Two steps may
    share a problem. Raises TaskError as `problems` does.
    """
    name = f"arithmetic/train/{seed}/step/{step}"
    drawn = _draw("train", n, name, operands_min, operands_max, largest_operand, "".join(operators))
    return [to_problem(*expression) for expression in drawn]


def demonstrations(
    n: int,
    prompt_name: str,
    *,
    seed: int = 0,
    operands_min: int = 2,
    operands_max: int = 4,
    largest_operand: int = 20,
    operators: Sequence[str] = "+-",
) -> list[Demonstration]:
    """`n` distinct training problems under a prompt, each worked out step by step with its answer.

    The same for the same arguments; a larger `n` only adds to them. Raises TaskError as `problems` does, and where
    no solution can be written: under another prompt than `r1_zero` and `question_only`.
    """
    if prompt_name not in SOLUTIONS:
        raise TaskError(
            f"prompt.name={prompt_name}: arithmetic writes solutions for {' and '.join(SOLUTIONS)} alone; "
            "give a JSONL file (sft.path), or choose one of these"
        )
    name = f"arithmetic/demonstrations/{seed}"
    drawn = _draw("train", n, name, operands_min, operands_max, largest_operand, "".join(operators))
    prompt, write = load_prompt(prompt_name), SOLUTIONS[prompt_name]
    return [
        Demonstration(prompt.render(to_problem(*expression).question), write(worked(*expression)))
        for expression in drawn
    ]


def counted(
    *, operands_min: int, operands_max: int, largest_operand: int, operators: Sequence[str]
) -> Mapping[Split, int] | None:
    """The number of distinct problems of each split at a difficulty; None where they are too many to be listed."""
    between, counts = "".join(operators), range(operands_min, operands_max + 1)
    if any(_space(count, largest_operand, between) > SMALL_SPACE for count in counts):
        return None
    return {
        split: sum(len(_all_expressions(split, count, largest_operand, between)) for count in counts)
        for split in SPLITS
    }


def split_of(operands: Sequence[int], operators: Sequence[str]) -> Split:
    """The split that an expression belongs to, from a hash of its canonical form."""
    bucket = int.from_bytes(blake2b(_canonical(operands, operators).encode(), digest_size=8).digest()) % BUCKETS
    if bucket == 0:
        return "test"
    return "validation" if bucket == 1 else "train"


def evaluate(operands: Sequence[int], operators: Sequence[str]) -> int:
    """The value of an expression; `*` binds tighter than `+` and `-`."""
    return sum(sign * prod(factors) for sign, factors in _terms(operands, operators))


def to_text(operands: Sequence[int], operators: Sequence[str]) -> str:
    """The expression as the question writes it: `7 + 12 - 3`."""
    rest = (f" {op} {operand}" for op, operand in zip(operators, operands[1:], strict=True))
    return str(operands[0]) + "".join(rest)


def to_problem(operands: Sequence[int], operators: Sequence[str]) -> Problem:
    """The problem that asks for an expression; its id is a hash of the question."""
    question = f"What is {to_text(operands, operators)}?"
    return Problem(
        problem_id="arithmetic-" + blake2b(question.encode(), digest_size=6).hexdigest(),
        question=question,
        gold=str(evaluate(operands, operators)),
        split=split_of(operands, operators),
    )


def random_expression(rng: random.Random, count: int, largest_operand: int, operators: str) -> Expression:
    """One expression of `count` operands, drawn evenly from those without a negative partial result."""
    while True:
        operands = tuple(rng.randint(1, largest_operand) for _ in range(count))
        between = tuple(rng.choice(operators) for _ in range(count - 1))
        if _never_negative(operands, between):
            return operands, between


def _draw(
    split: Split,
    n: int,
    name: str,
    operands_min: int,
    operands_max: int,
    largest_operand: int,
    operators: str,
) -> list[Expression]:
    """Distinct expressions of `split`; `name` seeds the draw."""
    _check(split, n, operands_min, operands_max, largest_operand, operators)
    streams = {
        count: _stream(random.Random(f"{name}/{count}"), split, count, largest_operand, operators)
        for count in range(operands_min, operands_max + 1)
    }
    rng = random.Random(name)
    drawn: list[Expression] = []
    while len(drawn) < n:
        if not streams:
            raise TaskError(
                f"n: {n} distinct {split} problems were asked for, but {operands_min} to {operands_max} operands "
                f"up to {largest_operand} with operators {operators!r} give {len(drawn)}; ask for fewer, or "
                "raise operands_max or largest_operand."
            )
        count = rng.choice(list(streams))
        expression = next(streams[count], None)
        if expression is None:
            del streams[count]
        else:
            drawn.append(expression)
    return drawn


def _stream(rng: random.Random, split: Split, count: int, largest_operand: int, operators: str) -> Iterator[Expression]:
    """Distinct expressions of `split` with `count` operands, in random order, until there are no more."""
    if _space(count, largest_operand, operators) <= SMALL_SPACE:
        listed = list(_all_expressions(split, count, largest_operand, operators))
        rng.shuffle(listed)
        yield from listed
        return
    seen: set[Expression] = set()
    misses = 0
    while misses < PATIENCE:
        operands = tuple(rng.randint(1, largest_operand) for _ in range(count))
        between = tuple(rng.choice(operators) for _ in range(count - 1))
        expression = (operands, between)
        if expression in seen or not _never_negative(*expression) or split_of(*expression) != split:
            misses += 1
            continue
        misses = 0
        seen.add(expression)
        yield expression


def _space(count: int, largest_operand: int, operators: str) -> int:
    """The number of expressions of `count` operands, those with a negative partial result included."""
    space: int = largest_operand**count * len(operators) ** (count - 1)
    return space


@lru_cache(maxsize=64)
def _all_expressions(split: Split, count: int, largest_operand: int, operators: str) -> tuple[Expression, ...]:
    return tuple(
        (operands, between)
        for operands in product(range(1, largest_operand + 1), repeat=count)
        for between in product(operators, repeat=count - 1)
        if _never_negative(operands, between) and split_of(operands, between) == split
    )


def _never_negative(operands: Sequence[int], operators: Sequence[str]) -> bool:
    value = 0
    for sign, factors in _terms(operands, operators):
        value += sign * prod(factors)
        if value < 0:
            return False
    return True


def _terms(operands: Sequence[int], operators: Sequence[str]) -> list[tuple[int, list[int]]]:
    """The signed products that an expression adds up: `7 - 2 * 3` gives (1, [7]), (-1, [2, 3])."""
    terms = [(1, [operands[0]])]
    for op, operand in zip(operators, operands[1:], strict=True):
        if op == "*":
            terms[-1][1].append(operand)
        else:
            terms.append((1 if op == "+" else -1, [operand]))
    return terms


def _canonical(operands: Sequence[int], operators: Sequence[str]) -> str:
    """One text for all orders of addends and factors: `12 + 7` and `7 + 12` give `+7+12`."""
    terms = sorted((sign, sorted(factors)) for sign, factors in _terms(operands, operators))
    return "".join(("+" if sign > 0 else "-") + "*".join(map(str, factors)) for sign, factors in terms)


def _check(split: str, n: int, operands_min: int, operands_max: int, largest_operand: int, operators: str) -> None:
    if split not in SPLITS:
        raise TaskError(f"split: {split!r} is not a split of arithmetic; choose one of {', '.join(SPLITS)}.")
    if n < 0:
        raise TaskError(f"n: {n} problems cannot be drawn; n is 0 or more; raise it.")
    if operands_min < 2:
        raise TaskError(f"operands_min: {operands_min} is below 2, and a problem has 2 operands; raise it.")
    if operands_max < operands_min:
        raise TaskError(
            f"operands_max: {operands_max} is below operands_min = {operands_min}; operands_max is the larger "
            "one; raise it or lower operands_min."
        )
    if largest_operand < 1:
        raise TaskError(f"largest_operand: {largest_operand} is below 1, the smallest operand; raise it.")
    if not operators or len(set(operators)) != len(operators) or not set(operators) <= set(OPERATORS):
        raise TaskError(
            f"operators: {operators!r} is not a choice of {', '.join(OPERATORS)}, each at most once, at least "
            "one; correct it."
        )
