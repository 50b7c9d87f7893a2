"""One forward pass of the policy over a batch: log-prob and entropy of every completion token."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from engine.grpo.log_probs import TokenScores, token_log_probs, token_scores
from engine.policy.policy import PolicyError
from engine.training.batch import Batch
from engine.training.packing import pack_rows, packed_states, packs_rows


def score_tokens(
    model: Any,
    batch: Batch,
    *,
    temperature: float,
    logits_memory: int = 512,
    entropy_rows: Tensor | None = None,
    entropy_graph: bool = False,
) -> TokenScores:
    """Return log-probs at the sampling temperature and entropies of the completion tokens, (B, T) float32.

    The hidden state at position t scores token t + 1, so a completion behind n prompt tokens is scored from
    position n − 1 on. Only these states go through the output layer, and at most so many at once that their
    float32 logits take `logits_memory` MiB (one token at least). When they do not all fit, the backward pass
    computes the logits again rather than keep them.

    Entropy is computed for the rows in `entropy_rows` ((B,) bool, None for all), is NaN in the others, and has a
    gradient if `entropy_graph`. Places outside `response_mask` hold 0.
    """
    limit = max(1, logits_memory * 2**20 // (4 * model.config.get_text_config().vocab_size))
    pieces = _pieces(batch.response_mask, entropy_rows, limit)
    places = torch.cat([piece for piece, _ in pieces])
    states = torch.split(_states(model, batch, places), [len(piece) for piece, _ in pieces])
    head = _output_layer(model)
    recompute = torch.is_grad_enabled() and len(places) > limit

    def score(states: Tensor, token_ids: Tensor, with_entropy: bool) -> TokenScores:
        logits = head(states)
        if with_entropy:
            return token_scores(logits, token_ids, temperature, entropy_graph=entropy_graph)
        log_probs = token_log_probs(logits, token_ids, temperature)
        return TokenScores(log_probs, torch.full_like(log_probs, torch.nan, requires_grad=False))

    scores = []
    for piece_states, (piece, with_entropy) in zip(states, pieces, strict=True):
        arguments = (piece_states, batch.response_ids.flatten()[piece], with_entropy)
        if recompute:
            # The output layer draws no random numbers, so their state need not be kept.
            scores.append(checkpoint(score, *arguments, use_reentrant=False, preserve_rng_state=False))
        else:
            scores.append(score(*arguments))
    nothing = torch.zeros(batch.response_mask.numel(), device=places.device)
    log_probs, entropy = (
        nothing.index_copy(0, places, torch.cat(values)).view_as(batch.response_mask)
        for values in zip(*scores, strict=True)
    )
    return TokenScores(log_probs, entropy)


def check_output_layer(model: Any) -> None:
    """Check that the logits are what the output layer makes of the last hidden states, as `score_tokens` takes them.

    Raises:
        PolicyError: if the model changes its logits afterwards (soft caps, scales), or has no output layer.
    """
    token_ids = torch.arange(4, device=model.device).unsqueeze(0)
    with torch.no_grad():
        expected = model(input_ids=token_ids, use_cache=False).logits
        logits = _output_layer(model)(_hidden_states(model, token_ids))
    rounding = 8 * torch.finfo(expected.dtype).eps * float(expected.abs().max())
    if not torch.allclose(logits, expected, rtol=0.0, atol=rounding):
        raise PolicyError(
            f"model type {model.config.model_type}: its logits differ from what its output layer gives, by up to "
            f"{float((logits - expected).abs().max()):.3g}; log-probs are taken from the output layer alone; "
            "use a model without a soft cap or a scale of the logits, as the Qwen and Llama families are"
        )


def _pieces(mask: Tensor, entropy_rows: Tensor | None, limit: int) -> list[tuple[Tensor, bool]]:
    """Return places of `mask` (B, T), flattened, at most `limit` at a time, each with whether entropy is wanted."""
    tokens = mask.flatten().nonzero().squeeze(1)
    if entropy_rows is None:
        return [(piece, True) for piece in torch.split(tokens, limit)]
    wanted = entropy_rows.to(tokens.device)[tokens // mask.shape[1]]
    groups = ((tokens[wanted], True), (tokens[~wanted], False))
    return [(piece, entropy) for group, entropy in groups if len(group) for piece in torch.split(group, limit)]


def _states(model: Any, batch: Batch, places: Tensor) -> Tensor:
    """Return the hidden states (N, H) that score the tokens at `places` (N,) of the flattened (B, T)."""
    if packs_rows(model):
        packing = pack_rows(batch)
        return packed_states(model, packing).index_select(0, packing.scoring.flatten()[places])
    rows, tokens = places // batch.response_mask.shape[1], places % batch.response_mask.shape[1]
    positions = batch.prompt_lengths[rows] - 1 + tokens
    states = _hidden_states(model, batch.input_ids).flatten(0, 1)
    return states.index_select(0, rows * batch.input_ids.shape[1] + positions)


def _hidden_states(model: Any, token_ids: Tensor) -> Tensor:
    """Return the states (B, L, H) that go into the output layer."""
    states: Tensor = model.get_decoder()(input_ids=token_ids, use_cache=False).last_hidden_state
    return states


def _output_layer(model: Any) -> Any:
    head = model.get_output_embeddings()
    if head is None:
        raise PolicyError(
            f"model type {model.config.model_type} has no output layer that can be used by itself; "
            "use a causal language model with one, as the Qwen and Llama families are"
        )
    return head
