"""Tasks by name: what gives a run its problems. A new task is a module here and a line in `TASKS`."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks import arithmetic
from engine.tasks.datasets import dataset_task
from engine.tasks.reasoning_gym import ReasoningGymTask
from engine.tasks.report import DataReport
from engine.tasks.schedule import DataSchedule
from engine.types import Demonstration, Problem, Split


class Task(Protocol):
    """A source of problems. Equal arguments give equal problems, and training shares none with the other splits."""

    @property
    def report(self) -> DataReport | None:
        """What was found in the data; None where problems are generated and do not run out."""
        ...

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`, whatever was asked before."""
        ...

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`, or all of them where a finite task has fewer."""
        ...

    def schedule(self, n: int, /) -> DataSchedule | None:
        """Return what a pass over the training problems comes to at `n` a step; None where they do not run out."""
        ...


@runtime_checkable
class Demonstrates(Protocol):
    """A task that can show how its problems are solved; not every task can."""

    def demonstrations(self, n: int, prompt_name: str, *, seed: int) -> list[Demonstration]:
        """Return `n` solved problems of the training split under a prompt; a larger `n` only adds to them.

        Raises TaskError where it has none, or not so many.
        """
        ...


@runtime_checkable
class Finite(Protocol):
    """A task whose problems are a list, to be looked at whole."""

    def everything(self) -> list[Problem]:
        """Return the problems of all splits."""
        ...

    def without(self, problem_ids: Collection[str]) -> Task:
        """Return the task without these problems."""
        ...


class ArithmeticTask:
    """Generated sums, differences and products, at the difficulty of a TaskConfig.

    An easy difficulty has few problems, which are counted: there are 59 one-digit sums to train on.
    """

    def __init__(self, config: TaskConfig) -> None:
        fields = {"operands_min", "operands_max", "largest_operand", "operators"}
        self._difficulty: Mapping[str, Any] = config.model_dump(include=fields)
        self._counts = arithmetic.counted(**self._difficulty)

    @property
    def report(self) -> DataReport | None:
        """How many problems each split has; None where they are too many to be counted."""
        return None if self._counts is None else DataReport("arithmetic", {}, 0, 0, (), 0, 0, self._counts)

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`. Raises TaskError where there are fewer."""
        if self._counts is not None and n > self._counts["train"]:
            raise TaskError(
                f"rollout.rollout_batch_size: a step takes {n} prompts (rollout_batch_size / group_size), and there "
                f"are {self._counts['train']} training problems; lower rollout_batch_size, or raise "
                "task.largest_operand or task.operands_max"
            )
        return arithmetic.train_batch(step, n, seed=seed, **self._difficulty)

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`, or all where there are fewer. Raises TaskError where none is."""
        if self._counts is not None and not self._counts[split]:
            raise TaskError(
                f"task.largest_operand: no {split} problem is left at this difficulty; raise task.largest_operand or "
                "task.operands_max"
            )
        most = n if self._counts is None else min(n, self._counts[split])
        return arithmetic.problems(split, most, seed=seed, **self._difficulty)

    def schedule(self, _n: int, /) -> DataSchedule | None:
        """None: the problems do not run out."""
        return None

    def demonstrations(self, n: int, prompt_name: str, *, seed: int) -> list[Demonstration]:
        """Return `n` training problems worked out step by step."""
        return arithmetic.demonstrations(n, prompt_name, seed=seed, **self._difficulty)


TASKS: Mapping[str, Callable[[TaskConfig], Task]] = {
    "arithmetic": ArithmeticTask,
    "gsm8k": dataset_task,
    "math": dataset_task,
    "finqa": dataset_task,
    "jsonl": dataset_task,
    "reasoning_gym": ReasoningGymTask,
}


def load_task(config: TaskConfig) -> Task:
    """Return the task that `config` names.

    Raises TaskError where its data or its package is not there.
    """
    return TASKS[config.name](config)
