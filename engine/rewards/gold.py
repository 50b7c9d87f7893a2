"""Gold answers, looked at before a run starts: each must grade itself correct."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import RunConfig
from engine.errors import TaskError
from engine.rewards.grading import gold_faults
from engine.rewards.verifiers import RewardFn, Verifier
from engine.tasks.task import Finite, Task
from engine.types import Problem


@dataclass(frozen=True, slots=True)
class GoldFault:
    """A problem whose gold answer does not grade itself correct, and why."""

    problem: Problem
    reason: str


def find_gold_faults(problems: Sequence[Problem], reward_fn: RewardFn) -> list[GoldFault]:
    """Return the problems whose gold answer does not grade itself correct, in their order.

    A reward that is no verifier compares in a way of its own, and is not asked: nothing is found then.
    """
    if not isinstance(reward_fn, Verifier):
        return []
    reasons = gold_faults([problem.gold for problem in problems], reward_fn.format)
    return [GoldFault(problem, reasons[problem.gold]) for problem in problems if problem.gold in reasons]


def problems_to_check(task: Task, config: RunConfig) -> list[Problem]:
    """Return what a run looks at before it starts: all of a finite task, else its first step and what is held out."""
    if isinstance(task, Finite):
        return task.everything()
    held_out = task.problems(config.evaluation.split, config.evaluation.size, seed=config.evaluation.seed)
    first = task.train_batch(1, config.prompts_per_step, seed=config.seed) if config.grpo.steps else []
    return [*held_out, *first]


def with_good_gold(task: Task, config: RunConfig, reward_fn: RewardFn) -> tuple[Task, list[GoldFault]]:
    """Return the task without the problems whose gold is faulty, and these, where `task.gold_faults` leaves them out.

    Raises:
        TaskError: if there are any and it does not, or the task generates its problems.
    """
    problems = problems_to_check(task, config)
    faults = find_gold_faults(problems, reward_fn)
    if not faults:
        return task, []
    left = without_faults(task, config, faults)
    if left is not None:
        return left, faults
    raise TaskError(fault_words(faults, len(problems)))


def without_faults(task: Task, config: RunConfig, faults: Sequence[GoldFault]) -> Task | None:
    """Return the task without the problems at fault; None where they are not, or cannot be, left out."""
    if config.task.gold_faults != "leave_out" or not isinstance(task, Finite):
        return None
    return task.without({fault.problem.problem_id for fault in faults}) if faults else task


def fault_words(faults: Sequence[GoldFault], n: int) -> str:
    """Say of the faults among `n` problems how many there are, name the first three, and say what to do."""
    first = ", ".join(f"{fault.problem.problem_id} ({fault.problem.gold[-60:]!r})" for fault in faults[:3])
    return (
        f"gold: {len(faults)} of {n} problems have a gold answer that does not grade itself correct ({first}); "
        f"{faults[0].reason} Correct them, or leave them out with task.gold_faults=leave_out."
    )
