"""How much of a completion repeats what it has said before."""

from collections.abc import Sequence


def repeated_share(token_ids: Sequence[int], n: int) -> float:
    """Return the share of the n-grams of `token_ids` that stand further to the left as well, in [0, 1).

    1 − distinct / all; 0 where there are fewer than `n` tokens. The idea is the n-gram repetition penalty of Yeo et al.
    2025, "Demystifying Long Chain-of-Thought Reasoning in LLMs" (arXiv:2502.03373), which marks the repeated tokens;
    here a completion pays as a whole.

    Raises ValueError where `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"n={n} must be at least 1")
    total = len(token_ids) - n + 1
    if total < 1:
        return 0.0
    return 1 - len({tuple(token_ids[place : place + n]) for place in range(total)}) / total
