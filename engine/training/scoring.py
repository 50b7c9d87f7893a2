"""Scores of a rollout batch before its update: under the policy, under the reference, and how far they are apart."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from engine.config import RunConfig
from engine.grpo.kl import kl_estimate
from engine.grpo.log_probs import TokenScores
from engine.policy.reference import ReferencePolicy
from engine.training.batch import Batch
from engine.training.forward import score_tokens
from engine.training.passes import row_passes
from engine.training.seeds import derive_seed, shuffled
from engine.training.tally import Tally
from engine.types import FloatArray


@dataclass(slots=True)
class Progress:
    """How far the update on one rollout batch has come: a stop inside it keeps this, and a resume goes on from it."""

    before: TokenScores
    """(B, T) scores of the policy before the update. With one optimizer step its own pass fills them in."""
    tallies: list[Tally] = field(default_factory=list)
    """One for each optimizer step taken."""


def begin_update(model: Any, batch: Batch, config: RunConfig, *, step: int) -> Progress:
    """Return the progress of an update on `batch` that has not begun; all rows are scored where it needs them first."""
    progress = Progress(_no_scores(batch))
    if config.scores_first:
        everything = torch.arange(len(batch))
        score_rows(progress.before, model, batch, everything, config, measured=entropy_rows(config, step))
    return progress


@torch.no_grad()
def score_rows(
    scores: TokenScores, model: Any, batch: Batch, rows: Tensor, config: RunConfig, *, measured: Tensor
) -> None:
    """Score the `rows` (int64) of `batch` with the model as it is, and write the result into `scores` (B, T).

    `measured` is a bool (B,): the rows whose entropy is computed.
    """
    measured = measured.to(batch.device)
    for micro in row_parts(rows, config.micro_batch_size):
        for chosen in row_passes(model, micro, batch):
            part = score_tokens(
                model,
                batch.rows(chosen),
                temperature=config.rollout.temperature,
                logits_memory=config.model.logits_memory,
                entropy_rows=measured[chosen],
            )
            write_scores(scores, chosen, part)


def entropy_rows(config: RunConfig, step: int) -> Tensor:
    """Return which of the B rows of `step` have their entropy computed, bool (B,)."""
    seed = derive_seed(config.seed, "entropy", config.grpo_step(step))
    return some_rows(config.rollout.rollout_batch_size, config.logging.entropy_share, seed=seed)


def some_rows(count: int, share: float, *, seed: int) -> Tensor:
    """Return a `share` of `count` rows, drawn with `seed`, one at least unless it is 0: bool (count,)."""
    if share in (0.0, 1.0):
        return torch.full((count,), share == 1.0)
    return shuffled(count, seed) < max(1, round(share * count))


def score_reference(model: Any, reference: ReferencePolicy | None, batch: Batch, config: RunConfig) -> Batch:
    """Return the batch with the log-probs of the reference policy, or as it is where there is none."""
    if reference is None:
        return batch
    scores = _no_scores(batch)
    with reference.in_place():
        nowhere = torch.zeros(len(batch), dtype=torch.bool)
        score_rows(scores, model, batch, torch.arange(len(batch)), config, measured=nowhere)
    return replace(batch, ref_log_probs=scores.log_probs)


def completion_divergence(batch: Batch, before: TokenScores, config: RunConfig) -> FloatArray | None:
    """Return the run's estimate of KL(policy || reference) summed over each completion, (B,) in nats.

    None where there is no reference policy.
    """
    if batch.ref_log_probs is None:
        return None
    estimate = kl_estimate(before.log_probs, batch.ref_log_probs, config.kl.estimator, mask=batch.response_mask)
    divergence: FloatArray = estimate.sum(1).cpu().numpy()
    return divergence


def write_scores(scores: TokenScores, rows: Tensor, part: TokenScores) -> None:
    """Write the scores `part` of the rows `rows` into `scores` (B, T)."""
    width = part.log_probs.shape[1]
    scores.log_probs[rows, :width] = part.log_probs.detach()
    scores.entropy[rows, :width] = part.entropy.detach()


def row_parts(rows: Tensor, size: int) -> list[Tensor]:
    """Return `rows` in parts of at most `size`."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _no_scores(batch: Batch) -> TokenScores:
    zeros = torch.zeros_like(batch.sampler_log_probs)
    return TokenScores(zeros, torch.full_like(zeros, torch.nan))
