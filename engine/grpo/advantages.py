"""Advantages: how much better a completion was than the others of its group."""

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from array_api_compat import array_namespace, device

from engine.grpo.arrays import Array, widened

Baseline = Literal["none", "group_mean", "leave_one_out"]
Scale = Literal["none", "group_std", "batch_std"]
StdKind = Literal["sample", "population"]


class AdvantageStats(NamedTuple):
    """The advantages of P groups, and the numbers they were computed from."""

    advantages: Array
    """(P, G) finite everywhere; 0 where the reward is missing."""
    mean: Array
    """(P,) mean of the graded rewards; NaN where a group has none."""
    std: Array
    """(P,) standard deviation of the graded rewards; exactly 0 in a flat group, NaN where none is graded."""
    flat: Array
    """(P,) bool: all graded rewards are equal (also: one graded reward, or none)."""
    graded: Array
    """(P,) number of rewards that are not missing."""
    batch_std: Array
    """() standard deviation of all graded rewards of the P groups; exactly 0 where all are equal, NaN without any."""


def group_advantages(
    rewards: Array,
    *,
    baseline: Baseline = "group_mean",
    scale: Scale = "group_std",
    std: StdKind = "sample",
    eps: float = 1e-6,
) -> AdvantageStats:
    """Return the advantages of `rewards` (P, G), where NaN is a missing reward.

    A = (r - mean) / (std + eps), statistics over the graded rewards of the group
    (Shao et al. 2024, "DeepSeekMath", section 4.1.2; sample std and eps = 1e-6 as in CS336 assignment 5).

    - `baseline="none"` subtracts nothing. `baseline="leave_one_out"` subtracts the mean of the n - 1 other
      graded rewards (Ahmadian et al. 2024, "Back to Basics", RLOO), which is (r - mean) · n / (n - 1).
    - `scale="none"` divides by nothing (Liu et al. 2025, "Dr. GRPO"). `scale="batch_std"` divides by the std of
      all graded rewards of `rewards` (Hu et al. 2025, "REINFORCE++"; TRL's `scale_rewards="batch"`).
    - `std` is "sample" (n - 1) or "population" (n), for group and batch alike.
    - A flat group is found by comparing rewards: a float std of equal rewards need not be 0, and divided
      by a small eps the rounding error becomes an advantage. Its advantage is exactly 0 wherever a
      baseline is subtracted or its own std divided by (there is no spread to measure a reward in). Without a
      baseline the advantage is the reward, flat or not: raw, or over the std of the batch (0 where that is flat).
    - Rewards narrower than float32 are widened first.

    Raises ValueError when a reward is infinite or `rewards` is not two-dimensional.
    """
    xp = array_namespace(rewards)
    if rewards.ndim != 2:
        raise ValueError(f"rewards has shape {tuple(rewards.shape)}; it must be (prompts, group); reshape it")
    rewards = widened(rewards)
    present = ~xp.isnan(rewards)
    graded = xp.sum(xp.astype(present, xp.int64), axis=1)
    known = xp.where(present, rewards, xp.zeros_like(rewards))
    if bool(xp.any(xp.isinf(known))):
        raise ValueError("rewards has an infinite value; a reward must be finite, or NaN where it is missing")

    counts = xp.astype(graded, rewards.dtype)
    none_graded = graded == 0
    nothing = xp.full_like(counts, float("nan"))
    mean = xp.sum(known, axis=1) / xp.where(none_graded, nothing, counts)
    flat = _is_flat(rewards, present)
    deviations = xp.where(present, rewards - mean[:, None], xp.zeros_like(rewards))
    spread = xp.where(none_graded, nothing, _std(deviations, counts, flat, std))
    whole = _batch_spread(rewards, present, std)

    advantages = known if baseline == "none" else deviations
    if baseline == "leave_one_out":
        others = counts - 1
        advantages = advantages * (counts / xp.where(others > 0, others, xp.ones_like(others)))[:, None]
    without_spread = flat
    if scale == "group_std":
        # The 1 is never used: a flat group gets its 0 below, and everything else has a spread above 0.
        advantages = advantages / xp.where(flat, xp.ones_like(spread), spread + eps)[:, None]
    elif scale == "batch_std":
        advantages = advantages / xp.where(whole.flat, xp.ones_like(whole.std), whole.std + eps)
        without_spread = flat | whole.flat if baseline != "none" else xp.zeros_like(flat) | whole.flat
    if baseline != "none" or scale != "none":
        advantages = xp.where(without_spread[:, None], xp.zeros_like(advantages), advantages)
    return AdvantageStats(advantages, mean, spread, flat, graded, whole.std[0])


def advantages_by_group(
    rewards: Array,
    group_ids: Sequence[Hashable],
    *,
    baseline: Baseline = "group_mean",
    scale: Scale = "group_std",
    std: StdKind = "sample",
    eps: float = 1e-6,
) -> Array:
    """Return the advantages (B,) of `rewards` (B,) whose groups are told by id, in any order and of any size.

    Raises ValueError when the two differ in length.
    """
    xp = array_namespace(rewards)
    rows = rewards.shape[0]
    if len(group_ids) != rows:
        raise ValueError(f"group_ids has {len(group_ids)} entries for {rows} rewards; give one id per reward")
    members: dict[Hashable, list[int]] = {}
    for row, group_id in enumerate(group_ids):
        members.setdefault(group_id, []).append(row)
    width = max((len(group) for group in members.values()), default=0)
    # Row `rows` is a missing reward: it fills the shorter groups up.
    places = [group + [rows] * (width - len(group)) for group in members.values()]
    flat_places = [place for group in places for place in group]
    where = device(rewards)
    rewards = widened(rewards)
    missing = xp.asarray([float("nan")], dtype=rewards.dtype, device=where)
    table = xp.take(xp.concat([rewards, missing]), xp.asarray(flat_places, dtype=xp.int64, device=where), axis=0)
    stats = group_advantages(xp.reshape(table, (len(places), width)), baseline=baseline, scale=scale, std=std, eps=eps)
    position = {place: index for index, place in enumerate(flat_places)}
    order = xp.asarray([position[row] for row in range(rows)], dtype=xp.int64, device=where)
    return xp.take(xp.reshape(stats.advantages, (-1,)), order, axis=0)


def _is_flat(rewards: Array, present: Array) -> Array:
    xp = array_namespace(rewards)
    infinity = xp.full_like(rewards, float("inf"))
    highest = xp.max(xp.where(present, rewards, -infinity), axis=1)
    lowest = xp.min(xp.where(present, rewards, infinity), axis=1)
    return highest <= lowest  # no graded reward: -inf <= inf


def _std(deviations: Array, counts: Array, flat: Array, kind: StdKind) -> Array:
    xp = array_namespace(deviations)
    degrees = counts - 1 if kind == "sample" else counts
    squares = xp.sum(deviations * deviations, axis=1)
    spread = xp.sqrt(squares / xp.where(degrees > 0, degrees, xp.ones_like(degrees)))
    return xp.where(flat, xp.zeros_like(spread), spread)


class _BatchSpread(NamedTuple):
    std: Array
    flat: Array


def _batch_spread(rewards: Array, present: Array, kind: StdKind) -> _BatchSpread:
    """Return the std of all graded rewards and whether they are all equal, both (1,): the batch as one group."""
    xp = array_namespace(rewards)
    rewards, present = xp.reshape(rewards, (1, -1)), xp.reshape(present, (1, -1))
    known = xp.where(present, rewards, xp.zeros_like(rewards))
    counts = xp.sum(xp.astype(present, rewards.dtype), axis=1)
    counts = xp.where(counts > 0, counts, xp.full_like(counts, float("nan")))
    mean = xp.sum(known, axis=1) / counts
    deviations = xp.where(present, rewards - mean[:, None], xp.zeros_like(rewards))
    flat = _is_flat(rewards, present)
    std = _std(deviations, counts, flat, kind)
    return _BatchSpread(xp.where(counts > 0, std, counts), flat)
