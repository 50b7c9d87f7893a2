"""`grpo-lab regrade` on stored runs."""

import pytest

from engine.cli.regrade import parse_steps
from engine.errors import GrpoLabError
from engine.jobs import regrading
from engine.store import reads
from tests.store.regradable import fill_regradable


def test_the_run_is_graded_by_its_own_reward_and_every_flip_is_given(db, ask):
    run_id = fill_regradable(db)
    found = ask("regrade", run_id)
    assert (found["status"], found["reward"], found["covers"], found["steps"]) == (
        "finished", "answer_tag", "completions", [1, 3],
    )  # fmt: skip
    assert found["kinds"] == {"false negative": 6, "false positive": 6, "became unreadable": 6}
    assert found["matrix"]["wrong"]["correct"] == 6
    assert (len(found["flips"]), found["changed"], found["total"]) == (18, 18, 24)
    assert (found["flips"][0]["kind"], found["flips"][0]["old_verdict"]) == ("false negative", "wrong")
    assert found["mean_reward"] == {"old": 0.5, "new": 0.5}


def test_a_person_reads_the_matrix_and_the_first_flips(db, invoke):
    run_id = fill_regradable(db)
    result = invoke("regrade", run_id, "--reward", "boxed")
    assert "Of 24 completions 24 changed: 12 false positives, 12 became unreadable." in result.stdout
    assert "Accuracy 50.0% → 0.0%, mean reward 0.5000 → 0.0000." in " ".join(result.stdout.split())
    assert "The first 20 of 24; --json lists all." in result.stdout
    assert "24 of 24 answers graded again" in result.stderr


def test_steps_evaluations_and_a_limit_choose_the_answers(db, ask):
    run_id = fill_regradable(db)
    assert ask("regrade", run_id, "--steps", "2:")["total"] == 16
    assert ask("regrade", run_id, "--evaluations", "--steps", ":0")["total"] == 4
    found = ask("regrade", run_id, "--limit", "5")
    assert (found["total"], found["sample"]) == (5, 5)
    assert len(reads.regrades(db, run_id)) == 3


@pytest.mark.parametrize(
    ("text", "steps"),
    [(None, (None, None)), ("2:5", (2, 5)), ("2:", (2, None)), (":5", (None, 5)), ("3", (3, 3)), (":", (None, None))],
)
def test_a_range_of_steps_is_read(text, steps):
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", "a:b", "-1:2", "1:2:3", "5:2", "1-2"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(GrpoLabError, match="--steps="):
        parse_steps(text)


def test_an_unknown_reward_and_empty_steps_are_refused_in_words(db, ask):
    run_id = fill_regradable(db)
    assert "is not a reward" in ask("regrade", run_id, "--reward", "best", exit_code=2)["error"]
    assert "no stored completions for steps 7:7" in ask("regrade", run_id, "--steps", "7", exit_code=2)["error"]


def test_a_grading_that_fails_says_why_and_exits_1(db, ask, monkeypatch):
    run_id = fill_regradable(db)

    def breaks(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(regrading, "judge_again", breaks)
    found = ask("regrade", run_id, exit_code=1)
    assert (found["status"], found["error"], found["flips"]) == ("failed", "RuntimeError: out of luck", [])
