"""A store with a few consistent runs in it, for tests of pages and commands."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from engine.config import RunConfig, parse_config
from engine.stats.pass_at_k import curve_points, pass_at_k
from engine.store import queue, writes
from engine.store.database import Database
from engine.types import (
    Completion,
    CompletionRecord,
    EvaluationAnswer,
    EvaluationRecord,
    GroupKind,
    GroupRecord,
    Problem,
    Reward,
    StepRecord,
)

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
STEPS = 20
GROUP_SIZE = 4
GROUPS = 4
EVALUATED = 8
HOSTILE_TEXT = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> $x^2$ **bold** [x](javascript:alert(3)) nul:\x00 half:\ud800"
)
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "loop.py", line 7, in train\n'
    "    update_policy(batch)\n"
    "engine.errors.NonFiniteUpdateError: 5 updates in a row had a non-finite loss; last good checkpoint: step 10\n"
)


def fill_demo_store(db: Database) -> list[str]:
    """Write three runs and return their ids: succeeded (20 steps), running (12 of 20), failed (15 of 20).

    Groups are stored at every step; the hostile text is completion 0 of group 0 at step 1 of the first run.
    """
    succeeded = _run(db, "quick-start", seed=0, learning_rate=3e-4, steps=STEPS, hostile=True)
    running = _run(db, "quick-start", seed=1, learning_rate=3e-4, steps=12)
    failed = _run(db, "high <b>rate</b> $x$", seed=0, learning_rate=3e-3, steps=15, diverges=True)
    return [succeeded, running, failed]


def fill_run_with_updates(db: Database, steps: int = 3, updates: int = 2) -> str:
    """Write a run of several optimizer steps per step and return its id.

    Every completion has a divergence of 0.5 nats, and the last group of each step was not trained on.
    """
    source = random.Random(0)
    run_id = queue.enqueue(db, small_config(), name="several updates")
    for step in range(1, steps + 1):
        record = step_record(step, 0.5, source)
        groups = [
            replace(
                group,
                completions=tuple(replace(member, kl=0.5) for member in group.completions),
                trained=index < GROUPS - 1,
            )
            for index, group in enumerate(record.groups)
        ]
        metrics = [{"loss": step + update / 10, "ratio/mean": 1.0} for update in range(1, updates + 1)]
        writes.write_step(db, run_id, replace(record, groups=groups, updates=metrics))
    return run_id


def fill_run_of_sft(db: Database, *, grpo_steps: int, sft_steps: int = 3) -> str:
    """Write a run of a few steps of SFT, with GRPO behind them or without, and return its id."""
    config = {**small_config().model_dump(), "sft": {"steps": sft_steps}}
    config["grpo"] = {**config["grpo"], "steps": grpo_steps}
    run_id = queue.enqueue(db, parse_config(config), name="taught")
    writes.write_evaluation(db, run_id, evaluation_record(0, 0.25))
    for step in range(1, sft_steps + 1):
        metrics = {
            "loss": 0.1 / step,
            "entropy": 0.2 / step,
            "grad_norm": 0.5,
            "learning_rate": 3e-4,
            "num_tokens": 1500.0 * step,
            "updates/optimizer_steps": 1.0,
            "updates/skipped": 0.0,
            "step_time": 0.2,
            "time/update": 0.2,
            "memory/rss": 6e8,
            "memory/update": 6e8,
        }
        writes.write_step(db, run_id, StepRecord(step, metrics))
    writes.write_evaluation(db, run_id, evaluation_record(sft_steps, 0.5))
    source = random.Random(0)
    for step in range(sft_steps + 1, sft_steps + grpo_steps + 1):
        writes.write_step(db, run_id, step_record(step, 0.5, source))
    return run_id


def small_config(seed: int = 0, learning_rate: float = 3e-4) -> RunConfig:
    """Return a config of 20 steps with 4 groups of 4, evaluated every 10 steps."""
    return parse_config(
        {
            "grpo.steps": STEPS,
            "rollout.rollout_batch_size": GROUPS * GROUP_SIZE,
            "rollout.group_size": GROUP_SIZE,
            "evaluation.every": 10,
            "evaluation.size": EVALUATED,
            "checkpoints.every": 10,
            "optimizer.learning_rate": learning_rate,
            "seed": seed,
        }
    )


def step_record(step: int, chance: float, source: random.Random, *, diverges: bool = False) -> StepRecord:
    """Return a step in which each completion is correct with the given chance; metrics fit the completions."""
    groups = [_group(step, index, chance, source) for index in range(GROUPS)]
    members = [member for group in groups for member in group.completions]
    rewards = [member.reward.value or 0.0 for member in members]
    lengths = [len(member.completion.token_ids) for member in members]
    kinds = [group.kind for group in groups]
    share = {kind: kinds.count(kind) / len(kinds) for kind in ("mixed", "all_correct", "all_wrong", "tied")}
    metrics = {
        "reward": float(np.mean(rewards)),
        "reward_std": float(np.mean([group.reward_std or 0.0 for group in groups])),
        "rewards/format/mean": 1.0,
        "rewards/answer/mean": float(np.mean(rewards)),
        "frac_reward_zero_std": 1.0 - share["mixed"],
        "entropy": 0.5 / step**0.5,
        "loss": math.nan if diverges and step >= 13 else 1e-4 * step,
        "grad_norm": math.inf if diverges and step >= 13 else 0.4,
        "learning_rate": 3e-4,
        "clip_ratio/low_mean": 0.0,
        "clip_ratio/high_mean": 0.0,
        "clip_ratio/region_mean": 0.0,
        "ratio/mean": 1.0,
        "completions/mean_length": float(np.mean(lengths)),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": 0.0,
        **{f"groups/{kind}": value for kind, value in share.items()},
        "sampling/sampling_logp_difference/mean": 1e-7,
        "sampling/sampling_logp_difference/max": 1e-6,
        "num_tokens": float(step * 16 * 30),
        "step_time": 0.5,
        "time/rollout": 0.3,
        "time/score": 0.01,
        "time/update": 0.15,
        "time/write": 0.002,
        "memory/rss": 6e8,
        "updates/skipped": 1.0 if diverges and step >= 13 else 0.0,
    }
    return StepRecord(step, metrics, groups)


def evaluation_record(step: int, accuracy: float, *, greedy: bool = False) -> EvaluationRecord:
    """Return an evaluation of 8 problems, of which the share `accuracy` is answered correctly."""
    n_correct = round(accuracy * EVALUATED)
    answers = [
        EvaluationAnswer(
            problem=Problem(f"validation-{index}", f"{index} + 5 = ?", str(index + 5), "validation"),
            sample=0,
            completion=_completion(str(index + 5 if index < n_correct else index)),
            reward=_reward(index < n_correct, str(index + 5 if index < n_correct else index)),
        )
        for index in range(EVALUATED)
    ]
    lengths = [len(answer.completion.token_ids) for answer in answers]
    return EvaluationRecord(
        step=step,
        split="validation",
        mode="greedy" if greedy else "sampled",
        temperature=0.0 if greedy else 1.0,
        metrics={"accuracy": n_correct / EVALUATED, "format": 1.0, "mean_length": float(np.mean(lengths))},
        answers=answers,
    )


def sampled_evaluation(step: int, right: Sequence[int], *, samples: int, hostile: bool = False) -> EvaluationRecord:
    """Return an evaluation with `samples` answers to each problem, the first `right` of them being correct.

    Of the others the last is unreadable, the one before it not graded, where there are so many. With `hostile` the
    last answer to the first problem has the hostile text.
    """
    answers = []
    for index, n_right in enumerate(right):
        problem = Problem(f"validation-{index}", f"{index} + 5 = ?", str(index + 5), "validation")
        for sample in range(samples):
            answer = str(index + 5) if sample < n_right else str(index)
            reward, completion = _reward(sample < n_right, answer), _completion(answer)
            if n_right <= sample == samples - 1:
                reward = Reward(0.0, {"format": 0.0, "answer": 0.0}, None, "unreadable", "no complete <answer> tag")
                completion = replace(completion, text=HOSTILE_TEXT if hostile and index == 0 else "no idea")
            elif n_right <= sample == samples - 2:
                reward = Reward(None, {}, answer, "not_graded", "stopped after 3 s")
            answers.append(EvaluationAnswer(problem, sample, completion, reward))
    shares = [count / samples for count in right]
    metrics = {
        "accuracy": float(np.mean(shares)),
        "format": 1.0,
        "mean_length": 15.5,
        "not_graded": sum(answer.reward.verdict == "not_graded" for answer in answers) / len(answers),
        **{f"pass@{k}": float(pass_at_k(samples, right, k).mean()) for k in curve_points(samples)},
        **({f"majority@{samples}": float(np.mean([count > samples / 2 for count in right]))} if samples > 1 else {}),
    }
    return EvaluationRecord(step, "validation", "sampled", 1.0, metrics, answers)


def _run(
    db: Database,
    name: str,
    *,
    seed: int,
    learning_rate: float,
    steps: int,
    hostile: bool = False,
    diverges: bool = False,
) -> str:
    source = random.Random(seed)
    start = datetime.now(UTC) - timedelta(seconds=30)
    run_id = queue.enqueue(db, small_config(seed, learning_rate), name=name, preset="quick-start")
    claim = queue.claim(db, run_id, worker_id="demo-worker", host="demo", now=start)
    assert claim is not None
    queue.attempt_started(
        db, claim.attempt_id, pid=1, pid_started_at=1.0, boot_id="demo", log_path=f"runs/{run_id}/logs/attempt-1.log"
    )
    queue.transition(db, run_id, "running")
    writes.write_event(db, run_id, "started", "attempt 1 started")
    for step in range(steps + 1):
        chance = 0.2 + 0.6 * step / STEPS if not diverges else max(0.0, 0.3 - 0.02 * step)
        if step:
            record = step_record(step, chance, source, diverges=diverges)
            writes.write_step(db, run_id, _with_hostile_text(record) if hostile and step == 1 else record)
        if step % 10 == 0:
            writes.write_evaluation(db, run_id, evaluation_record(step, chance))
            writes.write_evaluation(db, run_id, evaluation_record(step, min(1.0, chance + 0.125), greedy=True))
        if step and step % 10 == 0:
            writes.write_checkpoint(db, run_id, step, f"runs/{run_id}/checkpoints/step-{step:06d}", chance)
            writes.mark_best(db, run_id, step)
    queue.heartbeat(db, claim.attempt_id, datetime.now(UTC), seconds=steps * 0.5)
    if diverges:
        message = TRACEBACK.strip().splitlines()[-1]
        writes.write_event(db, run_id, "failed", message, step=steps, level="error")
        queue.attempt_ended(
            db, claim.attempt_id, outcome="failed", traceback=TRACEBACK, exit_code=1, seconds=steps * 0.5
        )
        queue.transition(db, run_id, "failed", error=message)
    elif steps == STEPS:
        queue.attempt_ended(db, claim.attempt_id, outcome="succeeded", exit_code=0, seconds=steps * 0.5)
        queue.transition(db, run_id, "succeeded")
    return run_id


def _group(step: int, index: int, chance: float, source: random.Random) -> GroupRecord:
    left, right = source.randint(1, 20), source.randint(1, 20)
    gold = left + right
    correct = [source.random() < chance for _ in range(GROUP_SIZE)]
    rewards = np.array(correct, dtype=np.float64)
    mean, std = float(rewards.mean()), float(rewards.std(ddof=1))
    advantages = (rewards - mean) / (std + 1e-6)
    kind: GroupKind = "all_correct" if all(correct) else "mixed" if any(correct) else "all_wrong"
    members = []
    for right_answer, advantage in zip(correct, advantages.tolist(), strict=True):
        answer = str(gold if right_answer else gold + source.randint(1, 9))
        completion = _completion(answer)
        members.append(
            CompletionRecord(
                completion=completion,
                reward=_reward(right_answer, answer),
                advantage=0.0 if kind != "mixed" else advantage,
                policy_log_probs=completion.sampler_log_probs,
                entropy=np.full(len(completion.token_ids), 0.25, np.float32),
            )
        )
    return GroupRecord(
        problem=Problem(f"train-{step}-{index}", f"{left} + {right} = ?", str(gold)),
        prompt=f"User: {left} + {right} = ?\nAssistant: <think>",
        prompt_token_ids=(1, 2, 3),
        kind=kind,
        reward_mean=mean,
        reward_std=std,
        completions=tuple(members),
    )


def _completion(answer: str) -> Completion:
    text = f"adding up </think> <answer> {answer} </answer>"
    ids = tuple(range(10, 20 + len(answer)))
    return Completion(ids, text, np.full(len(ids), -0.5, np.float32), "stop", "</answer>")


def _reward(correct: bool, answer: str) -> Reward:
    value = float(correct)
    parts = {"format": 1.0, "answer": value}
    return Reward(value, parts, answer, "correct" if correct else "wrong", "" if correct else "differs from the gold")


def _with_hostile_text(record: StepRecord) -> StepRecord:
    first = record.groups[0]
    member = first.completions[0]
    completion = Completion(
        member.completion.token_ids, HOSTILE_TEXT, member.completion.sampler_log_probs, "length", None
    )
    hostile = CompletionRecord(completion, member.reward, member.advantage, member.policy_log_probs, member.entropy)
    group = GroupRecord(
        first.problem,
        first.prompt,
        first.prompt_token_ids,
        first.kind,
        first.reward_mean,
        first.reward_std,
        (hostile, *first.completions[1:]),
    )
    return StepRecord(record.step, record.metrics, [group, *record.groups[1:]])
