"""A task whose problems are a finite list: splits kept apart, steps dealt from permutations."""

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.report import DataReport, overlaps, question_key
from engine.tasks.schedule import DataSchedule, schedule
from engine.types import Problem, Split

SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class Entry(NamedTuple):
    """A row as a task reads it: the question as it is put, the gold answer, and its id where the data has one.

    `about` is what makes it the same question as another, where the question alone does not (another page asked the
    same).
    """

    question: str
    gold: str
    entry_id: str | None = None
    about: str = ""


Pairs = list[tuple[str, Problem]]  # what makes it the same question, and the problem


class ListedTask:
    """Problems in memory. A training step is a function of its number and the seed alone."""

    def __init__(self, name: str, splits: Mapping[Split, list[Problem]], report: DataReport) -> None:
        self.name = name
        self.report = report
        self._splits = splits

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`, from 1: the next ones of a permutation, a new one each pass.

        Raises TaskError where there are fewer than `n`.
        """
        problems = self._splits["train"]
        numbers = schedule(len(problems), n).numbers(step, name=f"{self.name}/train/{seed}")
        return [problems[number] for number in numbers]

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`, drawn once for a seed; a larger `n` only adds to them.

        Where there are fewer, all of them. Raises TaskError where there is none.
        """
        if split not in SPLITS:
            raise TaskError(f"split: {split!r} is not a split; choose one of {', '.join(SPLITS)}.")
        held = self._splits[split]
        if n > 0 and not held:
            raise TaskError(
                f"split: {self.report.source} has no {split} problems; give a file for them (a folder with "
                f"{split}.jsonl in it, or task.split_column)."
            )
        order = list(range(len(held)))
        random.Random(f"{self.name}/{split}/{seed}").shuffle(order)
        return [held[number] for number in order[:n]]

    def everything(self) -> list[Problem]:
        """Return the problems of all splits."""
        return [problem for split in SPLITS for problem in self._splits[split]]

    def without(self, problem_ids: Collection[str]) -> "ListedTask":
        """Return the task without these problems.

        Raises TaskError where none is left to train on.
        """
        left = {split: [each for each in self._splits[split] if each.problem_id not in problem_ids] for split in SPLITS}
        if not left["train"]:
            raise TaskError(
                f"task.path: {self.report.source} has no training problems with a gold answer that can be read."
            )
        counts = {split: len(problems) for split, problems in left.items()}
        return ListedTask(self.name, left, replace(self.report, problems=counts))

    def schedule(self, n: int, /) -> DataSchedule:
        """Return what a pass over the training problems comes to at `n` a step."""
        return schedule(len(self._splits["train"]), n)


def listed_task(config: TaskConfig, rows: Mapping[Split, Iterable[Entry]], *, source: str) -> ListedTask:
    """Make the splits of a task from what its data has, as `config` wants them, with a report of what was found.

    Raises TaskError where there is nothing to train on, or an id stands for two problems.
    """
    read: dict[Split, int] = {}
    pairs: dict[Split, Pairs] = {}
    incomplete = copies = 0
    for split in SPLITS:
        entries = list(rows.get(split, ()))
        complete = [entry for entry in entries if entry.gold.strip() and entry.question.strip()]
        pairs[split] = _problems(config.name, split, complete, source)
        read[split] = len(entries)
        incomplete += len(entries) - len(complete)
        copies += len(complete) - len(pairs[split])
    found = overlaps(pairs)
    pairs, left_out, held_out = _apart(config, pairs)
    if not pairs["train"]:
        raise TaskError(
            f"task.path: {source} has no training problems; give a file whose rows have question and answer."
        )
    splits: dict[Split, list[Problem]] = {split: [problem for _, problem in pairs[split]] for split in SPLITS}
    counts = {split: len(problems) for split, problems in splits.items()}
    report = DataReport(source, read, incomplete, copies, found, left_out, held_out, counts)
    return ListedTask(config.name, splits, report)


def _problems(name: str, split: Split, entries: Iterable[Entry], source: str) -> Pairs:
    problems: dict[str, tuple[str, Problem]] = {}
    for entry in entries:
        key = f"{entry.about}\0{question_key(entry.question)}"
        digest = blake2b(f"{key}\0{entry.gold.strip()}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        problem_id = f"{name}-{entry.entry_id or digest}"
        problem = Problem(problem_id, entry.question, entry.gold, split)
        known = problems.setdefault(problem_id, (key, problem))
        if known[0] != key or known[1].gold.strip() != problem.gold.strip():
            raise TaskError(
                f"task.id_column: {entry.entry_id} is the id of two different {split} problems of {source}; give a "
                "column whose values are all different, or none."
            )
    return list(problems.values())


def _apart(config: TaskConfig, pairs: dict[Split, Pairs]) -> tuple[dict[Split, Pairs], int, int]:
    """The splits with validation where the config wants it from; how many were left out of training, and held out."""
    train, validation, test = (pairs[split] for split in SPLITS)
    hold_out = config.validation_from == "train" or (config.validation_from == "auto" and not validation)
    if config.validation_from == "test":
        validation = _as(test, "validation")
    elif hold_out:
        validation = []
    left_out = 0
    if config.overlap == "leave_out":
        others = {key for key, _ in (*validation, *test)}
        kept = [pair for pair in train if pair[0] not in others]
        train, left_out = kept, len(train) - len(kept)
    held_out = 0
    if hold_out:
        keys = sorted({key for key, _ in train}, key=_rank)
        taken = set(keys[: max(1, round(len(keys) * config.held_out_share))]) if len(keys) > 1 else set()
        validation = _as([pair for pair in train if pair[0] in taken], "validation")
        train = [pair for pair in train if pair[0] not in taken]
        held_out = len(validation)
    return {"train": train, "validation": validation, "test": test}, left_out, held_out


def _rank(key: str) -> bytes:
    """A place in an order that has nothing to do with the file's."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _as(pairs: Pairs, split: Split) -> Pairs:
    return [(key, Problem(each.problem_id, each.question, each.gold, split)) for key, each in pairs]
