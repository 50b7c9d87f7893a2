"""The groups of one step as a table: filtered, sorted, and walked through."""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from dashboard.frames.text import preview
from engine.store.records import GroupRow
from engine.types import GroupKind

KINDS: dict[GroupKind, str] = {
    "mixed": "mixed",
    "all_correct": "all right",
    "all_wrong": "all wrong",
    "tied": "tied",
}
LEFT_OUT = "left out"
LEFT_OUT_HELP = "Left out: dynamic sampling drew the group, all its rewards are equal, and the update did without it."
Filter = Literal["all", "mixed", "flat", "all wrong", "all right"]
FILTERS: dict[Filter, tuple[GroupKind, ...]] = {
    "all": ("mixed", "all_correct", "all_wrong", "tied"),
    "mixed": ("mixed",),
    "flat": ("all_correct", "all_wrong", "tied"),
    "all wrong": ("all_wrong",),
    "all right": ("all_correct",),
}
SORTS: dict[str, tuple[str, bool]] = {
    "order of the batch": ("index", True),
    "fewest right": ("n_correct", True),
    "most right": ("n_correct", False),
    "largest reward std": ("reward_std", False),
    "longest": ("mean_length", False),
    "shortest": ("mean_length", True),
}


def filtered(groups: Sequence[GroupRow], kinds: Filter) -> list[GroupRow]:
    """Return the groups of these kinds."""
    return [group for group in groups if group.kind in FILTERS[kinds]]


def ordered(groups: Sequence[GroupRow], sort: str) -> list[GroupRow]:
    """Return the groups in this order; ties keep the order of the batch, a missing value comes last."""
    column, ascending = SORTS[sort]

    def rank(group: GroupRow) -> tuple[bool, float, int]:
        value = getattr(group, column)
        return value is None, 0.0 if value is None else (value if ascending else -value), group.index

    return sorted(groups, key=rank)


def kind_words(group: GroupRow) -> str:
    """Return what a group's rewards were, and whether dynamic sampling left it out of the update."""
    return KINDS[group.kind] if group.trained else f"{KINDS[group.kind]}, {LEFT_OUT}"


def group_table(groups: Sequence[GroupRow]) -> pd.DataFrame:
    """Return one row per group; texts are previews."""
    columns = ["group", "problem", "gold", "kind", "right", "share", "reward", "std", "length"]
    rows = [
        (
            group.index,
            preview(group.question),
            preview(group.gold, 60),
            kind_words(group),
            f"{group.n_correct} of {group.size}",
            group.n_correct / group.size if group.size else None,
            group.reward_mean,
            group.reward_std,
            group.mean_length,
        )
        for group in groups
    ]
    return pd.DataFrame(rows, columns=columns)


def neighbours(ids: Sequence[int], current: int) -> tuple[int | None, int | None]:
    """Return the ids before and after `current`; both None where `current` is not among them."""
    if current not in ids:
        return None, None
    place = list(ids).index(current)
    return (ids[place - 1] if place else None), (ids[place + 1] if place + 1 < len(ids) else None)


def nearest(steps: Sequence[int], wanted: int) -> int:
    """Return the step that is nearest to the wanted one; of two, the earlier. `steps` ascend and are not empty."""
    return min(steps, key=lambda step: (abs(step - wanted), step))
