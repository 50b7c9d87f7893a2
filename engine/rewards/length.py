"""A penalty on completions that come close to the length limit."""

from collections.abc import Sequence
from dataclasses import replace

from engine.types import Group, Reward


def overlong_penalty(length: int, *, max_tokens: int, buffer: int, penalty: float) -> float:
    """Return the soft overlong penalty of a completion of `length` tokens: a number in [−`penalty`, 0].

    0 up to `max_tokens` − `buffer`, then linearly down to −`penalty` at `max_tokens` (DAPO, Yu et al. 2025, eq. 13).

    Raises ValueError where `buffer` is not in 1..`max_tokens`, or `penalty` is below 0.
    """
    if not 1 <= buffer <= max_tokens:
        raise ValueError(f"buffer={buffer} must lie between 1 and max_tokens={max_tokens}")
    if not penalty >= 0:
        raise ValueError(f"penalty={penalty} must be at least 0; it is taken off the reward")
    used = length - (max_tokens - buffer)
    return 0.0 if used <= 0 else -penalty * min(used / buffer, 1.0)


def with_overlong_penalty(
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    *,
    max_tokens: int,
    buffer: int,
    penalty: float,
) -> tuple[tuple[Reward, ...], ...]:
    """Return `rewards` (P, G) with the soft overlong penalty added to each value and kept as the part `overlong`.

    Verdict, answer and reason stay: how long a completion is says nothing of what it answers. A completion that
    was not graded stays as it is.

    Raises ValueError where `rewards` do not have one reward for each completion of `groups`.
    """

    def penalised(reward: Reward, length: int) -> Reward:
        if reward.value is None:
            return reward
        change = overlong_penalty(length, max_tokens=max_tokens, buffer=buffer, penalty=penalty)
        return replace(reward, value=reward.value + change, parts={**reward.parts, "overlong": change})

    counts, sizes = [len(members) for members in rewards], [len(group.completions) for group in groups]
    if counts != sizes:
        raise ValueError(f"rewards={counts} for groups of {sizes} completions; give one reward per completion")
    return tuple(
        tuple(
            penalised(reward, len(completion.token_ids))
            for reward, completion in zip(members, group.completions, strict=True)
        )
        for members, group in zip(rewards, groups, strict=True)
    )
