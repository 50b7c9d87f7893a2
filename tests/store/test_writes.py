import math
import multiprocessing
import random
from dataclasses import replace
from multiprocessing.synchronize import Barrier

import numpy as np
import pytest
from sqlalchemy import delete, func, select, text

from engine.config import RunConfig
from engine.errors import StoreError
from engine.store import queue, reads, schema, writes
from engine.store.database import Database, open_database
from engine.types import Completion, CompletionRecord, GroupRecord, Problem, Reward, StepRecord
from tests.store.filled import NOON, evaluation_record, fill_run_with_updates, step_record

FORK = multiprocessing.get_context("fork")


def curve(db: Database, run_id: str, name: str) -> list[tuple[int, float]]:
    table = reads.metrics(db, [run_id], [name])
    return list(zip(table.steps.tolist(), table.values.tolist(), strict=True))


def count(db: Database, table: str) -> int:
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(schema.metadata.tables[table])).scalar_one()


def completion(text: str = "7", n_tokens: int = 2) -> CompletionRecord:
    sampled = Completion(tuple(range(n_tokens)), text, np.full(n_tokens, -0.5, np.float32), "eos")
    return CompletionRecord(sampled, Reward(1.0, {"answer": 1.0}, "7", "correct"), 0.25)


def group(*members: CompletionRecord, question: str = "3 + 4") -> GroupRecord:
    return GroupRecord(Problem("p-1", question, "7"), "Q: 3 + 4", (1, 2, 3), "mixed", 0.5, 0.7, tuple(members))


def test_nan_both_infinities_and_not_logged_stay_four_things(db: Database, run_id: str):
    for step, value in ((2, 0.5), (3, math.nan), (4, math.inf), (5, -math.inf)):
        writes.write_step(db, run_id, StepRecord(step, {"loss": value}))
    writes.write_step(db, run_id, StepRecord(6, {"reward": 1.0}))
    steps, values = zip(*curve(db, run_id, "loss"), strict=True)
    assert steps == (2, 3, 4, 5)
    assert values[0] == 0.5
    assert math.isnan(values[1])
    assert values[2:] == (math.inf, -math.inf)
    assert reads.last_metrics(db, run_id) == {"loss": -math.inf, "reward": 1.0}


def test_the_metrics_of_optimizer_steps_are_counted_from_one_and_keep_the_four_kinds(db: Database, run_id: str):
    updates = [{"loss": 0.5, "grad_norm": 2.0}, {"loss": math.nan}, {"loss": -math.inf}]
    writes.write_step(db, run_id, StepRecord(7, {"loss": 0.25}, updates=updates))
    table = reads.update_metrics(db, run_id, ["loss", "grad_norm"])
    assert table.names == ["loss", "loss", "loss", "grad_norm"]
    assert table.steps.tolist() == [7, 7, 7, 7]
    assert table.updates.tolist() == [1, 2, 3, 1]
    assert table.values[[0, 2, 3]].tolist() == [0.5, -math.inf, 2.0]
    assert math.isnan(table.values[1])
    assert curve(db, run_id, "loss") == [(7, 0.25)]


def test_a_repeated_step_replaces_its_optimizer_steps_and_no_others(db: Database, run_id: str):
    other = queue.enqueue(db, RunConfig(), name="other")
    for owner in (run_id, other):
        for step in (1, 2, 3):
            writes.write_step(db, owner, StepRecord(step, {}, updates=[{"loss": 1.0, "kl": 1.0}, {"loss": 2.0}]))
    writes.write_step(db, run_id, StepRecord(2, {}, updates=[{"loss": 3.0}]))
    table = reads.update_metrics(db, run_id, None)
    assert list(zip(table.names, table.steps.tolist(), table.values.tolist(), strict=True)) == [
        ("kl", 1, 1.0),
        ("kl", 3, 1.0),
        ("loss", 1, 1.0),
        ("loss", 1, 2.0),
        ("loss", 2, 3.0),
        ("loss", 3, 1.0),
        ("loss", 3, 2.0),
    ]
    writes.write_step(db, run_id, StepRecord(3, {}))
    assert reads.update_metrics(db, run_id, None, after_step=2).names == []
    assert len(reads.update_metrics(db, other, None)) == 9


def test_a_run_that_is_removed_takes_the_metrics_of_its_optimizer_steps_along(db: Database):
    run_id = fill_run_with_updates(db)
    assert count(db, "update_metric") == 12
    with db.write() as connection:
        connection.execute(delete(schema.run).where(schema.run.c.run_id == run_id))
    assert count(db, "update_metric") == 0


def test_what_has_no_number_is_stored_as_such_and_the_divergence_as_it_is(db: Database, run_id: str):
    plain, far, broken = completion(), replace(completion(), kl=1.5), replace(completion(), kl=math.nan)
    writes.write_step(db, run_id, StepRecord(1, {}, [group(plain, far, broken)]))
    (row,) = reads.groups(db, run_id, 1)
    assert [found.kl for found in reads.completions(db, row.group_id)] == [None, 1.5, None]


def test_a_group_that_was_drawn_and_left_out_is_told_from_the_others(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion()), replace(group(completion()), trained=False)]))
    rows = reads.groups(db, run_id, 1)
    assert [row.trained for row in rows] == [True, False]
    assert reads.group(db, rows[1].group_id) == rows[1]


def test_numpy_numbers_are_numbers(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {"reward": np.float32(0.5), "num_tokens": np.int64(12)}))
    assert reads.last_metrics(db, run_id) == {"reward": 0.5, "num_tokens": 12.0}


def test_a_lone_surrogate_costs_no_rows(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion("a"), completion("b\ud800"), completion("c"))]))
    (row,) = reads.groups(db, run_id, 1)
    assert [found.text for found in reads.completions(db, row.group_id)] == ["a", "b\ufffd", "c"]


def test_a_text_with_a_nul_is_searched_and_measured_whole(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion("a\x00b"))]))
    found = schema.completion.c.text
    with db.read() as connection:
        assert connection.execute(select(func.length(found)).where(found.like("%b"))).scalars().all() == [3]


def test_hostile_text_in_every_field_is_stored(db: Database, run_id: str):
    nasty = "\ud800\x00<script>"
    member = completion(nasty)
    reward = Reward(0.0, {"format": math.nan}, nasty, "unreadable", nasty)
    sampled = Completion((1,), nasty, np.zeros(1, np.float32), "stop", nasty)
    record = GroupRecord(
        Problem(nasty, nasty, nasty), nasty, (), "tied", None, None, (member, CompletionRecord(sampled, reward, None))
    )
    writes.write_step(db, run_id, StepRecord(1, {}, [record]))
    writes.write_event(db, run_id, "odd", nasty)
    (row,) = reads.groups(db, run_id, 1)
    clean = "\ufffd\u2400<script>"
    assert (row.problem_id, row.question, row.gold, row.prompt) == (clean, clean, clean, clean)
    second = reads.completions(db, row.group_id)[1]
    assert (second.answer, second.reason, second.stop) == (clean, clean, clean)
    assert math.isnan(second.reward_parts["format"])
    assert reads.events(db, run_id)[0].message == clean


def test_a_step_is_stored_whole_or_not_at_all(db: Database, run_id: str):
    broken = CompletionRecord(
        Completion((1, 2), "x", np.zeros(5, np.float32), "eos"), Reward(1.0, {}, None, "correct"), None
    )
    with pytest.raises(StoreError, match="sampler_log_probs has 5 values for 2 tokens"):
        writes.write_step(db, run_id, StepRecord(1, {"reward": 1.0}, [group(completion(), broken)]))
    assert [count(db, table) for table in ("metric", "group", "completion", "problem")] == [0, 0, 0, 0]
    run = reads.get_run(db, run_id)
    assert run is not None
    assert run.step == 0


def test_a_repeated_step_replaces_what_was_there(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {"reward": 0.1}, [group(completion("old")), group(completion("old"))]))
    writes.write_step(db, run_id, StepRecord(1, {"reward": 0.9}, [group(completion("new"))]))
    assert curve(db, run_id, "reward") == [(1, 0.9)]
    (row,) = reads.groups(db, run_id, 1)
    assert [found.text for found in reads.completions(db, row.group_id)] == ["new"]
    assert [count(db, table) for table in ("completion", "completion_tokens")] == [1, 1]


def test_an_id_is_not_used_again_for_another_group(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion("old"))]))
    (old,) = reads.groups(db, run_id, 1)
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion("new"))]))
    (new,) = reads.groups(db, run_id, 1)
    assert new.group_id != old.group_id
    assert reads.group(db, old.group_id) is None


def test_one_problem_is_stored_once_and_one_id_with_two_questions_twice(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion()), group(completion())]))
    writes.write_step(db, run_id, StepRecord(2, {}, [group(completion()), group(completion(), question="5 + 2")]))
    assert count(db, "problem") == 2
    assert [row.question for row in reads.groups(db, run_id, 2)] == ["3 + 4", "5 + 2"]


def test_without_token_data_the_texts_stay(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion())]), token_data=False)
    assert (count(db, "completion"), count(db, "completion_tokens")) == (1, 0)


def test_a_completion_without_tokens_and_a_group_without_completions_are_stored(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {}, [group(completion("", 0)), group()]))
    full, empty = reads.groups(db, run_id, 1)
    assert (full.size, full.mean_length, empty.size, empty.mean_length) == (1, 0.0, 0, 0.0)
    (found,) = reads.completions(db, full.group_id)
    assert (found.length, found.mean_log_prob) == (0, None)


def test_a_run_that_does_not_exist_cannot_be_written_to(db: Database):
    with pytest.raises(StoreError, match="run=nobody does not exist"):
        writes.write_step(db, "nobody", StepRecord(1, {"reward": 1.0}))
    with pytest.raises(StoreError, match="run=nobody does not exist"):
        writes.write_event(db, "nobody", "x", "y")


def test_an_attempt_declared_over_writes_no_more(db: Database, run_id: str):
    claim = queue.claim(db, run_id, worker_id="w", host="h", now=NOON)
    assert claim is not None
    writes.write_step(db, run_id, StepRecord(1, {"reward": 0.1}), attempt_id=claim.attempt_id)
    queue.attempt_ended(db, claim.attempt_id, outcome="lost")
    with pytest.raises(StoreError, match=f"attempt={claim.attempt_id} of run={run_id} is over"):
        writes.write_step(db, run_id, StepRecord(2, {"reward": 0.2}), attempt_id=claim.attempt_id)
    assert curve(db, run_id, "reward") == [(1, 0.1)]


def test_an_evaluation_is_a_row_its_answers_and_metrics(db: Database, run_id: str):
    writes.write_evaluation(db, run_id, evaluation_record(10, 0.5))
    writes.write_evaluation(db, run_id, evaluation_record(10, 0.75, greedy=True))
    greedy, sampled = reads.evaluations(db, [run_id])
    assert (sampled.mode, sampled.n, sampled.accuracy, greedy.accuracy) == ("sampled", 8, 0.5, 0.75)
    answers = reads.evaluation_answers(db, sampled.evaluation_id)
    assert [answer.verdict for answer in answers] == ["correct"] * 4 + ["wrong"] * 4
    assert (answers[1].question, answers[1].gold, answers[1].answer) == ("1 + 5 = ?", "6", "6")
    assert curve(db, run_id, "eval/validation/accuracy") == [(10, 0.5)]
    assert curve(db, run_id, "eval/validation/greedy_accuracy") == [(10, 0.75)]


def test_a_run_knows_its_first_last_and_best_accuracy(db: Database, run_id: str):
    for step, accuracy in ((0, 0.25), (10, 0.75), (20, 0.75), (30, 0.5)):
        writes.write_evaluation(db, run_id, evaluation_record(step, accuracy))
        writes.write_evaluation(db, run_id, evaluation_record(step, 1.0, greedy=True))
    run = reads.get_run(db, run_id)
    assert run is not None
    assert (run.first_accuracy, run.last_accuracy, run.best_accuracy, run.best_step) == (0.25, 0.5, 0.75, 10)


def test_a_resumed_run_is_one_line_with_nothing_shifted(db: Database, run_id: str):
    """Steps 0 to 15 are there, the checkpoint is at 10."""
    source = random.Random(0)
    writes.write_evaluation(db, run_id, evaluation_record(0, 0.25))
    for step in range(1, 16):
        record = step_record(step, 0.5, source)
        updates = [{"loss": float(step)}] * 2
        writes.write_step(db, run_id, StepRecord(step, {"reward": float(step)}, record.groups, updates))
    writes.write_evaluation(db, run_id, evaluation_record(10, 0.5))
    writes.write_evaluation(db, run_id, evaluation_record(15, 1.0))
    writes.write_checkpoint(db, run_id, 10, "step-10", 0.5)
    writes.write_checkpoint(db, run_id, 15, "step-15", 1.0)
    claim = queue.claim(db, run_id, worker_id="w", host="h", now=NOON)
    assert claim is not None
    writes.discard_after(db, run_id, 10)
    run = reads.get_run(db, run_id)
    assert run is not None
    assert (run.step, run.best_accuracy, run.last_accuracy) == (10, 0.5, 0.5)
    assert reads.attempts(db, run_id)[0].from_step == 10
    assert reads.steps_with_groups(db, run_id) == list(range(1, 11))
    assert reads.update_metrics(db, run_id, ["loss"]).steps.tolist() == [step for step in range(1, 11) for _ in "ab"]
    assert [row.step for row in reads.checkpoints(db, run_id)] == [10]
    assert [row.step for row in reads.evaluations(db, [run_id])] == [0, 10]
    for step in range(11, 16):
        writes.write_step(db, run_id, StepRecord(step, {"reward": 100.0 + step}))
    assert curve(db, run_id, "reward") == [(step, float(step if step <= 10 else 100 + step)) for step in range(1, 16)]


def test_the_best_checkpoint_is_one(db: Database, run_id: str):
    for step in (10, 20, 30):
        writes.write_checkpoint(db, run_id, step, f"step-{step}", 0.1)
    writes.mark_best(db, run_id, 10)
    writes.mark_best(db, run_id, 20)
    writes.delete_checkpoints(db, run_id, [10])
    assert [(row.step, row.is_best) for row in reads.checkpoints(db, run_id)] == [(20, True), (30, False)]


def write_many(url: str, run_id: str, writer: int, rows: int, together: Barrier) -> None:
    db = open_database(url)
    together.wait(timeout=30)
    for step in range(1, rows + 1):
        writes.write_step(db, run_id, StepRecord(step, {f"m/{writer}": float(step)}))
    db.close()


def test_eight_processes_write_fifty_steps_each_without_a_gap(db: Database, run_id: str):
    together = FORK.Barrier(8)
    processes = [FORK.Process(target=write_many, args=(db.url, run_id, writer, 50, together)) for writer in range(8)]
    db.close()
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0] * 8
    assert count(db, "metric") == 400
    for writer in range(8):
        assert curve(db, run_id, f"m/{writer}") == [(step, float(step)) for step in range(1, 51)]
    if db.is_sqlite:
        with db.read() as connection:
            assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"


def test_runs_of_one_name_keep_their_own_metrics(db: Database):
    first, second = (queue.enqueue(db, RunConfig(), name="same") for _ in range(2))
    writes.write_step(db, first, StepRecord(1, {"reward": 0.1}))
    writes.write_step(db, second, StepRecord(1, {"reward": 0.2}))
    assert curve(db, first, "reward") == [(1, 0.1)]
    assert curve(db, second, "reward") == [(1, 0.2)]
