"""The rows of one sampled batch: what was drawn, which rows still run, and why the others ended."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.rollout.draw import Draw
from engine.rollout.protocol import SamplingParams
from engine.rollout.stops import DECODING, StopStrings
from engine.types import Completion, FinishReason


class Rows:
    """Collects `count` rows of drawn tokens. `active` (rows in the batch,) are the row numbers still computed."""

    def __init__(
        self,
        count: int,
        sampling: SamplingParams,
        end_token_ids: Sequence[int],
        stops: StopStrings,
        device: torch.device,
    ) -> None:
        self._sampling = sampling
        self._stops = stops
        self._ends = frozenset(end_token_ids)
        # One look-up a step tells whether any row needs a closer look: an end token, or a possible stop string.
        self._notable = stops.may_complete.clone()
        self._notable[list(end_token_ids)] = True
        self._notable = self._notable.to(device)
        self._token_ids = torch.zeros((count, sampling.max_tokens), dtype=torch.int64, device=device)
        self._log_probs = torch.zeros((count, sampling.max_tokens), dtype=torch.float32, device=device)
        self._lengths = [sampling.max_tokens] * count
        self._reasons: list[FinishReason] = ["length"] * count
        self._stopped_by: list[str | None] = [None] * count
        self.active = torch.arange(count, device=device)
        self._runs = torch.ones(count, dtype=torch.bool, device=device)
        self.running = count

    @property
    def ended_share(self) -> float:
        """The fraction of the batch that has ended."""
        return 1 - self.running / len(self.active)

    def take(self, step: int, drawn: Draw) -> None:
        """Record the tokens drawn at `step` (from 0), one per active row, and end the rows they end."""
        self._token_ids[self.active, step] = drawn.token_ids
        self._log_probs[self.active, step] = drawn.log_probs
        if step < self._sampling.min_tokens:
            return
        for place in (self._notable[drawn.token_ids] & self._runs).nonzero().flatten().tolist():
            if self._ends_here(int(self.active[place]), step):
                self._runs[place] = False
                self.running -= 1

    def shrink(self) -> Tensor:
        """Drop the ended rows from the batch; return the places (rows that stay,) in it that stay."""
        staying = self._runs.nonzero().flatten()
        self.active = self.active[staying]
        self._runs = self._runs[staying]
        return staying

    def completions(self, tokenizer: Any) -> list[Completion]:
        """Return the completions in row order."""
        token_ids = [row[:length] for row, length in zip(self._token_ids.tolist(), self._lengths, strict=True)]
        shown = [ids[:-1] if reason == "eos" else ids for ids, reason in zip(token_ids, self._reasons, strict=True)]
        texts = tokenizer.batch_decode(shown, **DECODING)
        log_probs = self._log_probs.cpu().numpy()
        completions = []
        for row, (ids, text, reason, stop) in enumerate(
            zip(token_ids, texts, self._reasons, self._stopped_by, strict=True)
        ):
            completions.append(
                Completion(
                    token_ids=tuple(ids),
                    text=text if stop is None else self._stops.cut(ids, text, stop),
                    sampler_log_probs=log_probs[row, : len(ids)].copy(),
                    finish_reason=reason,
                    stop=stop,
                )
            )
        return completions

    def _ends_here(self, row: int, step: int) -> bool:
        token_ids = self._token_ids[row, : step + 1].tolist()
        if token_ids[-1] in self._ends:
            self._reasons[row] = "eos"
        else:
            stop = self._stops.completed_by_last(token_ids)
            if stop is None:
                return False
            self._reasons[row], self._stopped_by[row] = "stop", stop
        self._lengths[row] = step + 1
        return True
