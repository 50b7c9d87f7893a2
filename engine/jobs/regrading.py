"""Grades stored answers again: `python -m engine.jobs.regrading REGRADE_ID` carries out what a page has begun."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from engine.config.prompt_forms import reward_name
from engine.errors import ConfigError, GrpoLabError, RewardError, StoreError
from engine.jobs.heartbeat import Heartbeat
from engine.jobs.run_log import say
from engine.jobs.stop_flag import StopFlag
from engine.rewards.choice import reward_named
from engine.rewards.identity import reward_identity
from engine.rewards.regrading import judge_again, stores_bare_values
from engine.rewards.tally import Tally
from engine.rewards.verifiers import RewardFn
from engine.store import reads, regrades
from engine.store.database import Database, open_database
from engine.store.records import Covers, Flip, Regrade, Run, StoredAnswer
from engine.store.stored_answers import AT_ONCE, stored_answers
from engine.types import Completion, Group

Progress = Callable[[Regrade], None]
_NO_LOG_PROBS = np.zeros(0, np.float32)
_NICENESS = 10  # a run that trains on the same cores goes first


def regrade(
    db: Database,
    run_id: str,
    reward: str,
    *,
    covers: Covers = "completions",
    step_from: int | None = None,
    step_to: int | None = None,
    limit: int | None = None,
    progress: Progress = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Regrade:
    """Judge the stored answers of a run by a reward, store what differs, and return how it ended.

    Whatever the judging raises ends as a failed regrading with its reason. `limit` draws so many answers, evenly
    spread over the steps; `progress` hears of every chunk, `stop` is asked before each.

    Raises:
        StoreError: if there is no such run, or nothing of it is stored for these steps.
        RewardError: if there is no such reward.
    """
    regrade_id = regrades.begin_regrade(
        db,
        run_id,
        reward=reward,
        version=reward_identity(reward).version,
        covers=covers,
        step_from=step_from,
        step_to=step_to,
        sample=limit,
    )
    return carry_out(db, regrade_id, progress=progress, stop=stop)


def carry_out(
    db: Database,
    regrade_id: int,
    *,
    progress: Progress = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    at_once: int = AT_ONCE,
) -> Regrade:
    """Do the work of a regrading that has begun, and return how it ended.

    Raises:
        StoreError: if there is no such regrading, or its run has discarded what it covers meanwhile.
    """
    begun = reads.get_regrade(db, regrade_id)
    heartbeat = Heartbeat(lambda now: regrades.beat(db, regrade_id, now), complain=say).start()
    try:
        whole = _judge_all(db, begun, progress, stop, at_once)
    except GrpoLabError as error:
        regrades.end_regrade(db, regrade_id, "failed", str(error))
    except Exception as error:  # whatever it is, it is this regrading's end, and belongs into its row
        traceback.print_exc()
        regrades.end_regrade(db, regrade_id, "failed", f"{type(error).__name__}: {error}")
    else:
        regrades.end_regrade(db, regrade_id, "finished" if whole else "stopped")
    finally:
        heartbeat.close()
    return reads.get_regrade(db, regrade_id)


def reward_of(run: Run) -> str:
    """Return the name of the reward that a run is graded by.

    Raises:
        RewardError: if its config is of another version and does not tell.
    """
    try:
        config = run.run_config()
    except ConfigError as error:
        raise RewardError(
            f"run={run.run_id}: its config is of another version and does not tell its reward ({error}); name one"
        ) from error
    name = reward_name(config.prompt, config.task)
    assert name is not None  # held by a rule of the config
    return name


def _judge_all(db: Database, begun: Regrade, progress: Progress, stop: Callable[[], bool], at_once: int) -> bool:
    """Judge chunk by chunk; return False where a stop came first."""
    reward_fn = reward_named(begun.reward)
    regrades.note_version(db, begun.regrade_id, reward_identity(begun.reward, reward_fn).version)
    run = reads.get_run(db, begun.run_id)
    if run is None:
        raise StoreError(f"run={begun.run_id} does not exist; `grpo-lab ls` lists the runs")
    values = begun.covers == "evaluations" or _stores_bare_values(run)
    tally = Tally()
    source = stored_answers(
        db,
        begun.run_id,
        begun.covers,
        step_from=begun.step_from,
        step_to=begun.step_to,
        sample=begun.sample,
        at_once=at_once,
    )
    for answers in source:
        if stop() or regrades.regrade_stop_requested(db, begun.regrade_id):
            return False
        place = tally.flips
        flips = _flips(answers, reward_fn, tally, values=values)
        regrades.note_progress(
            db, begun.regrade_id, flips, place=place, done=tally.total, counts=tally.document() | {"values": values}
        )
        progress(reads.get_regrade(db, begun.regrade_id))
    return True


def _stores_bare_values(run: Run) -> bool:
    try:
        return stores_bare_values(run.run_config())
    except ConfigError:  # of another version: what its values hold is not known
        return False


def _flips(answers: Sequence[StoredAnswer], reward_fn: RewardFn, tally: Tally, *, values: bool) -> list[Flip]:
    judged = judge_again(_groups(answers), reward_fn)
    return [
        Flip(answer, each.reward, each.seconds)
        for answer, each in zip(answers, judged, strict=True)
        if tally.add(answer.value if values else None, answer.verdict, each.reward, compare_values=values)
    ]


def _groups(answers: Sequence[StoredAnswer]) -> list[Group]:
    """Return the answers as groups of one problem each, in their order; a reward sees text and problem alone."""
    return [
        Group(
            problem,
            problem.question,
            (),
            tuple(Completion((), each.text, _NO_LOG_PROBS, each.finish_reason) for each in members),
        )
        for problem, members in groupby(answers, key=lambda each: each.problem)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one regrading; return 0 if it finished or was stopped, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m engine.jobs.regrading", description="The process of a regrading.")
    parser.add_argument("regrade_id", type=int)
    given = parser.parse_args(arguments)
    stop = StopFlag()
    stop.raise_on_signals()
    os.nice(_NICENESS)
    db = open_database(migrate=False)
    try:
        ended = carry_out(db, given.regrade_id, stop=stop)
    finally:
        db.close()
    if ended.status == "failed":
        say(f"regrading {ended.regrade_id} failed: {ended.error}")
    return 1 if ended.status == "failed" else 0


if __name__ == "__main__":
    sys.exit(main())
