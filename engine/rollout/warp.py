"""What may stand between a model's logits and the draw: repetition penalty, top-k, top-p, min-p."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.rollout.protocol import SamplingParams


class Warp:
    """The distribution that the rows of one batch are drawn from, where it is not the softmax of their logits.

    In the order of transformers: the repetition penalty over prompt and completion, the ban on end tokens, the
    temperature, top-k, top-p, min-p. For a greedy choice the last three are left out.
    """

    def __init__(self, sampling: SamplingParams, prompts: Sequence[Sequence[int]], device: torch.device) -> None:
        """Begin with one of `prompts` per row."""
        self._penalty: LogitsProcessor | None = None
        if sampling.repetition_penalty != 1:
            self._penalty = RepetitionPenaltyLogitsProcessor(float(sampling.repetition_penalty))
        self._warpers: list[LogitsProcessor] = [TemperatureLogitsWarper(float(sampling.temperature))]
        if not sampling.greedy:
            if sampling.top_k is not None:
                self._warpers.append(TopKLogitsWarper(sampling.top_k))
            if sampling.top_p < 1:
                self._warpers.append(TopPLogitsWarper(sampling.top_p))
            if sampling.min_p > 0:
                self._warpers.append(MinPLogitsWarper(sampling.min_p))
        self._length = max(len(prompt) for prompt in prompts)
        # A row's empty places repeat its first token: that one was there anyway, and none is penalised twice.
        firsts = torch.tensor([prompt[0] for prompt in prompts])
        seen = firsts.unsqueeze(1).repeat(1, self._length + sampling.max_tokens)
        for row, prompt in enumerate(prompts):
            seen[row, : len(prompt)] = torch.tensor(prompt)
        self._seen = seen.to(device)

    def scores(self, logits: Tensor, banned: Tensor | None = None) -> Tensor:
        """Return scores (rows, V) whose softmax is what to draw from; what is not to be drawn has −inf."""
        seen = self._seen[:, : self._length]
        scores = logits.float()
        if self._penalty is not None:
            scores = self._penalty(seen, scores)
        if banned is not None:
            scores = scores.index_fill(1, banned, -torch.inf)
        for warper in self._warpers:
            scores = warper(seen, scores)
        return scores

    def take(self, token_ids: Tensor) -> None:
        """Note the tokens (rows,) that were drawn."""
        self._seen[:, self._length] = token_ids
        self._length += 1

    def shrink(self, staying: Tensor) -> None:
        """Keep the rows at the places `staying`."""
        self._seen = self._seen[staying]
