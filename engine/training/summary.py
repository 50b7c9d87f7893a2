"""What a step leaves behind: its metrics, and its groups as they are stored."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

import numpy as np
import torch

from engine.config import RunConfig
from engine.grpo.advantages import AdvantageStats
from engine.grpo.diagnostics import Spread, ratio_spread, sampling_logp_difference
from engine.grpo.groups import group_kind
from engine.grpo.importance import importance_weights
from engine.grpo.kl import kl_estimate
from engine.grpo.masking import masked_mean
from engine.training.batch import Batch
from engine.training.groups import Drawn, RewardedGroup, assign_advantages
from engine.training.scoring import Progress, completion_divergence
from engine.training.tally import step_metrics
from engine.training.update import Coefficients, importance_of
from engine.types import CompletionRecord, Group, GroupKind, GroupRecord, Reward, StepRecord


def summarize_step(
    step: int,
    drawn: Drawn,
    advantages: AdvantageStats,
    batch: Batch,
    progress: Progress,
    measured: Mapping[str, float],
    config: RunConfig,
) -> StepRecord:
    """Return the record of a step; `measured` are the metrics that the loop has already (update, times, memory)."""
    groups: list[GroupRecord] = []
    if config.logging.completions:
        groups = [*_trained_records(drawn, advantages, batch, progress, config), *_left_out_records(drawn, config)]
    metrics = rollout_metrics(drawn.groups, drawn.rewards, advantages) | draw_metrics(drawn, config) | dict(measured)
    dual = config.grpo.dual_clip is not None
    updates = [tally.metrics(dual_clip=dual) for tally in progress.tallies] if len(progress.tallies) > 1 else []
    return StepRecord(step=step, metrics=metrics, groups=groups, updates=updates)


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
        "rewards/unreadable": fmean(reward.verdict == "unreadable" for reward in judged),
        "frac_reward_zero_std": float(advantages.flat.mean()),
        "completions/mean_length": fmean(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": fmean(completion.finish_reason == "length" for completion in completions),
        **{f"groups/{kind}": kinds.count(kind) / len(kinds) for kind in ("mixed", "all_correct", "all_wrong", "tied")},
    }
    if graded:
        metrics["reward"] = fmean(reward.value for reward in graded if reward.value is not None)
        if spread:  # none where every completion was cut off and excluded
            metrics["reward_std"] = fmean(spread)
            metrics["reward_std/batch"] = float(advantages.batch_std)
        for part in dict.fromkeys(part for reward in graded for part in reward.parts):
            values = [reward.parts[part] for reward in graded if part in reward.parts]
            metrics[f"rewards/{part}/mean"] = fmean(values)
            metrics[f"rewards/{part}/std"] = pstdev(values)
    return metrics


def draw_metrics(drawn: Drawn, config: RunConfig) -> dict[str, float]:
    """Return what dynamic sampling cost, and the share of completions left out of the loss for their length."""
    metrics: dict[str, float] = {}
    if config.truncation.completions != "keep":
        reasons = [completion.finish_reason for group in drawn.groups for completion in group.completions]
        metrics["completions/masked_ratio"] = reasons.count("length") / len(reasons)
    if config.rollout.dynamic_sampling:
        everything = (*drawn.trained, *drawn.left_out)
        values = [reward.value for each in everything for reward in each.rewards if reward.value is not None]
        metrics["dynamic_sampling/draws"] = float(drawn.draws)
        metrics["dynamic_sampling/discarded"] = len(drawn.left_out) / len(everything)
        if values:
            metrics["dynamic_sampling/reward"] = fmean(values)
    return metrics


def update_metrics(batch: Batch, progress: Progress, config: RunConfig, used: Coefficients) -> dict[str, float]:
    """Return the metrics of an update that is done, and of the policy before it."""
    before = progress.before
    difference = sampling_logp_difference(batch.sampler_log_probs, before.log_probs, batch.response_mask)
    metrics = step_metrics(progress.tallies, dual_clip=config.grpo.dual_clip is not None) | {
        "sampling/sampling_logp_difference/mean": difference.mean,
        "sampling/sampling_logp_difference/max": difference.max,
    }
    metrics |= _importance_metrics(batch, progress, config)
    measured = batch.response_mask & ~torch.isnan(before.entropy)
    if bool(measured.any()):
        metrics["entropy"] = float(masked_mean(before.entropy, measured))
    if config.entropy.bonus > 0 or config.entropy.target is not None:
        metrics["entropy/bonus"] = used.entropy_bonus
    if batch.ref_log_probs is not None:
        divergence = kl_estimate(before.log_probs, batch.ref_log_probs, mask=batch.response_mask)
        metrics["kl"] = float(masked_mean(divergence, batch.response_mask))
    return metrics


def _importance_metrics(batch: Batch, progress: Progress, config: RunConfig) -> dict[str, float]:
    """Return the raw ratio of policy to sampler per token, and what a correction makes of it.

    That is per token, or of a sequence correction per sequence, where all tokens of a row have its one weight.
    """
    before, correction, cap = progress.before.log_probs, config.grpo.importance_correction, config.grpo.importance_cap
    raw = importance_weights(before, batch.sampler_log_probs, batch.response_mask, correction="none", cap=cap).ratio
    corrected = importance_of(before, batch, config)
    # Every completion has a first token.
    places = slice(1) if correction in ("sequence_truncate", "sequence_mask") else slice(None)
    mask = batch.response_mask[:, places]
    metrics = _spread_metrics("importance_sampling_ratio", ratio_spread(raw, batch.response_mask))
    metrics["sampling/importance_beyond_cap"] = float(masked_mean(corrected.beyond_cap[:, places], mask))
    if correction == "none":
        return metrics
    return metrics | _spread_metrics("importance_weight", ratio_spread(corrected.weights[:, places], mask))


def _spread_metrics(name: str, spread: Spread) -> dict[str, float]:
    return {f"sampling/{name}/{key}": getattr(spread, key) for key in ("mean", "min", "max")}


def _trained_records(
    drawn: Drawn, advantages: AdvantageStats, batch: Batch, progress: Progress, config: RunConfig
) -> list[GroupRecord]:
    log_probs, entropy = progress.before.log_probs.cpu().numpy(), progress.before.entropy.cpu().numpy()
    divergence = completion_divergence(batch, progress.before, config)
    records = []
    for place, each in enumerate(drawn.trained):
        first = place * len(each.rewards)
        completions = []
        for member, (completion, reward) in enumerate(zip(each.group.completions, each.rewards, strict=True)):
            row, length = first + member, len(completion.token_ids)
            measured = entropy[row, :length]
            completions.append(
                CompletionRecord(
                    completion=completion,
                    reward=reward,
                    advantage=None if reward.value is None else float(advantages.advantages[place, member]),
                    policy_log_probs=log_probs[row, :length],
                    entropy=None if np.isnan(measured).any() else measured,
                    kl=None if divergence is None else float(divergence[row]),
                )
            )
        records.append(_group_record(each, completions, advantages.mean[place], advantages.std[place], trained=True))
    return records


def _left_out_records(drawn: Drawn, config: RunConfig) -> list[GroupRecord]:
    """Groups that taught nothing: their completions have no advantage and were never scored."""
    if not drawn.left_out:
        return []
    left_out = drawn.left_out
    stats = assign_advantages([each.group for each in left_out], [each.rewards for each in left_out], config)
    return [
        _group_record(
            each,
            [
                CompletionRecord(*pair, advantage=None)
                for pair in zip(each.group.completions, each.rewards, strict=True)
            ],
            stats.mean[place],
            stats.std[place],
            trained=False,
        )
        for place, each in enumerate(left_out)
    ]


def _group_record(
    each: RewardedGroup, completions: Sequence[CompletionRecord], mean: float, std: float, *, trained: bool
) -> GroupRecord:
    return GroupRecord(
        problem=each.group.problem,
        prompt=each.group.prompt,
        prompt_token_ids=each.group.prompt_token_ids,
        kind=_kind(each.rewards),
        reward_mean=_number(mean),
        reward_std=_number(std),
        completions=tuple(completions),
        trained=trained,
    )


def _kind(members: Sequence[Reward]) -> GroupKind:
    return group_kind([reward.value for reward in members], [reward.verdict == "correct" for reward in members])


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
