"""The update: one rollout batch in, changed weights out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from engine.config import RunConfig
from engine.grpo.aggregation import aggregate, aggregation_totals, aggregation_weights
from engine.grpo.diagnostics import ratio_spread, sampling_logp_difference
from engine.grpo.importance import ImportanceWeights, importance_weights
from engine.grpo.log_probs import TokenScores
from engine.grpo.loss import LOSSES, TokenLoss
from engine.grpo.masking import masked_mean
from engine.training.batch import Batch
from engine.training.forward import score_tokens
from engine.training.optimizer import OptimizerStep
from engine.training.seeds import derive_seed


@dataclass(frozen=True, slots=True)
class Update:
    """What an update reports: metrics, and the token scores of the policy before it, (B, T)."""

    metrics: dict[str, float]
    before: TokenScores


@dataclass(slots=True)
class _Tally:
    """What the optimizer steps on one rollout batch add up to."""

    losses: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)
    skipped: int = 0
    tokens: int = 0
    clipped_low: int = 0
    clipped_high: int = 0
    clipped_dual: int = 0
    ratio_tokens: int = 0
    ratio_sum: float = 0.0

    def add(self, loss: TokenLoss, mask: Tensor) -> None:
        self.clipped_low += int((loss.clipped_low & mask).sum())
        self.clipped_high += int((loss.clipped_high & mask).sum())
        self.clipped_dual += int((loss.clipped_dual & mask).sum())
        self.ratio_tokens += int(mask.sum())
        self.ratio_sum += float(loss.ratio[mask].double().sum())

    def metrics(self, *, dual_clip: bool) -> dict[str, float]:
        tokens = max(self.tokens, 1)
        metrics = {
            "loss": sum(self.losses) / len(self.losses),
            "grad_norm": sum(self.grad_norms) / len(self.grad_norms),
            "clip_ratio/low_mean": self.clipped_low / tokens,
            "clip_ratio/high_mean": self.clipped_high / tokens,
            "clip_ratio/region_mean": (self.clipped_low + self.clipped_high) / tokens,
            "updates/optimizer_steps": float(len(self.losses)),
            "updates/skipped": float(self.skipped),
        }
        if dual_clip:
            metrics["clip_ratio/dual_mean"] = self.clipped_dual / tokens
        if self.ratio_tokens:
            metrics["ratio/mean"] = self.ratio_sum / self.ratio_tokens
        return metrics


def update_policy(model: Any, optimizer: OptimizerStep, batch: Batch, config: RunConfig, *, step: int) -> Update:
    """Take `config.optimizer_steps_per_step` optimizer steps on `batch`.

    With one optimizer step the policy is its own old policy: its log-probs serve as both, and no forward
    pass is spent on the old ones alone.

    Raises:
        NonFiniteUpdateError: after too many skipped updates in a row.
    """
    before = TokenScores(torch.zeros_like(batch.sampler_log_probs), torch.zeros_like(batch.sampler_log_probs))
    untouched = torch.arange(len(batch)) if not config.on_policy else torch.nonzero(batch.advantages.cpu() == 0)[:, 0]
    _score_into(before, model, batch, untouched, config)
    tally = _Tally()
    for minibatch in _minibatches(config, step):
        loss = _accumulate_gradients(model, batch, minibatch, config, before, tally)
        norm, changed = optimizer.apply(loss, step=step)
        tally.losses.append(loss)
        tally.grad_norms.append(norm)
        tally.skipped += not changed
    difference = sampling_logp_difference(batch.sampler_log_probs, before.log_probs, batch.response_mask)
    importance = _importance(before.log_probs, batch, config)
    ratio = ratio_spread(importance.ratio, batch.response_mask)
    metrics = tally.metrics(dual_clip=config.grpo.dual_clip is not None) | {
        "entropy": float(masked_mean(before.entropy, batch.response_mask)),
        "sampling/sampling_logp_difference/mean": difference.mean,
        "sampling/sampling_logp_difference/max": difference.max,
        "sampling/importance_sampling_ratio/mean": ratio.mean,
        "sampling/importance_sampling_ratio/min": ratio.min,
        "sampling/importance_sampling_ratio/max": ratio.max,
        "sampling/importance_beyond_cap": float(masked_mean(importance.beyond_cap, batch.response_mask)),
    }
    return Update(metrics, before)


def _minibatches(config: RunConfig, step: int) -> Iterator[Tensor]:
    """Yield the rows of each optimizer step: in order when there is one, else shuffled anew in each epoch."""
    for epoch in range(config.grpo.epochs_per_rollout_batch):
        order = torch.arange(config.rollout.rollout_batch_size)
        if not config.on_policy:
            shuffle = torch.Generator().manual_seed(derive_seed(config.seed, "shuffle", step, epoch))
            order = torch.randperm(len(order), generator=shuffle)
        yield from _parts(order, config.train_batch_size)


def _accumulate_gradients(
    model: Any, batch: Batch, minibatch: Tensor, config: RunConfig, before: TokenScores, tally: _Tally
) -> float:
    """Leave the gradient of one optimizer step in the model and return its loss.

    A row whose advantage is exactly 0 adds exactly 0 to loss and gradient, so it is left out of the passes;
    it still counts in the denominators.
    """
    totals = aggregation_totals(batch.loss_mask[minibatch])
    tally.tokens += totals.tokens
    loss = 0.0
    for micro in _parts(minibatch, config.micro_batch_size):
        weights = aggregation_weights(
            batch.loss_mask[micro], config.grpo.aggregation, totals=totals, constant=config.aggregation_constant
        )
        teaches = batch.advantages[micro] != 0
        if not bool(teaches.any()):
            continue
        chosen = micro[teaches.cpu()]
        rows = batch.rows(chosen)
        scores = score_tokens(model, rows, temperature=config.rollout.temperature)
        width = scores.log_probs.shape[1]
        if config.on_policy:
            _keep(before, chosen, scores)
        token_loss = LOSSES[config.grpo.loss_type](
            scores.log_probs,
            rows.advantages,
            rows.loss_mask,
            old_log_probs=before.log_probs[chosen, :width],
            ratio_level=config.grpo.ratio_level,
            clip_eps_low=config.grpo.clip_eps,
            clip_eps_high=config.clip_eps_high,
            dual_clip=config.grpo.dual_clip,
        )
        correction = _importance(before.log_probs[chosen, :width], rows, config)
        value = aggregate(token_loss.loss, weights[teaches, :width] * correction.weights)
        value.backward()
        loss += float(value.detach())
        tally.add(token_loss, rows.loss_mask)
    return loss


def _importance(before: Tensor, batch: Batch, config: RunConfig) -> ImportanceWeights:
    return importance_weights(
        before,
        batch.sampler_log_probs,
        batch.response_mask,
        correction=config.grpo.importance_correction,
        cap=config.grpo.importance_cap,
    )


@torch.no_grad()
def _score_into(before: TokenScores, model: Any, batch: Batch, rows: Tensor, config: RunConfig) -> None:
    for micro in _parts(rows, config.micro_batch_size):
        _keep(before, micro, score_tokens(model, batch.rows(micro), temperature=config.rollout.temperature))


def _keep(before: TokenScores, rows: Tensor, scores: TokenScores) -> None:
    width = scores.log_probs.shape[1]
    before.log_probs[rows, :width] = scores.log_probs.detach()
    before.entropy[rows, :width] = scores.entropy


def _parts(rows: Tensor, size: int) -> list[Tensor]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
