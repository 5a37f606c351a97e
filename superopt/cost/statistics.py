"""From noisy seconds to claims: medians, their intervals, and the speed-up of interleaved pairs.

Timings have long right tails, machines drift, and now and then a sample is off by a factor of ten. So nothing here
is a mean: a latency is a median, a speed-up is the Hodges–Lehmann estimate over logarithms of paired ratios.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

_EXACT_UP_TO = 40
_LEAST_FOR_CORRELATION = 12


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; (0, inf) around it when there are too few samples to say anything."""

    value: float
    low: float
    high: float


def median(samples: Sequence[float]) -> float:
    return float(np.median(samples))


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over median."""
    low, middle, high = np.percentile(samples, (25, 50, 75))
    return float((high - low) / middle)


def median_estimate(samples: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The median between two order statistics, from the binomial distribution: no assumption about the samples'
    distribution. Fewer than six samples cannot give 95 %: then the interval is their whole range."""
    ordered = sorted(samples)
    n = len(ordered)
    cut = max(1, _binomial_cut(n, (1 - confidence) / 2))
    return Estimate(median(ordered), ordered[cut - 1], ordered[n - cut])


def speedup_estimate(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> Estimate:
    """How many times faster `after` is, from samples taken in pairs.

    Each pair gives d = log(before/after). What both samples of a pair share (clock speed, load, drift slower than a
    pair) cancels in d. The estimate is the median of all pairwise means of d (Hodges–Lehmann); its interval inverts
    the Wilcoxon signed-rank test. That test needs d to be symmetric around its centre: for two equal models, whose
    samples were taken in alternating order, d and −d are alike by construction, so the error that matters,
    calling equal models different, is held without assuming any distribution. Up to 29 % of the pairs
    may be wild without moving the result far.

    The test also needs independent pairs. Where consecutive d resemble each other (lag-one rank correlation r), n pairs
    tell only as much as n·(1−r)/(1+r), and the interval is widened by that.
    """
    d = np.log(np.asarray(before, float) / np.asarray(after, float))
    n = len(d)
    first, second = np.triu_indices(n)
    means = np.sort((d[first] + d[second]) / 2)
    value = math.exp(float(np.median(means)))
    cut = _signed_rank_cut(n, _widened_tail((1 - confidence) / 2, _lag_one_correlation(d)))
    if cut < 1:
        return Estimate(value, 0.0, math.inf)
    return Estimate(value, math.exp(means[cut - 1]), math.exp(means[len(means) - cut]))


def _binomial_cut(n: int, tail: float) -> int:
    """The largest k with P(Binomial(n, 1/2) < k) ≤ tail."""
    total, limit = 0, tail * 2**n
    for k in range(n + 1):
        total += math.comb(n, k)
        if total > limit:
            return k
    return n


def _signed_rank_cut(n: int, tail: float) -> int:
    """The largest k with P(T < k) ≤ tail, T the sum of those ranks 1…n whose fair coin shows heads."""
    if n > _EXACT_UP_TO:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return math.floor(n * (n + 1) / 4 + 0.5 + NormalDist().inv_cdf(tail) * deviation)
    cumulative = _signed_rank_tails(n)
    return int(np.searchsorted(cumulative, tail, side="right"))


@functools.cache
def _signed_rank_tails(n: int) -> np.ndarray:
    """P(T ≤ t) for t = 0, 1, …"""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    return np.cumsum(ways / 2.0**n)


def _widened_tail(tail: float, correlation: float) -> float:
    factor = math.sqrt((1 + correlation) / (1 - correlation))
    return NormalDist().cdf(NormalDist().inv_cdf(tail) * factor)


def _lag_one_correlation(d: np.ndarray) -> float:
    """Between the ranks of consecutive values; 0 when negative or when there are too few to tell."""
    if len(d) < _LEAST_FOR_CORRELATION:
        return 0.0
    ranks = np.argsort(np.argsort(d)).astype(float)
    centred = ranks - ranks.mean()
    return float(np.clip((centred[1:] @ centred[:-1]) / (centred @ centred), 0.0, 0.9))
