"""Tasks by name: what gives a run its problems. A new task is a module here and a line in `TASKS`."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from engine.config.sections import TaskConfig
from engine.tasks import arithmetic
from engine.types import Demonstration, Problem, Split


class Task(Protocol):
    """A source of problems. Equal arguments give equal problems, and the splits share none."""

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` training problems of `step`, whatever was asked before."""
        ...

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`."""
        ...


@runtime_checkable
class Demonstrates(Protocol):
    """A task that can show how its problems are solved; not every task can."""

    def demonstrations(self, n: int, prompt_name: str, *, seed: int) -> list[Demonstration]:
        """Return `n` solved problems of the training split under a prompt; a larger `n` only adds to them.

        Raises TaskError where it has none, or not so many.
        """
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

    def demonstrations(self, n: int, prompt_name: str, *, seed: int) -> list[Demonstration]:
        """Return `n` training problems worked out step by step."""
        return arithmetic.demonstrations(n, prompt_name, seed=seed, **self._difficulty)


TASKS: Mapping[str, Callable[[TaskConfig], Task]] = {"arithmetic": ArithmeticTask}


def load_task(config: TaskConfig) -> Task:
    """Return the task that `config` names."""
    return TASKS[config.name](config)
