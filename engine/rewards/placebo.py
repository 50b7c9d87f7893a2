"""What a placebo pays in place of a reward: it says nothing of the answer."""

from collections.abc import Sequence

import numpy as np

from engine.config.sections.reward import Placebo
from engine.types import Reward


def placebo_payments(
    kind: Placebo, rewards: Sequence[Sequence[Reward]], *, rate: float, seed: int
) -> list[list[float | None]]:
    """Return what the placebo pays each completion, (P, G): 0 or 1; None where nothing is paid in the reward's place.

    `random` pays 1 with probability `rate`, from a generator of its own that `seed` starts; `format_only` pays the part
    `format`, None where a reward has none.
    """
    if kind == "random":
        generator = np.random.default_rng(seed)
        return [[float(paid) for paid in generator.random(len(members)) < rate] for members in rewards]
    if kind == "always_one":
        return [[1.0] * len(members) for members in rewards]
    if kind == "format_only":
        return [[reward.parts.get("format") for reward in members] for members in rewards]
    return [[None] * len(members) for members in rewards]
