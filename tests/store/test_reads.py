import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import event, insert, text

from engine.config import RunConfig, parse_config
from engine.errors import StoreError
from engine.store import queue, reads, schema, writes
from engine.store.database import Database
from engine.store.records import MetricPoint
from engine.types import StepRecord
from tests.store.filled import HOSTILE_TEXT, fill_demo_store, fill_run_with_updates, sampled_evaluation


@contextmanager
def counted(db: Database) -> Iterator[list[str]]:
    """The statements sent to the database, transactions' BEGIN left out."""
    sent: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    event.listen(db.engine, "before_cursor_execute", note)
    yield sent
    event.remove(db.engine, "before_cursor_execute", note)


def plan(db: Database, query: str) -> str:
    with db.read() as connection:
        return " / ".join(str(row[-1]) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {query}")))


def test_an_empty_store_reads_as_nothing(db: Database):
    assert reads.list_runs(db) == []
    assert reads.get_run(db, "nobody") is None
    assert len(reads.metrics(db, ["nobody"], None)) == 0
    assert reads.metric_names(db, ["nobody"]) == []
    assert reads.last_metrics(db, "nobody") == {}
    assert reads.steps_with_groups(db, "nobody") == []
    assert reads.groups(db, "nobody", 1) == []
    assert reads.group(db, 1) is None
    assert reads.completions(db, 1) == []
    assert reads.token_data(db, 1) is None
    assert reads.prompt_token_ids(db, 1) == ()
    assert len(reads.update_metrics(db, "nobody", None)) == 0
    assert reads.evaluations(db, []) == []


def test_a_hundred_runs_are_listed_with_one_query(db: Database):
    for _ in range(100):
        queue.enqueue(db, RunConfig(), name="x")
    with counted(db) as sent:
        runs = reads.list_runs(db)
    assert len(sent) == 1
    assert [run.ordinal for run in runs] == list(range(100, 0, -1))


def test_a_run_is_found_by_id_by_name_and_by_the_beginning_of_its_id(db: Database):
    first = queue.enqueue(db, RunConfig(), name="first light")
    queue.enqueue(db, RunConfig(), name="twin")
    queue.enqueue(db, RunConfig(), name="twin")
    assert reads.find_run(db, first).run_id == first
    assert reads.find_run(db, " first light ").run_id == first
    assert reads.find_run(db, first[:7]).run_id == first
    with pytest.raises(StoreError, match=r"run=twin fits 2 runs: .*give the id of one"):
        reads.find_run(db, "twin")
    for wrong in ("zzzzzzzz0", "%", "_" * 8):
        with pytest.raises(StoreError, match="does not exist"):
            reads.find_run(db, wrong)
    with pytest.raises(StoreError, match="is empty"):
        reads.find_run(db, "")


def test_a_name_that_is_the_beginning_of_an_id_means_the_name(db: Database):
    first = queue.enqueue(db, RunConfig(), name="first")
    second = queue.enqueue(db, RunConfig(), name=first[:3])
    assert reads.find_run(db, first[:3]).run_id == second


def test_a_cursor_reads_only_what_came_after(db: Database, run_id: str):
    other = queue.enqueue(db, RunConfig(), name="other")
    for step in range(1, 6):
        writes.write_step(db, run_id, StepRecord(step, {"reward": step / 10, "loss": 0.0}))
        writes.write_step(db, other, StepRecord(step, {"reward": -step / 10}))
    table = reads.metrics(db, [run_id], ["reward"], after_step=3)
    assert list(table.points()) == [(run_id, MetricPoint("reward", 4, 0.4)), (run_id, MetricPoint("reward", 5, 0.5))]
    both = reads.metrics(db, [run_id, other], ["reward"], after_step={run_id: 4})
    assert both.run_ids == [run_id] + [other] * 5
    assert both.steps.tolist() == [5, 1, 2, 3, 4, 5]
    assert len(reads.metrics(db, [run_id], None, after_step=5)) == 0


def test_optimizer_steps_are_read_in_their_order_and_from_a_cursor(db: Database):
    run_id = fill_run_with_updates(db, steps=3, updates=2)
    table = reads.update_metrics(db, run_id, ["loss"], after_step=1)
    assert table.names == ["loss"] * 4
    assert table.steps.tolist() == [2, 2, 3, 3]
    assert table.updates.tolist() == [1, 2, 1, 2]
    assert table.values.tolist() == [2.1, 2.2, 3.1, 3.2]
    assert len(reads.update_metrics(db, run_id, ["loss"], after_step=3)) == 0
    assert reads.update_metrics(db, run_id, None, after_step=2).names == ["loss", "loss", "ratio/mean", "ratio/mean"]
    assert len(reads.update_metrics(db, run_id, ["reward"])) == 0


def test_step_zero_is_read_from_the_start(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(0, {"reward": 0.5}))
    assert reads.metrics(db, [run_id], None).steps.tolist() == [0]


def test_the_last_value_is_that_of_the_highest_step_of_each_metric(db: Database, run_id: str):
    writes.write_step(db, run_id, StepRecord(1, {"a": 1.0, "b": 1.0}))
    writes.write_step(db, run_id, StepRecord(2, {"a": 2.0}))
    assert reads.last_metrics(db, run_id) == {"a": 2.0, "b": 1.0}
    assert reads.metric_names(db, [run_id, "nobody"]) == ["a", "b"]


def test_twenty_runs_of_a_thousand_steps_are_compared_in_under_a_second(db: Database):
    ids = [queue.enqueue(db, RunConfig(), name="x") for _ in range(20)]
    rows = [
        {"run_id": run_id, "name": name, "step": step, "value": 0.5, "kind": "num"}
        for run_id in ids
        for name in ("entropy", "reward")
        for step in range(1, 1001)
    ]
    with db.write() as connection:
        connection.execute(insert(schema.metric), rows)
    seconds = []
    for _ in range(3):  # the best of three, as the machine may be busy with other things
        began = time.perf_counter()
        table = reads.metrics(db, ids, ["reward"])
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 1.0
    assert len(table) == 20_000
    assert table.values.dtype == np.float64


def test_the_filled_store_reads_as_it_was_written(db: Database):
    succeeded, running, failed = fill_demo_store(db)
    runs = {run.run_id: run for run in reads.list_runs(db)}
    assert [runs[run_id].status for run_id in (succeeded, running, failed)] == ["succeeded", "running", "failed"]
    assert [runs[run_id].step for run_id in (succeeded, running, failed)] == [20, 12, 15]
    assert runs[failed].error is not None
    assert runs[failed].error.startswith("engine.errors.NonFiniteUpdateError")
    assert "Traceback" in (reads.attempts(db, failed)[0].traceback or "")
    assert [row.step for row in reads.evaluations(db, [succeeded]) if row.mode == "sampled"] == [0, 10, 20]
    assert [(row.step, row.is_best) for row in reads.checkpoints(db, succeeded)] == [(10, False), (20, True)]
    assert math.isnan(reads.last_metrics(db, failed)["loss"])
    kinds = {row.kind for step in range(1, 21) for row in reads.groups(db, succeeded, step)}
    assert kinds == {"mixed", "all_correct", "all_wrong"}
    first = reads.groups(db, succeeded, 1)[0]
    hostile = reads.completions(db, first.group_id)[0]
    assert hostile.text == HOSTILE_TEXT.replace("\x00", "\u2400").replace("\ud800", "\ufffd")
    assert reads.group(db, first.group_id) == first
    assert reads.prompt_token_ids(db, first.group_id) == (1, 2, 3)
    tokens = reads.token_data(db, hostile.completion_id)
    assert tokens is not None
    assert len(tokens.token_ids) == len(tokens.sampler_log_probs) == hostile.length
    assert tokens.policy_log_probs is not None
    assert tokens.entropy is not None


def test_groups_are_filtered_by_kind(db: Database):
    succeeded, *_ = fill_demo_store(db)
    every = reads.groups(db, succeeded, 5)
    assert [row.index for row in every] == [0, 1, 2, 3]
    mixed = reads.groups(db, succeeded, 5, kinds=["mixed"])
    assert mixed == [row for row in every if row.kind == "mixed"]
    assert reads.groups(db, succeeded, 5, kinds=[]) == []


def test_events_are_read_from_a_cursor(db: Database, run_id: str):
    for number in range(3):
        writes.write_event(db, run_id, "note", f"number {number}", step=number, level="warning")
    events = reads.events(db, run_id)
    assert [(event.message, event.step, event.level) for event in events] == [
        (f"number {number}", number, "warning") for number in range(3)
    ]
    assert reads.events(db, run_id, after_id=events[1].event_id) == events[2:]


def test_opening_a_group_and_following_a_curve_never_scan_a_table(db: Database):
    if not db.is_sqlite:
        pytest.skip("the plan's words are SQLite's")
    plans = [
        plan(db, 'SELECT * FROM completion WHERE group_id = 1 ORDER BY "index"'),
        plan(db, 'SELECT * FROM "group" WHERE run_id = \'a\' AND step = 3 ORDER BY "index"'),
        plan(db, "SELECT * FROM metric WHERE run_id = 'a' AND name = 'reward' AND step > 3 ORDER BY step"),
        plan(
            db,
            "SELECT * FROM update_metric WHERE run_id = 'a' AND name = 'loss' AND step > 3 ORDER BY step, \"update\"",
        ),
        plan(db, "DELETE FROM update_metric WHERE run_id = 'a' AND name IN ('kl', 'loss') AND step = 3"),
        plan(db, "SELECT * FROM event WHERE run_id = 'a' AND event_id > 3 ORDER BY event_id"),
        plan(db, "SELECT DISTINCT step FROM \"group\" WHERE run_id = 'a' ORDER BY step"),
    ]
    for found in plans:
        assert "SCAN" not in found
        assert "TEMP B-TREE" not in found


def test_the_answers_of_an_evaluation_are_counted_problem_by_problem(db: Database, run_id: str):
    writes.write_evaluation(db, run_id, sampled_evaluation(0, [1, 4, 0], samples=4))
    (row,) = reads.evaluations(db, [run_id])
    counts, problems = reads.answer_counts(db, row.evaluation_id), reads.evaluation_problems(db, row.evaluation_id)
    assert (row.problems, row.samples, row.n) == (3, 4, 12)
    assert (counts.n.tolist(), counts.right.tolist()) == ([4, 4, 4], [1, 4, 0])
    assert [(each.problem_id, each.correct, each.wrong, each.unreadable, each.not_graded) for each in problems] == [
        ("validation-0", 1, 1, 1, 1),
        ("validation-1", 4, 0, 0, 0),
        ("validation-2", 0, 2, 1, 1),
    ]
    last = reads.evaluation_answers(db, row.evaluation_id, problems[2].answers)
    assert [(each.problem_id, each.sample, each.index) for each in last] == [
        ("validation-2", n, 8 + n) for n in range(4)
    ]


def test_one_problem_asked_twice_in_an_evaluation_is_two(db: Database, run_id: str):
    record = sampled_evaluation(0, [2, 0], samples=2)
    again = [replace(answer, problem=record.answers[0].problem) for answer in record.answers]
    writes.write_evaluation(db, run_id, replace(record, answers=again))
    (row,) = reads.evaluations(db, [run_id])
    assert reads.answer_counts(db, row.evaluation_id).right.tolist() == [2, 0]


def test_an_evaluation_without_stored_answers_has_no_counts(db: Database, run_id: str):
    writes.write_evaluation(db, run_id, replace(sampled_evaluation(0, [1], samples=2), answers=()), n=2)
    (row,) = reads.evaluations(db, [run_id])
    assert len(reads.answer_counts(db, row.evaluation_id)) == 0
    assert reads.evaluation_problems(db, row.evaluation_id) == []


def test_the_accuracies_of_a_run_are_those_of_the_split_in_its_config(db: Database):
    tested = queue.enqueue(db, parse_config({"evaluation.split": "test", "grpo.steps": 0}), name="tested")
    for split, right in (("test", [2, 0]), ("validation", [2, 2])):
        writes.write_evaluation(db, tested, replace(sampled_evaluation(0, right, samples=2), split=split))
    run = reads.get_run(db, tested)
    assert run is not None
    assert (run.first_accuracy, run.last_accuracy, run.best_accuracy, run.best_step) == (0.5, 0.5, 0.5, 0)
