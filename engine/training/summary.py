"""What a step leaves behind: its metrics, and its groups as they are stored."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from engine.config import RunConfig
from engine.grpo.advantages import AdvantageStats
from engine.grpo.groups import group_kind
from engine.training.update import Update
from engine.types import CompletionRecord, FloatArray, Group, GroupKind, GroupRecord, Reward, StepRecord


def summarize_step(
    step: int,
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    advantages: AdvantageStats,
    update: Update,
    measured: Mapping[str, float],
    config: RunConfig,
) -> StepRecord:
    """Return the record of a step; `measured` are metrics that only the loop knows (times, memory, tokens)."""
    records = _group_records(groups, rewards, advantages, update) if config.logging.completions else ()
    metrics = rollout_metrics(groups, rewards, advantages) | update.metrics | dict(measured)
    return StepRecord(step=step, metrics=metrics, groups=records)


def rollout_metrics(
    groups: Sequence[Group], rewards: Sequence[Sequence[Reward]], advantages: AdvantageStats
) -> dict[str, float]:
    """Return the metrics of a rollout batch that the update has no part in."""
    completions = [completion for group in groups for completion in group.completions]
    judged = [reward for members in rewards for reward in members]
    graded = [reward for reward in judged if reward.value is not None]
    lengths = [len(completion.token_ids) for completion in completions]
    kinds = [_kind(members) for members in rewards]
    spread = [float(std) for std in advantages.std if not math.isnan(std)]
    metrics = {
        "rewards/not_graded": 1 - len(graded) / len(judged),
        "frac_reward_zero_std": float(advantages.flat.mean()),
        "completions/mean_length": fmean(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": fmean(completion.finish_reason == "length" for completion in completions),
        **{f"groups/{kind}": kinds.count(kind) / len(kinds) for kind in ("mixed", "all_correct", "all_wrong", "tied")},
    }
    if graded:
        metrics["reward"] = fmean(reward.value for reward in graded if reward.value is not None)
        metrics["reward_std"] = fmean(spread)
        metrics["reward_std/batch"] = float(advantages.batch_std)
        for part in graded[0].parts:
            metrics[f"rewards/{part}/mean"] = fmean(reward.parts[part] for reward in graded)
    return metrics


def _group_records(
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    advantages: AdvantageStats,
    update: Update,
) -> list[GroupRecord]:
    log_probs, entropy = update.before.log_probs.cpu().numpy(), update.before.entropy.cpu().numpy()
    records = []
    for place, (group, members) in enumerate(zip(groups, rewards, strict=True)):
        first = place * len(members)
        completions = tuple(
            _completion_record(group, member, reward, float(advantages.advantages[place, member]), scores)
            for member, reward in enumerate(members)
            for scores in [(log_probs[first + member], entropy[first + member])]
        )
        records.append(
            GroupRecord(
                problem=group.problem,
                prompt=group.prompt,
                prompt_token_ids=group.prompt_token_ids,
                kind=_kind(members),
                reward_mean=_number(advantages.mean[place]),
                reward_std=_number(advantages.std[place]),
                completions=completions,
            )
        )
    return records


def _completion_record(
    group: Group, member: int, reward: Reward, advantage: float, scores: tuple[FloatArray, FloatArray]
) -> CompletionRecord:
    completion = group.completions[member]
    length = len(completion.token_ids)
    return CompletionRecord(
        completion=completion,
        reward=reward,
        advantage=None if reward.value is None else advantage,
        policy_log_probs=scores[0][:length],
        entropy=scores[1][:length],
    )


def _kind(members: Sequence[Reward]) -> GroupKind:
    return group_kind([reward.value for reward in members], [reward.verdict == "correct" for reward in members])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
