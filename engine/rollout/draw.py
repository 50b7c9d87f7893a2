"""Drawing one token per row from logits."""

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 512


class Draw(NamedTuple):
    """Drawn tokens (rows,) and their float32 log-probs (rows,) under the softmax of the logits, bans left aside."""

    token_ids: Tensor
    log_probs: Tensor


def draw_tokens(
    logits: Tensor, uniforms: Tensor, *, temperature: float, greedy: bool = False, banned: Tensor | None = None
) -> Draw:
    """Return one token per row of `logits` (rows, V), chosen by `uniforms` (rows,) in [0, 1).

    One number per row decides, so what a row gets does not depend on which other rows are still there.
    `banned` token ids are never drawn.
    """
    scaled = logits.float()
    if temperature != 1:
        scaled = scaled / temperature
    allowed = scaled if banned is None else scaled.index_fill(1, banned, -torch.inf)
    chosen = allowed.argmax(-1) if greedy else _inverse_cdf(torch.softmax(allowed, -1), uniforms)
    log_probs = scaled.gather(1, chosen.unsqueeze(1)).squeeze(1) - torch.logsumexp(scaled, -1)
    return Draw(chosen, log_probs)


def _inverse_cdf(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the first index (rows,) at which the running sum of `probabilities` (rows, V) passes `uniforms`.

    The sum runs in float64: in float32 it stands still at tokens below 6e-8, which a large vocabulary has by the
    thousand. For a large vocabulary it runs over blocks first, so that no (rows, V) float64 tensor exists.
    """
    rows, vocabulary = probabilities.shape
    if vocabulary <= 2 * BLOCK:
        return _search(probabilities, uniforms, None)[0]
    padded = torch.nn.functional.pad(probabilities, (0, -vocabulary % BLOCK)).view(rows, -1, BLOCK)
    block, rest = _search(padded.sum(-1, dtype=torch.float64), uniforms, None)
    within = padded[torch.arange(rows, device=padded.device), block]
    return (block * BLOCK + _search(within, uniforms, rest)[0]).clamp_(max=vocabulary - 1)


def _search(weights: Tensor, uniforms: Tensor, target: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the index (rows,) where the running sum of `weights` passes the target, and what is left of it there.

    The target is `uniforms` times the sum, unless given.
    """
    sums = weights.cumsum(-1, dtype=torch.float64)
    if target is None:
        target = uniforms * sums[:, -1]
    else:
        # What is left after other sums may miss this one by a rounding: stay within it, whatever lies at its ends.
        target = target.clamp(min=0).minimum(sums[:, -1].nextafter(torch.zeros_like(target)))
    # right=True: a token of probability 0 is never the first to pass.
    index = torch.searchsorted(sums, target.unsqueeze(1), right=True).clamp_(max=weights.shape[1] - 1)
    before = sums.gather(1, index) - weights.gather(1, index)
    return index.squeeze(1), target - before.squeeze(1)
