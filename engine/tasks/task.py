"""Tasks by name: what gives a run its problems. A new task is a module here and a line in `TASKS`."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from engine.config.sections import TaskConfig
from engine.tasks import arithmetic
from engine.types import Problem, Split


class Task(Protocol):
    """A source of problems. Equal arguments give equal problems, and the splits share none."""

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`, whatever was asked before."""
        ...

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`."""
        ...


class ArithmeticTask:
    """Generated sums and differences, at the difficulty of a TaskConfig."""

    def __init__(self, config: TaskConfig) -> None:
        self._difficulty: Mapping[str, Any] = config.model_dump(exclude={"name"})

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`."""
        return arithmetic.train_batch(step, n, seed=seed, **self._difficulty)

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`."""
        return arithmetic.problems(split, n, seed=seed, **self._difficulty)


TASKS: Mapping[str, Callable[[TaskConfig], Task]] = {"arithmetic": ArithmeticTask}


def load_task(config: TaskConfig) -> Task:
    """Return the task that `config` names."""
    return TASKS[config.name](config)
