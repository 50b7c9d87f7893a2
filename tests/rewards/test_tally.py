import json
from itertools import product

import pytest

from engine.rewards.tally import KINDS, MOST_REASONS, VERDICTS, Tally, flip_kind, from_document, verdicts_of
from engine.types import Reward


def reward(verdict, value=None, reason=""):
    value = float(verdict == "correct") if value is None and verdict != "not_graded" else value
    return Reward(value, {}, None, verdict, reason)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("wrong", "correct", "false negative"),
        ("unreadable", "correct", "false negative"),
        ("correct", "wrong", "false positive"),
        ("correct", "unreadable", "false positive"),
        ("unreadable", "wrong", "became readable"),
        ("wrong", "unreadable", "became unreadable"),
        ("not_graded", "correct", "newly graded"),
        ("correct", "not_graded", "no longer graded"),
        ("wrong", "wrong", "value alone"),
    ],
)
def test_a_change_of_verdict_has_a_name(old, new, kind):
    assert flip_kind(old, new) == kind


def test_every_pair_of_verdicts_is_of_one_kind():
    pairs = [pair for kind in KINDS for pair in verdicts_of(kind)]
    assert sorted(pairs) == sorted(product(VERDICTS, VERDICTS))


def test_flips_values_and_shares_are_counted():
    tally = Tally()
    flips = [
        tally.add(0.0, "wrong", reward("correct")),
        tally.add(1.0, "correct", reward("correct")),
        tally.add(1.0, "correct", reward("wrong")),
        tally.add(0.0, "wrong", reward("wrong", 0.5)),
        tally.add(0.0, "unreadable", reward("not_graded", reason="stopped after 5 s")),
    ]
    assert flips == [True, False, True, True, True]
    assert (tally.total, tally.flips) == (5, 4)
    assert tally.kinds == {"false negative": 1, "false positive": 1, "no longer graded": 1, "value alone": 1}
    assert (tally.old_accuracy, tally.new_accuracy) == (0.4, 0.4)
    assert (tally.old_mean, tally.new_mean) == (0.4, 0.625)  # 2 of 5; 2.5 of the 4 that are graded
    assert tally.matrix == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert tally.errors == {"stopped after 5 s": 1}


def test_where_values_do_not_compare_verdicts_alone_make_a_flip():
    tally = Tally()
    assert not tally.add(None, "correct", reward("correct"), compare_values=False)
    assert tally.add(None, "wrong", reward("correct"), compare_values=False)
    assert tally.old_mean is None


def test_it_is_said_in_words():
    tally = Tally()
    for _ in range(2):
        tally.add(0.0, "wrong", reward("correct"))
    tally.add(1.0, "correct", reward("unreadable"))
    tally.counts["wrong", "wrong"] = 12_797
    assert tally.sentence("completions") == ("of 12,800 completions 3 changed: 2 false negatives, 1 false positive")
    assert Tally({("wrong", "wrong"): 4}).sentence("completions") == "of 4 completions none changed"


def test_a_document_gives_the_tally_back_through_json():
    tally = Tally()
    tally.add(0.0, "wrong", reward("correct"))
    tally.add(0.0, "wrong", reward("not_graded", reason="mine.py line 3"))
    assert from_document(json.loads(json.dumps(tally.document()))) == tally
    assert from_document({}) == Tally()


def test_reasons_beyond_the_first_fifty_are_counted_together():
    tally = Tally()
    for number in range(MOST_REASONS + 3):
        tally.add(1.0, "correct", reward("not_graded", reason=f"reason {number}"))
    tally.add(1.0, "correct", reward("not_graded", reason="reason 0"))
    assert (len(tally.errors), tally.errors["reason 0"], tally.other_errors) == (MOST_REASONS, 2, 3)
