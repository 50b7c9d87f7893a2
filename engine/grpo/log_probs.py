"""Log-probs and entropy of tokens from logits, in float32. The only module of the maths that needs torch."""

from typing import NamedTuple

import torch
from torch import Tensor


class TokenScores(NamedTuple):
    """Log-probs of the chosen tokens and entropies of the distributions they were chosen from, both (B, T)."""

    log_probs: Tensor
    entropy: Tensor


class NextTokens(NamedTuple):
    """Logits and the tokens that they score, aligned."""

    logits: Tensor
    token_ids: Tensor


def next_tokens(logits: Tensor, token_ids: Tensor) -> NextTokens:
    """Return logits (B, L-1, V) aligned with the tokens (B, L-1) they predict: row t scores token t + 1.

    Both arguments cover the same L places. The one place where the shift is made; to score a completion of
    T tokens, pass the last T + 1 places.
    """
    return NextTokens(logits[:, :-1], token_ids[:, 1:])


def token_log_probs(logits: Tensor, token_ids: Tensor, temperature: float = 1.0) -> Tensor:
    """Return float32 log-probs (B, T), in nats, of `token_ids` (B, T) under aligned `logits` (B, T, V).

    log p = z - logsumexp(z), z = logits / temperature. Raises ValueError unless temperature is above 0.
    """
    scaled = _scaled(logits, temperature)
    chosen = torch.gather(scaled, -1, token_ids.unsqueeze(-1)).squeeze(-1)
    return chosen - torch.logsumexp(scaled, -1)


def entropy_from_logits(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Return float32 entropies (B, T), in nats, of softmax(logits / temperature). Outside the graph."""
    with torch.no_grad():
        probabilities = torch.softmax(_scaled(logits, temperature), -1)
        entropies: Tensor = torch.special.entr(probabilities)
        return entropies.sum(-1)


def token_scores(
    logits: Tensor, token_ids: Tensor, temperature: float = 1.0, *, entropy_graph: bool = False
) -> TokenScores:
    """Return log-probs (in the graph) and entropy with the shared work done once.

    The entropy H = −Σ p log p is outside the graph unless `entropy_graph`; its gradient is
    dH/dz = −p (log p + H) / temperature. The log-probs' part of the graph comes first, so that a recomputation
    for their gradient alone can end before the entropy.
    """
    scaled = _scaled(logits, temperature)
    log_total = torch.logsumexp(scaled, -1)
    chosen = torch.gather(scaled, -1, token_ids.unsqueeze(-1)).squeeze(-1) - log_total
    in_graph = entropy_graph and torch.is_grad_enabled()
    with torch.set_grad_enabled(in_graph):
        # -inf logits have probability 0 and add nothing; clamped, 0 · -inf is not NaN.
        log_probs = (scaled - log_total.unsqueeze(-1)).clamp_(min=torch.finfo(torch.float32).min)
        # Outside the graph the product takes no memory of its own.
        terms = log_probs.exp() * log_probs if in_graph else log_probs.mul_(log_probs.exp())
    return TokenScores(chosen, -terms.sum(-1))


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(
            f"temperature={temperature} for log-probs; it must be above 0; "
            "score greedy completions at the temperature of the run, or at 1"
        )
    logits = logits.float()
    return logits if temperature == 1 else logits / temperature
