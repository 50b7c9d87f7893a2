"""How a finite set of training problems is dealt out to the steps of a run."""

import random
from dataclasses import dataclass
from functools import lru_cache

from engine.errors import TaskError


@dataclass(frozen=True, slots=True)
class DataSchedule:
    """What a pass over the training problems comes to, at `prompts_per_step` prompts a step.

    Each pass has a new order and leaves out the `prompts_unused` problems that its order puts last, which would make
    an incomplete step.
    """

    prompts: int
    prompts_per_step: int
    steps_per_epoch: int
    prompts_unused: int

    @property
    def sentence(self) -> str:
        """The same in words."""
        unused = f"; {self.prompts_unused} of them, other ones each time, are unused" if self.prompts_unused else ""
        return f"{self.prompts} training problems last {self.steps_per_epoch} steps of {self.prompts_per_step}{unused}."

    def numbers(self, step: int, *, name: str) -> tuple[int, ...]:
        """The places of the problems of `step` (from 1), in an order drawn anew for each pass from `name`."""
        if step < 1:
            raise TaskError(f"step: {step} has no problems; steps count from 1.")
        epoch, place = divmod(step - 1, self.steps_per_epoch)
        order = _order(f"{name}/epoch/{epoch}", self.prompts)
        return order[place * self.prompts_per_step : (place + 1) * self.prompts_per_step]


def schedule(prompts: int, prompts_per_step: int) -> DataSchedule:
    """The schedule of `prompts` training problems; the last, incomplete step of a pass is dropped.

    Raises TaskError where there are too few for one step.
    """
    steps, unused = divmod(prompts, prompts_per_step)
    if steps == 0:
        raise TaskError(
            f"rollout.rollout_batch_size: a step takes {prompts_per_step} prompts (rollout_batch_size / group_size), "
            f"and there are {prompts} training problems; lower rollout_batch_size, raise group_size, or give more data."
        )
    return DataSchedule(prompts, prompts_per_step, steps, unused)


@lru_cache(maxsize=4)
def _order(name: str, count: int) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(name).shuffle(order)
    return tuple(order)
