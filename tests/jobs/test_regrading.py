import os
import subprocess
import sys

import pytest

from engine.errors import RewardError
from engine.jobs import regrading
from engine.jobs.regrading import carry_out, regrade, reward_of
from engine.rewards.identity import reward_identity
from engine.rewards.tally import from_document
from engine.store import queue, reads, regrades
from engine.store.database import Database, open_database
from engine.types import Reward
from tests.store.filled import small_config
from tests.store.regradable import COMPLETIONS, MEMBERS, fill_regradable


@pytest.fixture
def db(tmp_path):
    database = open_database(f"sqlite:///{tmp_path / 'runs.db'}")
    yield database
    database.close()


@pytest.fixture
def run_id(db: Database) -> str:
    return fill_regradable(db)


def test_the_flips_are_those_known_by_construction(db: Database, run_id: str):
    ended = regrade(db, run_id, "answer_tag")
    assert (ended.status, ended.done, ended.total) == ("finished", COMPLETIONS, COMPLETIONS)
    assert ended.version == reward_identity("answer_tag").version
    assert ended.finished_at is not None
    assert from_document(ended.counts).kinds == {"false negative": 6, "false positive": 6, "became unreadable": 6}
    changed = [(flip.old_verdict, flip.verdict) for flip in reads.flips(db, ended)]
    assert changed == [(old, new) for _, old, new in MEMBERS if old != new] * 6


def test_evaluations_are_graded_again(db: Database, run_id: str):
    ended = regrade(db, run_id, "answer_tag", covers="evaluations", step_from=1)
    tally = from_document(ended.counts)
    assert (ended.total, tally.flips, tally.old_accuracy, tally.new_accuracy) == (4, 3, 0.5, 0.5)


def test_every_chunk_is_heard_of_and_flips_are_numbered_through(db: Database, run_id: str):
    begun = regrades.begin_regrade(db, run_id, reward="answer_tag", version="1")
    heard: list[int] = []
    ended = carry_out(db, begun, progress=lambda now: heard.append(now.done), at_once=8)
    assert heard == [8, 16, 24]
    assert [flip.place for flip in reads.flips(db, ended)] == list(range(18))


def test_a_stop_keeps_what_was_found(db: Database, run_id: str):
    begun = regrades.begin_regrade(db, run_id, reward="answer_tag", version="1")

    def ask(_now: object) -> None:
        regrades.request_regrade_stop(db, begun)

    ended = carry_out(db, begun, progress=ask, at_once=8)
    assert (ended.status, ended.done, len(reads.flips(db, ended))) == ("stopped", 8, 6)


def test_a_signal_stops_as_well(db: Database, run_id: str):
    assert regrade(db, run_id, "answer_tag", stop=lambda: True).status == "stopped"


def test_a_fault_of_the_grading_ends_as_a_failed_regrading(db: Database, run_id: str, monkeypatch, capsys):
    def breaks(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(regrading, "judge_again", breaks)
    ended = regrade(db, run_id, "answer_tag")
    assert (ended.status, ended.error) == ("failed", "MemoryError: no more")
    assert "in breaks" in capsys.readouterr().err


def test_errors_of_a_reward_are_counted_by_reason(db: Database, run_id: str, monkeypatch):
    def reward(completion: str, gold: str) -> Reward:
        if "8" in completion:
            raise ValueError("mine.py line 3")
        return Reward(1.0, {}, None, "correct")

    monkeypatch.setattr(regrading, "reward_named", lambda _name: reward)
    tally = from_document(regrade(db, run_id, "boxed").counts)
    assert tally.errors == {"ValueError: mine.py line 3": 6}
    assert tally.kinds["no longer graded"] == 6


def test_where_the_stored_rewards_hold_more_verdicts_alone_are_compared(db: Database):
    paid_double = small_config().reward.model_copy(update={"answer": 2.0})
    ended = regrade(db, fill_regradable(db, reward=paid_double), "answer_tag")
    assert ended.counts["values"] is False
    assert from_document(ended.counts).old_mean is None
    assert from_document(ended.counts).flips == 18


def test_a_reward_that_there_is_not_is_refused_before_anything_is_stored(db: Database, run_id: str):
    with pytest.raises(RewardError, match="is not a reward"):
        regrade(db, run_id, "best")
    assert reads.regrades(db, run_id) == []


def test_the_reward_of_a_run_is_that_of_its_prompt(db: Database, run_id: str):
    run = reads.get_run(db, run_id)
    assert run is not None
    assert reward_of(run) == "answer_tag"


def test_a_run_without_completions_has_nothing_to_grade(db: Database):
    empty = queue.enqueue(db, small_config(), name="empty")
    with pytest.raises(Exception, match="has no stored completions"):
        regrade(db, empty, "answer_tag")


def test_the_process_carries_out_what_has_begun(db: Database, run_id: str):
    begun = regrades.begin_regrade(db, run_id, reward="answer_tag", version="as the page has it")
    command = [sys.executable, "-m", "engine.jobs.regrading", str(begun)]
    environment = {**os.environ, "GRPO_LAB_DATABASE_URL": db.url}
    subprocess.run(command, check=True, timeout=120, env=environment)
    found = reads.get_regrade(db, begun)
    assert (found.status, found.done) == ("finished", COMPLETIONS)
    assert found.version == reward_identity("answer_tag").version
