from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete

from engine.errors import StoreError
from engine.store import reads, regrades, schema, writes
from engine.store.database import Database
from engine.store.records import Flip
from engine.store.stored_answers import extent, stored_answers
from engine.types import Reward
from tests.store.regradable import COMPLETIONS, GROUPS, MEMBERS, STEPS, fill_regradable

WRONG = Reward(0.0, {}, "8\x00", "wrong", "no \ud800")


@pytest.fixture
def run_id(db: Database) -> str:
    return fill_regradable(db)


def begin(db: Database, run_id: str, **span) -> int:
    return regrades.begin_regrade(db, run_id, reward="boxed", version="1", **span)


def every(db: Database, run_id: str, covers="completions", step_from=0, step_to=99, **how):
    chunks = list(stored_answers(db, run_id, covers, step_from=step_from, step_to=step_to, **how))
    return chunks, [answer for chunk in chunks for answer in chunk]


def note(db: Database, regrade_id: int, answers) -> None:
    found = [Flip(answer, WRONG, 0.5) for answer in answers]
    regrades.note_progress(db, regrade_id, found, place=0, done=len(found), counts={"flips": len(found)})


@pytest.mark.parametrize("at_once", [1, 3, 4, 7, 100])
def test_every_completion_comes_once_and_in_order_whatever_the_chunk(db: Database, run_id: str, at_once: int):
    chunks, answers = every(db, run_id, at_once=at_once)
    assert [answer.completion_id for answer in answers] == list(range(1, COMPLETIONS + 1))
    assert max(map(len, chunks)) <= at_once
    assert [(answer.text, answer.verdict) for answer in answers[:4]] == [member[:2] for member in MEMBERS]
    assert (answers[-1].step, answers[-1].problem.problem_id) == (STEPS, f"train-{STEPS}-{GROUPS - 1}")


def test_more_groups_than_one_page_are_read_on(db: Database, run_id: str, monkeypatch):
    monkeypatch.setattr("engine.store.stored_answers._PAGE", 2)
    assert len(every(db, run_id)[1]) == COMPLETIONS


def test_steps_bound_what_is_read(db: Database, run_id: str):
    assert {answer.step for answer in every(db, run_id, step_from=2, step_to=2)[1]} == {2}
    assert extent(db, run_id, "completions", step_from=2).count == COMPLETIONS * 2 // 3


@pytest.mark.parametrize("covers", ["completions", "evaluations"])
@pytest.mark.parametrize("sample", [1, 5, 7])
def test_a_sample_has_as_many_as_asked_for_spread_over_all(db: Database, run_id: str, covers, sample: int):
    _, answers = every(db, run_id, covers, sample=sample, at_once=3)
    assert len(answers) == sample
    assert len({(answer.owner, answer.index) for answer in answers}) == sample
    if sample > 1:
        assert answers[0].step < answers[-1].step


def test_answers_of_evaluations_are_read_with_their_keys(db: Database, run_id: str):
    _, answers = every(db, run_id, "evaluations", at_once=3)
    assert [(answer.step, answer.index) for answer in answers] == [(step, n) for step in (0, STEPS) for n in range(4)]
    assert all(answer.completion_id is None and answer.problem.split == "validation" for answer in answers)


def test_a_regrading_has_the_steps_that_there_are(db: Database, run_id: str):
    found = reads.get_regrade(db, begin(db, run_id, step_from=-5, sample=100))
    assert (found.step_from, found.step_to, found.total, found.sample) == (1, STEPS, COMPLETIONS, None)
    assert (found.status, found.done, found.counts, found.finished_at) == ("running", 0, {}, None)
    assert reads.get_regrade(db, begin(db, run_id, sample=5)).total == 5
    assert [each.regrade_id for each in reads.regrades(db, run_id)] == [2, 1]


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ({"step_from": 9}, r"no stored completions for steps 9:; choose other steps"),
        ({"covers": "evaluations", "step_from": 1, "step_to": 2}, r"no stored answers of evaluations for steps 1:2"),
        ({"sample": 0}, "limit=0"),
    ],
)
def test_nothing_to_grade_is_refused_in_words(db: Database, run_id: str, span, message: str):
    with pytest.raises(StoreError, match=message):
        begin(db, run_id, **span)


def test_an_unknown_run_is_refused(db: Database):
    with pytest.raises(StoreError, match="run=nobody does not exist"):
        begin(db, "nobody")


def test_flips_come_back_with_both_judgements(db: Database, run_id: str):
    regrade_id = begin(db, run_id)
    _, answers = every(db, run_id)
    note(db, regrade_id, answers[2:4])
    found = reads.flips(db, reads.get_regrade(db, regrade_id))
    first = found[0]
    assert (first.completion_id, first.step, first.index, first.gold) == (3, 1, 0, "7")
    assert (first.old_verdict, first.old_value, first.old_answer, first.old_reason) == (
        "correct", 1.0, "7", "stored as correct",
    )  # fmt: skip
    assert (first.verdict, first.value, first.answer, first.reason, first.seconds) == (
        "wrong", 0.0, "8␀", "no �", 0.5,
    )  # fmt: skip
    assert [each.place for each in found] == [0, 1]


def test_flips_are_filtered_by_verdicts_and_step(db: Database, run_id: str):
    regrade_id = begin(db, run_id)
    note(db, regrade_id, every(db, run_id)[1])
    found = reads.get_regrade(db, regrade_id)
    assert len(reads.flips(db, found, verdicts=[("correct", "wrong")])) == COMPLETIONS // 2
    assert {each.step for each in reads.flips(db, found, step=2)} == {2}
    assert [each.place for each in reads.flips(db, found, after=3, limit=2)] == [4, 5]
    assert reads.flips_by_step(db, found) == dict.fromkeys(range(1, STEPS + 1), 8)


def test_flips_of_evaluations_name_their_answer(db: Database, run_id: str):
    regrade_id = begin(db, run_id, covers="evaluations")
    note(db, regrade_id, every(db, run_id, "evaluations")[1])
    found = reads.get_regrade(db, regrade_id)
    last = reads.flips(db, found)[-1]
    assert (last.completion_id, last.evaluation_id, last.answer_index, last.step) == (None, 2, 3, STEPS)
    assert (last.index, last.split, last.mode, last.text) == (None, "validation", "sampled", "no tags")
    assert reads.flips_by_step(db, found) == {0: 4, STEPS: 4}


def test_the_stored_answers_stay_as_they_are(db: Database, run_id: str):
    before = every(db, run_id)[1]
    note(db, begin(db, run_id), before)
    assert every(db, run_id)[1] == before


def test_progress_of_a_regrading_that_is_over_is_refused(db: Database, run_id: str):
    regrade_id = begin(db, run_id)
    assert regrades.end_regrade(db, regrade_id, "stopped")
    assert not regrades.end_regrade(db, regrade_id, "failed", "late")
    with pytest.raises(StoreError, match=rf"regrade={regrade_id} is over"):
        note(db, regrade_id, every(db, run_id)[1])
    found = reads.get_regrade(db, regrade_id)
    assert (found.status, found.error) == ("stopped", None)
    assert reads.flips(db, found) == []


def test_a_flip_of_a_discarded_answer_is_refused_and_none_of_its_chunk_is_stored(db: Database, run_id: str):
    regrade_id = begin(db, run_id)
    answers = every(db, run_id)[1]
    with db.write() as connection:
        connection.execute(delete(schema.completion).where(schema.completion.c.completion_id == 2))
    with pytest.raises(StoreError, match="an answer is not stored any more"):
        note(db, regrade_id, answers[:3])
    found = reads.get_regrade(db, regrade_id)
    assert (found.done, reads.flips(db, found)) == (0, [])


def test_a_stop_is_heard_and_so_is_an_end(db: Database, run_id: str):
    regrade_id = begin(db, run_id)
    assert not regrades.regrade_stop_requested(db, regrade_id)
    regrades.request_regrade_stop(db, regrade_id)
    assert regrades.regrade_stop_requested(db, regrade_id)
    assert regrades.regrade_stop_requested(db, 999)


def test_silence_ends_a_regrading_and_a_beat_puts_it_off(db: Database, run_id: str):
    regrade_id, now = begin(db, run_id), datetime.now(UTC)
    assert regrades.end_silent(db, run_id, now + timedelta(seconds=50)) == 0
    regrades.beat(db, regrade_id, now + timedelta(seconds=50))
    assert regrades.end_silent(db, run_id, now + timedelta(seconds=100)) == 0
    assert regrades.end_silent(db, run_id, now + timedelta(seconds=120)) == 1
    found = reads.get_regrade(db, regrade_id)
    assert found.status == "failed"
    assert found.error is not None
    assert "no sign of life for 60 s" in found.error


def test_a_resume_removes_the_regradings_that_cover_what_it_discards_and_no_other(db: Database, run_id: str):
    whole, early = begin(db, run_id), begin(db, run_id, step_to=2)
    note(db, whole, every(db, run_id)[1])
    note(db, early, every(db, run_id, step_to=2)[1])
    writes.discard_after(db, run_id, 2)
    assert [each.regrade_id for each in reads.regrades(db, run_id)] == [early]
    assert len(reads.flips(db, reads.get_regrade(db, early))) == 16
    with pytest.raises(StoreError, match=rf"regrade={whole} does not exist"):
        reads.get_regrade(db, whole)


def test_a_run_that_is_deleted_takes_its_regradings_along(db: Database, run_id: str):
    other = fill_regradable(db, name="other")
    note(db, begin(db, run_id), every(db, run_id)[1])
    kept = begin(db, other, covers="evaluations")
    note(db, kept, every(db, other, "evaluations")[1])
    with db.write() as connection:
        connection.execute(delete(schema.run).where(schema.run.c.run_id == run_id))
    assert reads.regrades(db, run_id) == []
    with db.read() as connection:
        left = connection.execute(schema.regrade_flip.select()).all()
    assert {row.regrade_id for row in left} == {kept}
