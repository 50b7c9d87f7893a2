"""Intervals around an accuracy that was measured on some problems."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a share, within 0 and 1."""

    low: float
    high: float


def wilson_interval(right: float, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the score interval of the share `right` / n, for n problems with one answer each.

    (p̂ + z²/2n ± z √(p̂(1 − p̂)/n + z²/4n²)) / (1 + z²/n). Source: Wilson 1927, "Probable Inference, the Law of
    Succession, and Statistical Inference". Unlike p̂ ± z √(p̂(1 − p̂)/n) it has a width at shares of 0 and 1.

    Raises:
        ValueError: if n is below 1, or `right` does not lie between 0 and n.
    """
    if n < 1 or not 0 <= right <= n:
        raise ValueError(f"right={right:g} of n={n} is no share; n must be at least 1 and right between 0 and n")
    z = _quantile(confidence)
    share = right / n
    middle = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Interval(max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale))


def standard_error(shares: ArrayLike) -> float:
    """Return the standard error of the mean of one share per problem, s / √P with s of n − 1; NaN for one problem.

    Answers to one problem resemble one another, so the problems are counted and not the answers. Source: Miller 2024,
    "Adding Error Bars to Evals", sections 2.1 and 2.2.

    Raises:
        ValueError: if there is no share.
    """
    values = np.asarray(shares, np.float64)
    if not len(values):
        raise ValueError("shares is empty; a standard error needs problems")
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def mean_interval(shares: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """Return mean ± z · standard error of one share per problem, cut at 0 and 1.

    Where the problems do not differ (all 0, all 1) their spread says nothing of the error, and where there is one
    problem there is none: then it is the Wilson interval of that mean over as many problems.

    Raises:
        ValueError: if there is no share.
    """
    values = np.asarray(shares, np.float64)
    error, mean = standard_error(values), float(values.mean())
    if len(values) == 1 or np.ptp(values) == 0:
        return wilson_interval(min(mean * len(values), len(values)), len(values), confidence=confidence)
    reach = _quantile(confidence) * error
    return Interval(max(0.0, mean - reach), min(1.0, mean + reach))


def accuracy_interval(n: ArrayLike, right: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of an accuracy over P problems, `right` (P,) of `n` (P,) answers to each being right.

    With one answer to each problem it is Wilson's, with several that of the standard error over the problems.
    """
    answers, correct = np.asarray(n, np.int64), np.asarray(right, np.int64)
    if (answers == 1).all():
        return wilson_interval(int(correct.sum()), len(answers), confidence=confidence)
    return mean_interval(correct / answers, confidence=confidence)


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf((1 + confidence) / 2)
