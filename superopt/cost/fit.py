"""Coefficients from measured times: least squares that never make work free, and that hold on to what they know.

The error of a prediction is the logarithm of predicted over measured, so that a region of 20 µs weighs as much as one
of 20 ms. It is brought down by a few weighted linear fits; an observation that is far off (a model that the
runtime treats in a way no feature tells) loses weight. Each coefficient is pulled towards where it stood: columns that
no observation contains stay there.

First the general columns are fitted, one for each kind of work and unit, then the columns of single operators, pulled
towards their general one. An operator that was never measured is priced by its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from superopt.cost.coefficients import Coefficients
from superopt.cost.columns import Amounts, Column

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

_ROUNDS = 30
_SWEEPS = 100
_GUESSES = 10
_SETTLED = 1e-4
_LEAST, _MOST = 0.01, 1000.0  # of where a coefficient stood
_STEP = 3.0  # the most by which one linear fit may change a scale, as a factor


@dataclass(frozen=True)
class Trust:
    """How far observations move coefficients."""

    general: float  # what holds a general column where it was, in observations that are off by a factor of e
    single: float  # the same for a column of one operator
    far_off: float  # errors over this, as a logarithm, lose weight


# Single operators, timed alone: all there is to know. Real regions: each has many parts that could be to blame.
OF_SAMPLES = Trust(0.05, 0.1, math.inf)
OF_REGIONS = Trust(2.0, 2.0, 0.4)


class Observation(NamedTuple):
    amounts: Amounts
    seconds: float


def fit(observations: Iterable[Observation], start: Coefficients, trust: Trust) -> Coefficients:
    """The same for the same observations in the same order. What was `spared` when they were measured is added."""
    spent = (Observation(o.amounts, o.seconds + start.spared) for o in observations if o.seconds > 0)
    seen = [o for o in spent if any(amount > 0 for _, amount in o.amounts)]
    if not seen:
        return start
    general = _scales(seen, start, {}, trust.general, trust.far_off)
    moved = Coefficients({c: s * general.get(c.general, 1.0) for c, s in start.seconds.items()})
    singles = {c: c for o in seen for c, _ in o.amounts}
    scales = _scales(seen, moved, singles, trust.single, trust.far_off)
    prices = {**moved.seconds, **{c: moved.of(c) * scale for c, scale in scales.items()}}
    return Coefficients(prices, start.spared)


def _scales(
    observations: Sequence[Observation],
    start: Coefficients,
    groups: Mapping[Column, Column],
    pull: float,
    far_off: float,
) -> dict[Column, float]:
    """By how much each group of columns is to be scaled; one without a group goes with its general column."""
    names = sorted({groups.get(c, c.general) for o in observations for c, _ in o.amounts})
    place = {name: i for i, name in enumerate(names)}
    parts = np.zeros((len(observations), len(names)))
    for row, observation in enumerate(observations):
        for column, amount in observation.amounts:
            parts[row, place[groups.get(column, column.general)]] += amount * start.of(column)
    seconds = np.array([o.seconds for o in observations])
    found = _fitted(parts, seconds, pull, far_off)
    return {name: float(found[i]) for name, i in place.items()}


def _fitted(parts: Matrix, seconds: Matrix, pull: float, far_off: float) -> Matrix:
    """Scales of the columns of `parts` whose sums are close to `seconds`."""
    scales = np.ones(parts.shape[1])
    for _ in range(_ROUNDS):
        predicted = np.maximum(parts @ scales, 1e-12)
        error = np.abs(np.log(predicted / seconds))
        weight = np.minimum(1.0, far_off / np.maximum(error, 1e-9)) / (predicted * seconds)
        # The pull is on logarithms too: pull · log(scale)², linear around where the scale is.
        gram = parts.T @ (parts * weight[:, None]) + np.diag(pull / scales**2)
        right = parts.T @ (weight * seconds) + pull * (1 - np.log(scales)) / scales
        before, scales = scales, _bounded(gram, right, scales)
        if np.max(np.abs(scales - before)) < _SETTLED:
            break
    return scales


def _bounded(gram: Matrix, right: Matrix, start: Matrix) -> Matrix:
    """The least-squares solution inside the bounds. What the bounds hold is guessed and the rest solved for, a few
    times; coordinate descent from there is done soon."""
    low, high = np.maximum(start / _STEP, _LEAST), np.minimum(start * _STEP, _MOST)
    scales, free = start.copy(), np.ones(len(start), bool)
    for _ in range(_GUESSES):
        rest = right[free] - gram[np.ix_(free, ~free)] @ scales[~free]
        scales[free] = np.clip(np.linalg.solve(gram[np.ix_(free, free)], rest), low[free], high[free])
        slope = gram @ scales - right
        held = ((scales <= low) & (slope > 0)) | ((scales >= high) & (slope < 0))
        if np.array_equal(free, ~held) or held.all():
            break
        free = ~held
    return _descended(gram, right, scales, low, high)


def _descended(gram: Matrix, right: Matrix, scales: Matrix, low: Matrix, high: Matrix) -> Matrix:
    for _ in range(_SWEEPS):
        largest = 0.0
        for i in range(len(scales)):
            best = scales[i] + (right[i] - gram[i] @ scales) / gram[i, i]
            best = min(max(best, low[i]), high[i])
            largest = max(largest, abs(best - scales[i]))
            scales[i] = best
        if largest < _SETTLED:
            break
    return scales
