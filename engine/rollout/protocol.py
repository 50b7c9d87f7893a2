"""What the training loop asks of a program that samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.types import Completion


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How completions are drawn.

    `min_tokens` come before an end token or a stop string is allowed. `greedy` takes the likeliest token; the
    log-probs reported are at `temperature` all the same.
    """

    temperature: float = 1.0
    max_tokens: int = 48
    min_tokens: int = 0
    stop_strings: tuple[str, ...] = ()
    greedy: bool = False

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature={self.temperature} must be above 0; for the likeliest token use greedy=True")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} must be at least 1")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise ValueError(f"min_tokens={self.min_tokens} must lie between 0 and max_tokens={self.max_tokens}")
        if "" in self.stop_strings:
            raise ValueError(f"stop_strings={self.stop_strings} has an empty string; every text contains it; remove it")


class RolloutEngine(Protocol):
    """Anything that samples completions."""

    def generate(
        self, prompts: Sequence[Sequence[int]], *, n: int, sampling: SamplingParams, seed: int
    ) -> list[list[Completion]]:
        """Return `n` completions for each of `prompts` (token ids), in their order.

        `token_ids` are what was drawn, the end token included. `sampler_log_probs` are those of the unmodified
        softmax at the sampling temperature: also where `min_tokens` forbade some tokens, so that they compare
        with the trainer's. `text` has no end token and is cut after the stop string. The finish reason is
        "eos" (an end token), "stop" (a stop string) or "length".
        """
        ...
