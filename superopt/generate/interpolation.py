"""Few products for a short convolution: Toom and Cook's construction, with the points chosen by machine.

m outputs of a filter of r weights are, by the definition, m·r products. A polynomial of degree m + r − 2 is known by
its values at n = m + r − 1 points, so that many products are enough (Winograd's F(m, r)):

    y = A [ (G k) ∘ (B d) ]          y: m outputs, k: r weights, d: m + r − 1 inputs, A: m × n, G: n × r, B: n × n

Every choice of n − 1 numbers (the last point is at infinity) is a true law, but they differ in what rounding does to
them. All arithmetic here is exact, and the identity is checked entry by entry; a proof of the rule comes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

Matrix = tuple[tuple[Fraction, ...], ...]

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Tables:
    """The three matrices of one choice of points."""

    points: tuple[Fraction, ...]
    outputs: Matrix
    """A, one row for each output."""
    filters: Matrix
    """G, one row for each product."""
    inputs: Matrix
    """B, one row for each product."""

    @property
    def products(self) -> int:
        return len(self.inputs)

    @property
    def amplification(self) -> Fraction:
        """How much larger than the result what is added up may be: a bound on how rounding errors grow."""
        norms = [_absolute(g) * _absolute(b) for g, b in zip(self.filters, self.inputs, strict=True)]
        return max(sum((abs(a) * n for a, n in zip(row, norms, strict=True)), ZERO) for row in self.outputs)


def tables(outputs: int, window: int, points: Sequence[Fraction]) -> Tables:
    """The law for these points, of which there must be `outputs + window - 2`, all different."""
    if len(set(points)) != outputs + window - 2:
        raise ValueError(
            f"F({outputs}, {window}) takes {outputs + window - 2} different points, not {len(set(points))}"
        )
    everywhere = _with_roots(points)
    evaluated, filters, inputs = [], [], []
    for k, point in enumerate(points):
        others = [*points[:k], *points[k + 1 :]]
        apart = ONE
        for other in others:
            apart *= point - other
        evaluated.append(tuple(point**i for i in range(outputs)))
        filters.append(tuple(point**i / apart for i in range(window)))
        inputs.append((*_with_roots(others), ZERO))
    evaluated.append((*(ZERO,) * (outputs - 1), ONE))
    filters.append((*(ZERO,) * (window - 1), ONE))
    inputs.append(everywhere)
    return Tables(tuple(points), tuple(zip(*evaluated, strict=True)), tuple(filters), tuple(inputs))


def is_law(found: Tables) -> bool:
    """Whether output i is the sum of weight j times input i + j: the definition, for every i, j and input."""
    a, g, b = found.outputs, found.filters, found.inputs
    return all(
        sum((a[i][p] * g[p][j] * b[p][t] for p in range(found.products)), ZERO) == (ONE if t == i + j else ZERO)
        for i in range(len(a))
        for j in range(len(g[0]))
        for t in range(found.products)
    )


def best_tables(outputs: int, window: int, numbers: Iterable[Fraction]) -> tuple[Tables, int]:
    """The law that rounding does least to, of all that these numbers give as points, and how many those are.

    Of equally good ones the first: numbers come in the order of the recipe.
    """
    tried = [tables(outputs, window, points) for points in combinations(tuple(numbers), outputs + window - 2)]
    if not tried:
        raise ValueError(f"F({outputs}, {window}) takes {outputs + window - 2} points")
    best = min(tried, key=lambda found: found.amplification)
    if not is_law(best):
        raise AssertionError(f"no law: F({outputs}, {window}) at {', '.join(map(str, best.points))}")
    return best, len(tried)


def _with_roots(roots: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Coefficients of Π (x − root), the constant first."""
    found = [ONE]
    for root in roots:
        found = [low * -root + high for low, high in zip([*found, ZERO], [ZERO, *found], strict=True)]
    return tuple(found)


def _absolute(row: Iterable[Fraction]) -> Fraction:
    return sum(map(abs, row), ZERO)
