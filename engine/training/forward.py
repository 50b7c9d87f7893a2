"""One forward pass of the policy over a batch: log-prob and entropy of every completion token."""

from typing import Any

import torch

from engine.grpo.log_probs import TokenScores, token_scores
from engine.training.batch import Batch


def score_tokens(model: Any, batch: Batch, *, temperature: float) -> TokenScores:
    """Return log-probs at the sampling temperature and entropies of the completion tokens, (B, T) float32.

    The logits at position t score token t + 1, so a completion behind n prompt tokens is scored by the
    positions from n − 1 on; only these go through the output layer. Masked places hold unused numbers.
    """
    first = int(batch.prompt_lengths.min()) - 1
    kept = torch.arange(first, batch.input_ids.shape[1] - 1, device=batch.input_ids.device)
    logits = model(input_ids=batch.input_ids, use_cache=False, logits_to_keep=kept).logits
    places = torch.arange(batch.response_ids.shape[1], device=logits.device)
    places = (batch.prompt_lengths.unsqueeze(1) - 1 - first + places).clamp(max=logits.shape[1] - 1)
    logits = torch.gather(logits, 1, places.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))
    return token_scores(logits, batch.response_ids, temperature)
