"""Rotary embedding: pairs of a head's numbers turned by an angle for each position."""

from __future__ import annotations

from collections.abc import Callable

from superopt.ops.element import Element, select
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index

Angle = Callable[[Index, Index, Index], Element]
"""The cosine or sine for a sequence, a position in it and a pair."""


def rotated(x: Tensor, turned: Index, cos: Angle, sin: Angle, *, interleaved: bool) -> Tensor:
    """(batch, heads, positions, width) with the first `turned` numbers of each head rotated.

    Pair p is (p, p + turned/2), or (2p, 2p + 1) where interleaved; (a, b) becomes (a·cos − b·sin, b·cos + a·sin).
    """
    require(turned % 2 == 0, "numbers are turned in pairs")
    require(turned <= x.shape[-1], "more is turned than a head has")
    half = turned // 2

    def at(b: Index, n: Index, s: Index, h: Index) -> Element:
        first, pair, away = (h % 2 == 0, h // 2, 1) if interleaved else (h < half, h, half)
        second_pair = pair if interleaved else h - half
        here = x[b, n, s, h]
        return select(
            h < turned,
            select(
                first,
                here * cos(b, s, pair) - x[b, n, s, h + away] * sin(b, s, pair),
                here * cos(b, s, second_pair) + x[b, n, s, h - away] * sin(b, s, second_pair),
            ),
            here,
        )

    return tensor(x.shape, at)
