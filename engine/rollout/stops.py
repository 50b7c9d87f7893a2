"""Finding stop strings in what has been sampled, whatever tokens they are made of."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

DECODING = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
"""Exact decoding: nothing is dropped (tags may be special tokens) and no space is tidied away."""

# Tokens decoded beyond the bytes of a stop string: some add no text, and characters may be cut in half.
MARGIN = 8
REPLACEMENT = "\ufffd"


class StopStrings:
    """Looks for `strings` in sampled tokens.

    Most tokens cannot complete a stop string: their text does not begin with an ending of it and does not contain
    it. `may_complete` (V,) marks the others; only after these is anything decoded, and then the last few tokens.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str], vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self.strings = tuple(strings)
        self._tail = max((len(string.encode()) for string in self.strings), default=0) + MARGIN
        self.may_complete = self._completing(vocabulary)

    def completed_by_last(self, token_ids: Sequence[int]) -> str | None:
        """Return the stop string that the last token completes: the one that ends first, of these the longest."""
        tail = token_ids[-self._tail :]
        text = self._decode(tail)
        earlier = self._earlier_length(tail)
        ends = {string: _end_of(string, text, earlier) for string in self.strings}
        found = [string for string, end in ends.items() if end is not None]
        return min(found, key=lambda string: (ends[string], -len(string)), default=None)

    def cut(self, token_ids: Sequence[int], text: str, string: str) -> str:
        """Return `text`, that of `token_ids`, up to the end of the `string` that the last token completed."""
        if text.find(string) == len(text) - len(string):
            return text
        return text[: _end_of(string, text, self._earlier_length(token_ids))]

    def _earlier_length(self, token_ids: Sequence[int]) -> int:
        """Return the length of the text before the last token.

        Half a character at its end reads as a replacement until the other half comes, and is not counted.
        """
        return len(self._decode(token_ids[:-1]).rstrip(REPLACEMENT))

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(token_ids), **DECODING)) if token_ids else ""

    def _completing(self, vocabulary: int) -> Tensor:
        if not self.strings:
            return torch.zeros(vocabulary, dtype=torch.bool)
        texts = self._tokenizer.batch_decode([[token_id] for token_id in range(vocabulary)], **DECODING)
        endings = tuple({string[place:] for string in self.strings for place in range(len(string))})
        # Alone, some tokens show less than in company: half characters, and spaces that a tokenizer trims.
        halves = any(not string.isascii() for string in self.strings)
        spaces = any(string[-1].isspace() for string in self.strings)
        return torch.tensor(
            [
                text.startswith(endings)
                or any(string in text for string in self.strings)
                or (halves and text.startswith(REPLACEMENT))
                or (spaces and not text)
                for text in texts
            ]
        )


class StopTable:
    """The StopStrings of each set of strings that was asked for; made once, for it looks at the whole vocabulary."""

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._made: dict[tuple[str, ...], StopStrings] = {}

    def of(self, strings: tuple[str, ...]) -> StopStrings:
        """Return those of `strings`."""
        if strings not in self._made:
            self._made[strings] = StopStrings(self._tokenizer, strings, self._vocabulary)
        return self._made[strings]


def _end_of(string: str, text: str, earlier: int) -> int | None:
    """Return where the first `string` ends that reaches beyond the `earlier` characters of `text`."""
    start = text.find(string, max(0, earlier - len(string) + 1))
    return None if start < 0 else start + len(string)
