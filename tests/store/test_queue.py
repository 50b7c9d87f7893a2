from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from engine.config import RunConfig, parse_config
from engine.errors import ConfigError, StoreError, TransitionError
from engine.store import queue, reads
from engine.store.database import Database
from engine.store.records import Claim, Run

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def get(db: Database, run_id: str) -> Run:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run


def claim_next(db: Database, worker_id: str = "worker-1") -> Claim | None:
    return queue.claim_next(db, worker_id=worker_id, host="here", now=NOON)


def test_a_queued_run_keeps_its_whole_config(db: Database):
    config = parse_config({"seed": 7, "optimizer.learning_rate": 1e-4, "grpo.steps": 30})
    run = get(db, queue.enqueue(db, config, name=" first light ", preset="quick-start"))
    assert run.run_config() == config
    assert (run.name, run.status, run.preset, run.seed, run.step, run.total_steps) == (
        "first light",
        "queued",
        "quick-start",
        7,
        0,
        30,
    )
    assert run.arm == config.arm_digest()
    assert run.created_at.tzinfo is UTC
    assert (run.started_at, run.ended_at, run.attempts, run.seconds) == (None, None, 0, 0.0)


def test_the_length_of_a_run_counts_the_steps_of_sft(db: Database):
    run = get(db, queue.enqueue(db, parse_config({"sft.steps": 20, "grpo.steps": 60}), name="x"))
    assert run.total_steps == 80


def test_ids_are_eight_lower_case_signs_that_begin_with_a_letter(db: Database):
    ids = [queue.enqueue(db, RunConfig(), name="x") for _ in range(20)]
    assert len(set(ids)) == 20
    for run_id in ids:
        assert len(run_id) == 8
        assert run_id.isascii()
        assert run_id.isalnum()
        assert run_id == run_id.lower()
        assert run_id[0].isalpha()


def test_runs_are_counted_from_one(db: Database):
    ids = [queue.enqueue(db, RunConfig(), name="x") for _ in range(3)]
    assert [get(db, run_id).ordinal for run_id in ids] == [1, 2, 3]


def test_a_name_used_twice_gives_two_runs(db: Database):
    first, second = (queue.enqueue(db, RunConfig(), name="same") for _ in range(2))
    assert first != second
    assert [run.run_id for run in reads.list_runs(db)] == [second, first]


def test_a_name_of_nothing_is_refused(db: Database):
    with pytest.raises(StoreError, match="name='' is empty"):
        queue.enqueue(db, RunConfig(), name="  ")


def test_a_launch_token_launches_once(db: Database):
    first = queue.enqueue(db, RunConfig(), name="x", launch_token="form-1")
    again = queue.enqueue(db, RunConfig(seed=1), name="y", launch_token="form-1")
    other = queue.enqueue(db, RunConfig(), name="x", launch_token="form-2")
    assert first == again != other
    assert len(reads.list_runs(db)) == 2


def test_a_launch_token_sent_eight_times_at_once_launches_once(db: Database):
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: queue.enqueue(db, RunConfig(), name="x", launch_token="form"), range(8)))
    assert len(set(ids)) == 1
    assert len(reads.list_runs(db)) == 1


def test_a_fork_counts_on_from_its_parents_step(db: Database, run_id: str):
    fork = get(db, queue.enqueue(db, RunConfig(), name="fork", parent=(run_id, 25)))
    assert (fork.parent_run_id, fork.parent_step, fork.step, fork.total_steps) == (run_id, 25, 25, 100)
    assert reads.children(db, run_id) == [fork]


def test_a_fork_of_nothing_is_refused(db: Database):
    with pytest.raises(StoreError, match="parent=nobody does not exist"):
        queue.enqueue(db, RunConfig(), name="fork", parent=("nobody", 25))


def test_runs_are_claimed_in_the_order_they_were_queued(db: Database):
    ids = [queue.enqueue(db, RunConfig(), name="x") for _ in range(3)]
    claims = [claim_next(db) for _ in range(4)]
    assert [claim and claim.run_id for claim in claims] == [*ids, None]


def test_a_claim_makes_the_attempt(db: Database, run_id: str):
    claim = claim_next(db)
    assert claim is not None
    assert (claim.run_id, claim.number) == (run_id, 1)
    run = get(db, run_id)
    assert (run.status, run.started_at, run.attempts) == ("starting", NOON, 1)
    (attempt,) = reads.attempts(db, run_id)
    assert (attempt.attempt_id, attempt.worker_id, attempt.host, attempt.pid) == (
        claim.attempt_id,
        "worker-1",
        "here",
        None,
    )
    assert (attempt.started_at, attempt.heartbeat_at, attempt.ended_at) == (NOON, NOON, None)


def test_four_workers_claim_thirty_runs_and_none_twice(db: Database):
    ids = {queue.enqueue(db, RunConfig(), name="x") for _ in range(30)}

    def work(worker: int) -> list[str]:
        taken = []
        while (claim := claim_next(db, f"worker-{worker}")) is not None:
            taken.append(claim.run_id)
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [run_id for run_ids in pool.map(work, range(4)) for run_id in run_ids]
    assert len(taken) == 30
    assert set(taken) == ids
    assert all(len(reads.attempts(db, run_id)) == 1 for run_id in ids)


def test_one_given_run_is_claimed_past_the_line_and_only_once(db: Database, run_id: str):
    later = queue.enqueue(db, RunConfig(), name="later")
    claim = queue.claim(db, later, worker_id="cli", host="here", now=NOON)
    assert claim is not None
    assert claim.run_id == later
    assert queue.claim(db, later, worker_id="cli", host="here", now=NOON) is None
    assert get(db, run_id).status == "queued"


def test_a_waiting_run_is_stopped_at_once(db: Database, run_id: str):
    queue.request_stop(db, run_id)
    assert get(db, run_id).status == "stopped"
    assert claim_next(db) is None


def test_a_live_run_is_asked_to_stop_and_asking_twice_is_allowed(db: Database, run_id: str):
    claim_next(db)
    queue.transition(db, run_id, "running")
    assert not queue.stop_requested(db, run_id)
    queue.request_stop(db, run_id)
    queue.request_stop(db, run_id)
    assert queue.stop_requested(db, run_id)
    assert get(db, run_id).status == "stopping"


def test_an_ended_run_cannot_be_stopped(db: Database, run_id: str):
    claim_next(db)
    queue.transition(db, run_id, "succeeded")
    with pytest.raises(TransitionError, match="is succeeded and cannot become stopping"):
        queue.request_stop(db, run_id)


def test_a_run_that_does_not_exist_cannot_be_stopped_resumed_or_archived(db: Database):
    for action in (queue.request_stop, queue.requeue, queue.archive):
        with pytest.raises(StoreError, match="run=nobody does not exist"):
            action(db, "nobody")


def test_a_run_that_is_gone_counts_as_asked_to_stop(db: Database):
    assert queue.stop_requested(db, "nobody")


def test_a_stopped_run_is_resumed_as_a_second_attempt(db: Database, run_id: str):
    claim_next(db)
    queue.request_stop(db, run_id)
    queue.transition(db, run_id, "stopped")
    queue.requeue(db, run_id)
    run = get(db, run_id)
    assert (run.status, run.stop_requested, run.ended_at) == ("queued", False, None)
    claim = claim_next(db)
    assert claim is not None
    assert claim.number == 2
    assert [attempt.number for attempt in reads.attempts(db, run_id)] == [1, 2]


def test_a_succeeded_run_is_not_resumed(db: Database, run_id: str):
    claim_next(db)
    queue.transition(db, run_id, "succeeded")
    with pytest.raises(TransitionError, match="final"):
        queue.requeue(db, run_id)


def test_an_archived_run_leaves_the_list_and_comes_back(db: Database, run_id: str):
    queue.request_stop(db, run_id)
    queue.archive(db, run_id)
    assert reads.list_runs(db) == []
    assert [run.run_id for run in reads.list_runs(db, include_archived=True)] == [run_id]
    queue.archive(db, run_id, False)
    assert [run.run_id for run in reads.list_runs(db)] == [run_id]


def test_a_waiting_run_is_not_archived(db: Database, run_id: str):
    with pytest.raises(StoreError, match="is queued; only a run that has ended"):
        queue.archive(db, run_id)


def test_a_config_of_another_version_is_refused_in_words(db: Database, run_id: str):
    from sqlalchemy import update

    from engine.store import schema

    with db.write() as connection:
        connection.execute(update(schema.run).values(config={"grpo": {"moon_phase": 3}}))
    with pytest.raises(ConfigError, match="moon_phase"):
        get(db, run_id).run_config()
