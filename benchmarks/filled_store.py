"""A store as a few long runs leave it, filled through the store's own writes: what benchmarks/pages.py reads."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from benchmarks.entry import say
from engine.config import RunConfig, parse_config
from engine.store import queue, writes
from engine.store.database import Database
from engine.store.recorder import Recorder
from engine.types import Completion, CompletionRecord, GroupRecord, Problem, Reward, StepRecord

# What a run of the quick start logs at every step.
LOGGED = (
    *("reward", "reward_std", "reward_std/batch", "rewards/answer/mean", "rewards/format/mean", "rewards/unreadable"),
    *("frac_reward_zero_std", "groups/mixed", "groups/all_correct", "groups/all_wrong", "groups/tied", "entropy"),
    *("loss", "grad_norm", "learning_rate", "ratio/mean", "clip_ratio/low_mean", "clip_ratio/high_mean"),
    *("clip_ratio/region_mean", "completions/mean_length", "completions/min_length", "completions/max_length"),
    *("completions/clipped_ratio", "num_tokens", "updates/optimizer_steps", "updates/skipped", "step_time"),
    *("time/rollout", "time/score", "time/update", "time/write", "memory/rss", "memory/rollout", "memory/update"),
)
GROUP_SIZE = 8
TOKENS = 24


class Size(NamedTuple):
    """Runs with curves of so many steps, and one run with groups at each of its steps."""

    runs: int = 6
    steps: int = 2_000
    steps_with_groups: int = 200
    groups: int = 32


class Filled(NamedTuple):
    """The ids of the runs with curves, and of the one with groups."""

    curves: list[str]
    groups: str


def fill(db: Database, size: Size) -> Filled:
    """Write the runs and return their ids."""
    curves = []
    for number in range(size.runs):
        curves.append(_run(db, f"curves {number}", number, size.steps, size, lambda *_: ()))
        say(f"pages: {number + 1} of {size.runs} runs written, {size.steps} steps each")
    groups = _run(db, "groups", 0, size.steps_with_groups, size, lambda step, source: _groups(step, size, source))
    say(f"pages: groups of {size.steps_with_groups} steps written")
    return Filled(curves, groups)


def _run(
    db: Database,
    name: str,
    seed: int,
    steps: int,
    size: Size,
    groups: Callable[[int, random.Random], tuple[GroupRecord, ...]],
) -> str:
    source = random.Random(seed)
    run_id = queue.enqueue(db, _config(seed, steps, size), name=name)
    claim = queue.claim(db, run_id, worker_id="benchmark", host="benchmark", now=datetime.now(UTC))
    assert claim is not None
    queue.transition(db, run_id, "running")
    # A recorder leaves out completions when it is behind: room for all of them.
    recorder = Recorder(db, run_id, attempt_id=claim.attempt_id, capacity=steps)
    for step in range(1, steps + 1):
        recorder.step(StepRecord(step, {name: source.random() for name in LOGGED}, groups(step, source)))
    if not recorder.close() or recorder.lost:
        raise RuntimeError(f"the store did not take everything of run {name!r}: {recorder.lost}")
    writes.write_event(db, run_id, "started", "written by a benchmark")
    queue.attempt_ended(db, claim.attempt_id, outcome="succeeded", seconds=float(steps))
    queue.transition(db, run_id, "succeeded")
    return run_id


def _config(seed: int, steps: int, size: Size) -> RunConfig:
    return parse_config(
        {
            "seed": seed,
            "grpo.steps": steps,
            "rollout.rollout_batch_size": size.groups * GROUP_SIZE,
            "rollout.group_size": GROUP_SIZE,
        }
    )


def _groups(step: int, size: Size, source: random.Random) -> tuple[GroupRecord, ...]:
    return tuple(_group(f"{step}-{index}", source) for index in range(size.groups))


def _group(key: str, source: random.Random) -> GroupRecord:
    right = source.randint(1, GROUP_SIZE - 1)
    values = np.array([1.0] * right + [0.0] * (GROUP_SIZE - right))
    mean, std = float(values.mean()), float(values.std(ddof=1))
    members = tuple(_member(value, (value - mean) / std, source) for value in values.tolist())
    problem = Problem(f"benchmark-{key}", f"What is {source.randint(1, 20)} + {source.randint(1, 20)}?", "16")
    return GroupRecord(problem, f"User: {problem.question}", tuple(range(20)), "mixed", mean, std, members)


def _member(value: float, advantage: float, source: random.Random) -> CompletionRecord:
    log_probs = np.full(TOKENS, -0.5, np.float32)
    ids = tuple(source.randrange(250) for _ in range(TOKENS))
    text = f"adding up, {source.random():.4f} </think> <answer> {16 if value else 17} </answer>"
    reward = Reward(
        value, {"format": 1.0, "answer": value}, "16" if value else "17", "correct" if value else "wrong", "by the tag"
    )
    completion = Completion(ids, text, log_probs, "stop", "</answer>")
    return CompletionRecord(completion, reward, advantage, log_probs, -log_probs)
