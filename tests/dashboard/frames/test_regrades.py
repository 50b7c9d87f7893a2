from datetime import UTC, datetime

from dashboard.frames.regrades import error_table, flip_table, regrade_line
from engine.rewards.tally import Tally
from engine.store.records import FlipRow, Regrade

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
REGRADE = Regrade(
    5, "abc", "boxed", "rules 1", "completions", 1, 20, 64, "finished", False, None, 64, 64, {}, NOON, NOON, None
)  # fmt: skip
FLIP = FlipRow(
    0, 7, None, None, 3, 1, None, None, "p", "What\nis it?", "4", "text",
    0.0, "wrong", None, "r", 1.0, "correct", "4", "equal", 0.25,
)  # fmt: skip


def test_a_regrading_is_one_line() -> None:
    assert regrade_line(REGRADE) == "#5 · 2026-01-01 12:00:00 · boxed · 64 completions (a sample), steps 1–20"


def test_a_flip_is_one_row_with_its_kind_and_times_in_milliseconds() -> None:
    (row,) = flip_table([FLIP]).to_dict("records")
    assert (row["kind"], row["problem"], row["old_answer"], row["answer"]) == (
        "false negative", "What ↵ is it?", None, "4",
    )  # fmt: skip
    assert (row["old"], row["new"], row["seconds"]) == (0.0, 1.0, 250.0)


def test_no_flips_are_a_table_without_rows() -> None:
    assert flip_table([]).shape[0] == 0


def test_reasons_are_listed_with_the_commonest_first() -> None:
    frame = error_table(Tally(errors={"a\x1b": 1, "b": 5}, other_errors=2))
    assert frame.to_dict("records") == [
        {"count": 5, "reason": "b"},
        {"count": 1, "reason": "a⟨U+001B⟩"},
        {"count": 2, "reason": "(other reasons)"},
    ]
