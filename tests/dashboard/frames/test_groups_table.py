from dataclasses import replace

import pytest

from dashboard.frames.groups import filtered, group_table, nearest, neighbours, ordered
from engine.store.records import GroupRow
from engine.types import GroupKind


def group(index: int, kind: GroupKind, n_correct: int, std: float | None = 0.0, question: str = "1 + 1") -> GroupRow:
    return GroupRow(
        group_id=100 + index,
        run_id="aa",
        step=1,
        index=index,
        problem_id=str(index),
        question=question,
        gold="2",
        prompt="",
        kind=kind,
        reward_mean=n_correct / 4,
        reward_std=std,
        size=4,
        n_correct=n_correct,
        mean_length=10.0 + index,
    )


GROUPS = [
    group(0, "all_wrong", 0),
    group(1, "mixed", 3, 0.5),
    group(2, "all_correct", 4),
    group(3, "tied", 0, None),
]


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [("all", [0, 1, 2, 3]), ("mixed", [1]), ("flat", [0, 2, 3]), ("all wrong", [0]), ("all right", [2])],
)
def test_filters_keep_the_groups_they_name(kinds, kept) -> None:
    assert [row.index for row in filtered(GROUPS, kinds)] == kept


def test_sorting_puts_missing_values_last_and_ties_in_batch_order() -> None:
    assert [row.index for row in ordered(GROUPS, "fewest right")] == [0, 3, 1, 2]
    assert [row.index for row in ordered(GROUPS, "largest reward std")] == [1, 0, 2, 3]


def test_the_table_shows_previews_and_counts() -> None:
    table = group_table([group(1, "mixed", 3, 0.5, question="x" * 1_000)])
    row = table.iloc[0]
    assert (len(row["problem"]), row["kind"], row["right"], row["share"]) == (300, "mixed", "3 of 4", 0.75)
    assert list(group_table([]).columns) == list(table.columns)


def test_neighbours_stop_at_the_ends() -> None:
    assert neighbours([5, 7, 9], 7) == (5, 9)
    assert neighbours([5, 7, 9], 9) == (7, None)
    assert neighbours([5], 6) == (None, None)


def test_the_nearest_step_is_found() -> None:
    assert [nearest([1, 5, 9], wanted) for wanted in (0, 3, 4, 100)] == [1, 1, 5, 9]


def test_a_group_that_the_update_did_without_is_said_to_be_left_out() -> None:
    left_out = replace(group(2, "all_correct", 4), trained=False)
    assert group_table([group(0, "all_correct", 4), left_out])["kind"].tolist() == ["all right", "all right, left out"]
