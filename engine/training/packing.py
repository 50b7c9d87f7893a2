"""Packing: the rows of a batch as tokens in one row, each shared prompt computed once.

A completion's last token is scored and scores nothing, so it is not among them.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.policy.attention import NAME
from engine.policy.packed_attention import Block, NotPackableError, Packing
from engine.training.batch import Batch, pad_rows
from engine.training.cuts import length_cuts

Ints = NDArray[np.int64]

BLOCK_COST = {"cpu": 256, "cuda": 8192}
"""How many padded tokens a further block of attention must save, by type of device.

On a CPU measured with tiny-math; on a GPU an estimate.
"""
_PROBE = (((1, 2, 3), (4, 5, 6, 7)), ((1, 2, 3), (8, 9)), ((5, 3, 1, 4, 2), (6, 7, 3, 2, 1, 4)))
_known: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def packs_rows(model: Any) -> bool:
    """Return whether `model` computes the same for packed rows as for padded ones: tried once, then remembered.

    It does if all its layers attend in full, by `engine.policy.attention`, and tokens meet nowhere else.
    """
    known = _known.get(model)
    if known is None:
        known = _known[model] = _tries_out(model)
    return known


def packed_states(model: Any, packing: Packing) -> Tensor:
    """Return the last hidden states (N, H) of packed tokens."""
    # transformers takes a mask of four dimensions for a finished one, and so makes none of its own.
    finished = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=packing.token_ids.device)
    output = model.get_decoder()(
        input_ids=packing.token_ids,
        position_ids=packing.position_ids,
        attention_mask=finished,
        use_cache=False,
        packing=packing,
    )
    states: Tensor = output.last_hidden_state[0]
    return states


def pack_rows(batch: Batch) -> Packing:
    """Return the rows of `batch` packed; a prompt that several of them share stands there once, before them."""
    ids = batch.input_ids.cpu().numpy()
    prompt_lengths, scored = batch.prompt_lengths.cpu().numpy(), batch.response_lengths.cpu().numpy() - 1
    owners = np.arange(len(batch)) if batch.prompts is None else batch.prompts.cpu().numpy()
    _, firsts, owners = np.unique(owners, return_index=True, return_inverse=True)
    cost = BLOCK_COST.get(batch.device.type, BLOCK_COST["cuda"])
    scoring = np.arange(batch.response_ids.shape[1]) - 1
    if len(firsts) == len(batch):
        whole = _Spans(ids, prompt_lengths * 0, prompt_lengths + scored, place=0)
        spans, blocks = [whole], [_alone(whole, rows) for rows in whole.alike(cost)]
        scoring = (whole.places + prompt_lengths)[:, None] + scoring
    else:
        prompts = _Spans(ids[firsts], firsts * 0, prompt_lengths[firsts], place=0)
        completions = _Spans(ids, prompt_lengths, scored, place=int(prompts.lengths.sum()))
        spans, blocks = [prompts, completions], [_alone(prompts, rows) for rows in prompts.alike(cost)]
        blocks += [_behind(prompts, owners[rows], completions, rows) for rows in completions.alike(cost)]
        scoring = completions.places[:, None] + scoring
        scoring[:, 0] = (prompts.places + prompts.lengths - 1)[owners]
    token_ids, positions = (np.concatenate(each) for each in zip(*(span.tokens() for span in spans), strict=True))
    return Packing(
        torch.from_numpy(token_ids).unsqueeze(0),
        torch.from_numpy(positions).unsqueeze(0),
        tuple(blocks),
        torch.from_numpy(scoring),
    ).to(batch.device)


class _Spans:
    """A span of each row of `ids`, from `begins` on, `lengths` long, packed from `place` on: the shortest first."""

    def __init__(self, ids: Ints, begins: Ints, lengths: Ints, *, place: int) -> None:
        self.lengths, self._ids, self._begins = lengths, ids, begins
        self._order = np.argsort(lengths, kind="stable")
        self.places = np.empty_like(lengths)
        self.places[self._order] = place + np.cumsum(lengths[self._order]) - lengths[self._order]

    def tokens(self) -> tuple[Ints, Ints]:
        """Return the token ids and their positions in their rows, as they are packed."""
        lengths = self.lengths[self._order]
        rows = np.repeat(self._order, lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = self._begins[rows] + within
        return self._ids[rows, positions], positions

    def alike(self, cost: int) -> list[Ints]:
        """Return the rows, as they are packed, in parts of like length; rows without a token are in none."""
        order = self._order[self.lengths[self._order] > 0]
        return np.split(order, length_cuts(self.lengths[order], cost)) if len(order) else []

    def grid(self, rows: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the places (R, L) of the tokens of `rows`, 0 where a row has ended, and where it has not."""
        within = np.arange(self.lengths[rows].max())
        there = within < self.lengths[rows, None]
        return np.where(there, self.places[rows, None] + within, 0), there


def _alone(spans: _Spans, rows: Ints) -> Block:
    """Return the block of `rows` that see themselves alone."""
    places, there = spans.grid(rows)
    return Block(torch.from_numpy(places), torch.from_numpy(places), None, _filled(there))


def _behind(prompts: _Spans, owners: Ints, completions: _Spans, rows: Ints) -> Block:
    """Return the block of completions `rows` that see their prompts `owners`, (R,) both, and themselves."""
    prompt_places, told = prompts.grid(owners)
    places, there = completions.grid(rows)
    width = places.shape[1]
    if told.all():
        told = told[:1]  # one mask for all
    # Padding behind a completion is seen by padding alone: what comes later is seen by none before it.
    seen = (np.repeat(told[:, None], width, 1), np.tile(np.tri(width, dtype=bool), (len(told), 1, 1)))
    return Block(
        torch.from_numpy(places),
        torch.from_numpy(np.concatenate([prompt_places, places], 1)),
        torch.from_numpy(np.concatenate(seen, 2)).unsqueeze(1),
        _filled(there),
    )


def _filled(there: NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(np.flatnonzero(there))


@torch.no_grad()
def _tries_out(model: Any) -> bool:
    config = model.config.get_text_config()
    if config._attn_implementation != NAME:
        return False
    vocabulary = config.vocab_size
    rows = [([token % vocabulary for token in one], [token % vocabulary for token in two]) for one, two in _PROBE]
    probe = pad_rows(rows, prompts=np.array([0, 0, 1]), device=model.device)
    packing, head = pack_rows(probe), model.get_output_embeddings()
    row, token = probe.response_mask.nonzero(as_tuple=True)
    states = model.get_decoder()(input_ids=probe.input_ids, use_cache=False).last_hidden_state
    expected = head(states[row, probe.prompt_lengths[row] - 1 + token]).float()
    try:
        found = head(packed_states(model, packing)[packing.scoring[row, token]]).float()
    except (NotPackableError, TypeError):  # a layer that attends in another way, or takes no further arguments
        return False
    spread = (expected - expected.mean(-1, keepdim=True)).norm()
    return bool((found - expected).norm() <= torch.finfo(states.dtype).eps ** 0.5 * spread)
