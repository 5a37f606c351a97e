"""From noisy seconds to claims.

Two kinds of error hide in a timing. Inside one sitting samples scatter: long right tails, drift, now and then one that
is off by a factor of ten. And each time a model is opened its memory falls differently: one model, opened twice, ran up
to 2 % apart for as long as both stayed open, far more than the clock's own noise. No number of samples from one
sitting can see that second error. So a sitting is reduced to one robust number, and intervals are computed
over sittings.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import Any, TypeAlias

import numpy as np

_EXACT_UP_TO = 200
_LEAST_FOR_RANKS = 8  # with fewer, ranks cannot give 99 %; where they cannot give what is asked, Student must

Array: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True)
class Estimate:
    """A value inside its confidence interval, which is unbounded when too little is known."""

    value: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        return value < self.low or self.high < value


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over median."""
    low, middle, high = np.percentile(samples, (25, 50, 75))
    return float((high - low) / middle)


def median_estimate(samples: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median between two order statistics, from the binomial distribution: nothing is assumed about how the
    samples are distributed. Fewer than six cannot give 95 %; the interval is then their whole range."""
    ordered = sorted(samples)
    cut = max(1, _binomial_cut(len(ordered), (1 - confidence) / 2))
    return Estimate(median(ordered), ordered[cut - 1], ordered[len(ordered) - cut])


def paired_log_ratio(before: Sequence[float], after: Sequence[float]) -> float:
    """log(before/after), the median over samples taken in pairs: what both samples of a pair share, clock speed, load
    and any drift slower than a pair, cancels."""
    return median(math.log(b / a) for b, a in zip(before, after, strict=True))


def ratio_estimate(log_ratios: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The ratio whose logarithm was found once in each of several independent sittings.

    The scatter between sittings holds all there is: the clock's noise and each opening's luck. Up to seven
    sittings the interval is Student's; from eight on it inverts Wilcoxon's signed-rank test, which bounds what
    a wild sitting can do. Both rest on symmetry: for two equal models, which trade places from sitting to
    sitting, log ratios are symmetric around zero by construction. Wilcoxon's test is then exact, and
    Student's errs on the wide side where tails are heavier than the normal ones.
    """
    n = len(log_ratios)
    d = np.asarray(log_ratios, float)
    tail = (1 - confidence) / 2
    cut = _signed_rank_cut(n, tail) if n >= _LEAST_FOR_RANKS else 0
    if cut:
        means = np.sort(_pairwise_means(d))
        return _exponential(float(np.median(means)), means[cut - 1], means[len(means) - cut])
    centre = float(np.mean(d))
    half = math.inf if n < 2 else student_quantile(n - 1, confidence) * _standard_error(d)
    return _exponential(centre, centre - half, centre + half)


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _pairwise_means(values: Array) -> Array:
    """Each value with each, itself included. Their median is nearly as sharp as a mean on clean values, and up to
    29 % wild ones do not carry it away."""
    first, second = np.triu_indices(len(values))
    return (values[first] + values[second]) / 2


def _exponential(value: float, low: float, high: float) -> Estimate:
    with np.errstate(over="ignore"):
        return Estimate(float(np.exp(value)), float(np.exp(low)), float(np.exp(high)))


@functools.cache
def student_quantile(freedom: int, confidence: float) -> float:
    """The t with P(|T| < t) = confidence, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        if _student_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_within(t: float, freedom: int) -> float:
    """P(|T| < t), in closed form for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@functools.cache
def _signed_rank_cut(n: int, tail: float) -> int:
    """The largest k with P(T < k) ≤ tail, T the sum of those ranks 1…n whose fair coins show heads."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 0.5**n
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    return int(np.searchsorted(np.cumsum(ways), tail, side="right"))


def _binomial_cut(n: int, tail: float) -> int:
    """The largest k with P(Binomial(n, 1/2) < k) ≤ tail."""
    if n > _EXACT_UP_TO:
        return math.floor(n / 2 + NormalDist().inv_cdf(tail) * math.sqrt(n) / 2)
    below = 0.0
    for k in range(n + 1):
        below += math.comb(n, k) * 0.5**n
        if below > tail:
            return k
    return n
