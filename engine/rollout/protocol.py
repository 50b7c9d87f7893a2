"""What the training loop asks of a program that samples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.types import Completion


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How completions are drawn.

    `min_tokens` come before an end token or a stop string is allowed. `greedy` takes the likeliest token; the
    log-probs reported are at `temperature` all the same.

    `repetition_penalty` divides the logits, where positive, of tokens that the prompt or the completion has
    already, and multiplies them where negative (Keskar et al. 2019). Of the softmax at `temperature`, `top_k` then
    keeps that many likeliest tokens, `top_p` the fewest likeliest that reach this probability together, `min_p`
    those at least this share as likely as the likeliest. `greedy` heeds the penalty alone.
    """

    temperature: float = 1.0
    max_tokens: int = 48
    min_tokens: int = 0
    stop_strings: tuple[str, ...] = ()
    greedy: bool = False
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be above 0; for the likeliest token use greedy=True")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} must be at least 1")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens={self.min_tokens} must lie between 0 and max_tokens={self.max_tokens}")
        if "" in self.stop_strings:
            raise ValueError(f"stop_strings={self.stop_strings} has an empty string; every text contains it; remove it")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} must lie above 0 and be at most 1; 1 keeps every token")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k} must be at least 1; None keeps every token")
        if not 0 <= self.min_p < 1:
            raise ValueError(f"min_p={self.min_p} must be at least 0 and below 1; 0 keeps every token")
        if not 0 < self.repetition_penalty < math.inf:
            raise ValueError(f"repetition_penalty={self.repetition_penalty} must be above 0 and finite; 1 is none")

    @property
    def warped(self) -> bool:
        """Whether tokens are drawn from another distribution than the softmax at `temperature`."""
        kept_in_part = self.top_p < 1 or self.top_k is not None or self.min_p > 0
        return self.repetition_penalty != 1 or (kept_in_part and not self.greedy)


class RolloutEngine(Protocol):
    """Anything that samples completions.

    `weight_version` tells which weights the last completions came from: those after so many optimizer steps of the
    run that changed them. It follows what has arrived in the sampler, not what was announced.
    """

    weight_version: int

    def generate(
        self, prompts: Sequence[Sequence[int]], *, n: int, sampling: SamplingParams, seed: int
    ) -> list[list[Completion]]:
        """Return `n` completions for each of `prompts` (token ids), in their order.

        `token_ids` are what was drawn, the end token included. `text` has no end token and is cut after the stop
        string. The finish reason is "eos" (an end token), "stop" (a stop string) or "length".

        `sampler_log_probs` are those of the unmodified softmax at the sampling temperature: also where `min_tokens`
        forbade some tokens, so that they compare with the trainer's. Where `sampling.warped`, they are those of the
        distribution that was drawn from, renormalised over the tokens that were kept and allowed, as a weight
        against the sampler's bias needs them. The ratio of policy to sampler then carries the mass that was kept:
        of probabilities .5, .3, .2 a top-p of .8 keeps the first two, the first is reported at ln .625, and
        .5 / .625 = .8.
        """
        ...

    def weights_changed(self, version: int) -> None:
        """Say that the trainer's weights are those of `version`; the next completion is drawn with them."""
        ...

    def rest(self) -> None:
        """Say that nothing is sampled for a while: memory that only sampling needs may go to the update."""
        ...
