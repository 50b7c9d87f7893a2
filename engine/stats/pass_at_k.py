"""pass@k: the chance that at least one of k answers to a problem is right, estimated from n answers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(n: ArrayLike, right: ArrayLike, k: int) -> NDArray[np.float64]:
    """Return the unbiased estimate 1 − C(n − c, k) / C(n, k) for each problem, float64 (P,).

    `n` (P,) or one number is how many answers each problem has, `right` (P,) is c, how many of them are right: the
    share of the k-subsets of the n answers with a right one in it. Source: Chen et al. 2021, "Evaluating Large
    Language Models Trained on Code", eq. 1. Taken as 1 − ∏ (n − c − i) / (n − i) over i = 0 … k − 1, whose factors
    lie between 0 and 1, so that nothing overflows and n − c < k gives exactly 1.

    Raises:
        ValueError: if k is below 1, a problem has fewer than k answers, or c does not lie between 0 and n.
    """
    answers, correct = np.broadcast_arrays(np.asarray(n, np.int64), np.asarray(right, np.int64))
    if k < 1:
        raise ValueError(f"k={k} must be at least 1")
    if (answers < k).any():
        raise ValueError(f"k={k} is above n={answers.min()}, the fewest answers of a problem; sample more, or lower k")
    if ((correct < 0) | (correct > answers)).any():
        raise ValueError("right must lie between 0 and n for every problem; count the right answers among the n")
    none_right = np.ones(answers.shape, np.float64)
    for drawn in range(k):
        none_right *= np.clip(answers - correct - drawn, 0, None) / (answers - drawn)
    return 1.0 - none_right


def curve_points(k: int) -> list[int]:
    """Return the numbers of answers at which pass@ is reported for `k` samples: 2, 4, 8, … and `k`; none for k = 1."""
    doubled = [2**power for power in range(1, k.bit_length()) if 2**power < k]
    return [*doubled, k] if k > 1 else []
