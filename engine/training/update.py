"""The update: one rollout batch in, changed weights out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.config import RunConfig
from engine.grpo.aggregation import aggregate, aggregation_totals, aggregation_weights
from engine.grpo.importance import ImportanceWeights, importance_weights
from engine.grpo.kl import kl_estimate
from engine.grpo.log_probs import TokenScores
from engine.grpo.loss import LOSSES
from engine.policy.gradient_checkpointing import checkpointing_layers
from engine.training.batch import Batch
from engine.training.forward import score_tokens
from engine.training.optimizer import OptimizerStep
from engine.training.passes import row_passes
from engine.training.scoring import Progress, entropy_rows, row_parts, score_rows, write_scores
from engine.training.seeds import derive_seed, shuffled
from engine.training.tally import Tally


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The weights of the terms beside the policy gradient, as they are in this step."""

    beta: float = 0.0
    entropy_bonus: float = 0.0


def update_policy(
    model: Any,
    optimizer: OptimizerStep,
    batch: Batch,
    config: RunConfig,
    *,
    step: int,
    progress: Progress,
    coefficients: Coefficients,
    stop: Callable[[], bool],
) -> bool:
    """Take the optimizer steps on `batch` that `progress` lacks, and return True; False if `stop()` came between.

    A stop counts from the next micro-batch on; the gradients of an unfinished optimizer step are dropped.
    With one optimizer step the policy is its own old policy: its log-probs serve as both, and no forward pass is
    spent on the old ones alone.

    Raises:
        NonFiniteUpdateError: after too many skipped updates in a row.
    """
    teaching, measured = _teaching(batch, coefficients), entropy_rows(config, step)
    if not config.scores_first:
        idle = torch.nonzero(~teaching.cpu())[:, 0]
        score_rows(progress.before, model, batch, idle, config, measured=measured)
    if not config.on_policy:
        measured = torch.zeros_like(measured)  # scored before, entropy and all
    for minibatch in list(_minibatches(config, step))[len(progress.tallies) :]:
        with checkpointing_layers(model):
            tally = _accumulate_gradients(
                model, batch, minibatch, config, progress.before, coefficients, teaching, measured, stop
            )
        if tally is None:
            optimizer.drop_gradients()
            return False
        tally.grad_norm, changed = optimizer.apply(tally.loss, step=step)
        tally.skipped = not changed
        progress.tallies.append(tally)
    return True


def importance_of(before: Tensor, batch: Batch, config: RunConfig) -> ImportanceWeights:
    """Return what corrects for the sampler, (B, T), from the log-probs of the policy before the update."""
    return importance_weights(
        before,
        batch.sampler_log_probs,
        batch.response_mask,
        correction=config.grpo.importance_correction,
        cap=config.grpo.importance_cap,
    )


def _minibatches(config: RunConfig, step: int) -> Iterator[Tensor]:
    """Yield the rows of each optimizer step: in order when there is one, else shuffled anew in each epoch."""
    for epoch in range(config.grpo.epochs_per_rollout_batch):
        order = torch.arange(config.rollout.rollout_batch_size)
        if not config.on_policy:
            order = shuffled(len(order), derive_seed(config.seed, "shuffle", config.grpo_step(step), epoch))
        yield from row_parts(order, config.train_batch_size)


def _accumulate_gradients(
    model: Any,
    batch: Batch,
    minibatch: Tensor,
    config: RunConfig,
    before: TokenScores,
    coefficients: Coefficients,
    teaching: Tensor,
    measured: Tensor,
    stop: Callable[[], bool],
) -> Tally | None:
    """Leave the gradient of one optimizer step in the model and return its tally; None if `stop()` came between.

    `teaching` and `measured` are bool (B,): the rows with a gradient, and those whose entropy is computed.

    A row that teaches nothing adds exactly 0 to loss and gradient, so it is left out of the passes; it still counts
    in the denominators.
    """
    totals = aggregation_totals(batch.loss_mask[minibatch])
    tally = Tally(tokens=totals.tokens)
    bonus = coefficients.entropy_bonus
    weights = torch.zeros_like(batch.sampler_log_probs)
    for micro in row_parts(minibatch, config.micro_batch_size):
        if stop():
            return None
        weights[micro] = aggregation_weights(
            batch.loss_mask[micro], config.grpo.aggregation, totals=totals, constant=config.aggregation_constant
        )
        for chosen in row_passes(model, micro[teaching[micro].cpu()], batch):
            rows = batch.rows(chosen)
            scores = score_tokens(
                model,
                rows,
                temperature=config.rollout.temperature,
                logits_memory=config.model.logits_memory,
                entropy_rows=None if bonus > 0 else measured[chosen].to(batch.device),
                entropy_graph=bonus > 0,
            )
            width = scores.log_probs.shape[1]
            if config.on_policy:
                write_scores(before, chosen, scores)
            old_log_probs, shares = before.log_probs[chosen, :width], weights[chosen, :width]
            token_loss = LOSSES[config.grpo.loss_type](
                scores.log_probs,
                rows.advantages,
                rows.loss_mask,
                old_log_probs=old_log_probs,
                ratio_level=config.grpo.ratio_level,
                clip_eps_low=config.grpo.clip_eps,
                clip_eps_high=config.clip_eps_high,
                dual_clip=config.grpo.dual_clip,
            )
            value = aggregate(token_loss.loss, shares * importance_of(old_log_probs, rows, config).weights)
            if coefficients.beta > 0:
                pull = kl_estimate(scores.log_probs, _reference(rows), config.kl.estimator, mask=rows.loss_mask)
                value = value + coefficients.beta * aggregate(pull, shares)
            if bonus > 0:
                value = value - bonus * aggregate(scores.entropy, shares)
            value.backward()
            tally.loss += float(value.detach())
            tally.add(token_loss, _divergence(scores.log_probs, rows), rows.loss_mask)
    return tally


def _teaching(batch: Batch, coefficients: Coefficients) -> Tensor:
    """Return the rows (B,) whose gradient is not exactly 0: under a KL term or an entropy bonus, all in the loss."""
    in_loss = batch.loss_mask.any(1)
    if coefficients.beta > 0 or coefficients.entropy_bonus > 0:
        return in_loss
    return in_loss & (batch.advantages != 0)


def _divergence(log_probs: Tensor, batch: Batch) -> Tensor | None:
    if batch.ref_log_probs is None:
        return None
    estimate: Tensor = kl_estimate(log_probs.detach(), batch.ref_log_probs, mask=batch.loss_mask)
    return estimate


def _reference(batch: Batch) -> Tensor:
    if batch.ref_log_probs is None:
        raise ValueError("beta is above 0 and the batch has no ref_log_probs; score it under the reference policy")
    return batch.ref_log_probs
