"""Grading: answers per second and right verdicts, beside math-verify called plainly; a batch with hostile answers.

With GRPO_LAB_SHARED_DATA naming a folder that holds gsm8k/ and math_cs336/, their gold answers are graded against
themselves as well. One worker, so one core for each side.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil
from math_verify import parse, verify

from benchmarks.entry import Entry, run_alone
from engine.rewards.grading import grade
from engine.rewards.pool import GraderPool

PLAIN, ALGEBRA, REPETITIONS = 1_000, 256, 3
HOSTILE = ("9**9**9", "(10!)!", "(x+1)**5000", "10**10**10") * 2
DATA = "GRPO_LAB_SHARED_DATA"
OTHER = "math-verify, plainly"
SAMPLE_SECONDS = 0.02

Pairs = Sequence[tuple[str, str]]
Grader = Callable[[Pairs], int]  # gives the number of answers found correct


def measure(*, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return rates, shares of right verdicts, and what a hostile answer costs the others."""
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    numbers = [(rf"So \boxed{{{k}}}", str(k)) for k in range(PLAIN)]
    expressions = [(rf"So \boxed{{\frac{{{k}x+7}}{{10}}}}", rf"\frac{{7+{k}x}}{{10}}") for k in range(2, ALGEBRA + 2)]
    with GraderPool(1) as pool:
        grade(expressions[:2], "boxed", pool=pool)
        parse_and_verify(expressions[:2])
        entries = [
            *compared("plain numbers", numbers, ours(pool, "boxed"), repetitions),
            *compared("expressions", expressions, ours(pool, "boxed"), repetitions),
        ]
        for name, format_name, pairs in gold_answers():
            entries += compared(f"gold of {name} against itself", pairs, ours(pool, format_name), 1)
    return entries + poisoned(expressions)


def ours(pool: GraderPool, format_name: str) -> Grader:
    """Return this project's grader."""

    def grader(pairs: Pairs) -> int:
        return sum(answer.verdict == "correct" for answer in grade(pairs, format_name, pool=pool))

    return grader


def parse_and_verify(pairs: Pairs) -> int:
    """Return how many answers math-verify finds correct, in this process and with its own timeouts."""
    return sum(verify(parse(f"${gold}$" if "####" not in gold else gold), parse(answer)) for answer, gold in pairs)


def compared(name: str, pairs: Pairs, grader: Grader, repetitions: int) -> list[Entry]:
    """Return the rate and the share of correct verdicts of `grader` and of math-verify, in alternating repetitions."""
    rates: list[list[float]] = [[], []]
    shares: list[float] = [0.0, 0.0]
    for _ in range(repetitions):
        for side, each in enumerate((grader, parse_and_verify)):
            began = time.perf_counter()
            shares[side] = each(pairs) / len(pairs)
            rates[side].append(len(pairs) / (time.perf_counter() - began))
    return [
        Entry(f"grading/{name}, {len(pairs)}", median(rates[0]), median(rates[1]), OTHER, "answers/s", repetitions),
        Entry(f"grading/{name}, found correct", *shares, OTHER, "share", repetitions),
    ]


def gold_answers() -> Iterator[tuple[str, str, Pairs]]:
    """Yield name, format and pairs of answer and gold of the data sets that are there."""
    folder = os.environ.get(DATA)
    if not folder:
        return
    for split in ("train", "test"):
        golds = [row["answer"] for row in rows(Path(folder, "gsm8k", f"{split}.jsonl"))]
        yield f"GSM8K {split}", "gsm8k", [(gold, gold) for gold in golds]
    for split in ("train", "validation"):
        golds = [row["answer"] for row in rows(Path(folder, "math_cs336", f"{split}.jsonl"))]
        yield f"MATH {split}", "boxed", [(rf"\boxed{{{gold}}}", gold) for gold in golds]


def rows(path: Path) -> list[dict[str, str]]:
    """Return the documents of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def poisoned(expressions: Pairs) -> list[Entry]:
    """Return time and memory of a batch with hostile answers, beside the same batch without them."""
    batch = list(expressions)
    for place, hostile in enumerate(HOSTILE):
        batch.insert(place * len(expressions) // len(HOSTILE), (rf"\boxed{{{hostile}}}", "5"))
    with GraderPool(2) as pool:
        grade(expressions[:2], "boxed", pool=pool)
        with peaks(pool) as alone:
            assert ours(pool, "boxed")(expressions) == len(expressions)
        with peaks(pool) as together:
            assert ours(pool, "boxed")(batch) == len(expressions)
        members = processes(pool)
    left = [process for process in members if process.is_running()]
    name = f"grading/{len(expressions)} ordinary and {len(HOSTILE)} hostile answers"
    return [
        Entry(name, together.seconds, alone.seconds, "ordinary alone", "s", 1),
        Entry(f"{name}, peak of a child", together.peak, alone.peak, "ordinary alone", "bytes", 1),
        Entry(f"{name}, processes left", len(left), len(members), "before", "processes", 1),
    ]


@dataclass
class Peak:
    """How long something took, and the largest resident set of one child meanwhile."""

    seconds: float = 0.0
    peak: int = 0
    done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def peaks(pool: GraderPool) -> Iterator[Peak]:
    """Measure what happens inside."""
    found = Peak()

    def watch() -> None:
        while not found.done.wait(SAMPLE_SECONDS):
            for process in processes(pool)[1:]:
                try:
                    found.peak = max(found.peak, process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    watcher = threading.Thread(target=watch)
    began = time.perf_counter()
    watcher.start()
    try:
        yield found
    finally:
        found.seconds = time.perf_counter() - began
        found.done.set()
        watcher.join()


def processes(pool: GraderPool) -> list[psutil.Process]:
    """Return the grader process and its children."""
    grader = psutil.Process(pool.pid)
    return [grader, *grader.children()]


if __name__ == "__main__":
    run_alone("grading", __doc__, measure, REPETITIONS)
