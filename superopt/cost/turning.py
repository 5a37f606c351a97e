"""What a Transpose costs besides its bytes: on a GPU that depends on which kernel takes it.

Axes that stay together count as one. Two that change places are turned in tiles; rows that move as they are go block by
block, each block two axes; whatever else there is, is worked out element by element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from superopt.cost.columns import Amounts, Column
from superopt.cost.measures import Measures, operand
from superopt.ir.graph import Node

BLOCK = 2
"""Axes, the last, that a block of threads moves at once."""
_TILED = ((0,), (1, 0), (0, 2, 1))


def turning(node: Node, measures: Measures) -> Amounts:
    first = measures.shape(operand(node, 0))
    return turned(first, order_of(node, len(first)))


def turned(given: Sequence[int], places: Sequence[int]) -> Amounts:
    """A tensor of these sizes whose axes come in the order of these places."""
    sizes, order = together(given, places)
    if order in _TILED:
        return ()
    if len(sizes) <= BLOCK + 2 and order[-1] == len(order) - 1:
        return ((Column("piece", "run", "blocks turned"), float(math.prod(sizes[:-BLOCK]))),)
    return ((Column("movement", "element", "turned any way"), float(math.prod(sizes))),)


def together(sizes: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and order with one axis for all that stay side by side; those of size 1 are anywhere."""
    groups: list[list[int]] = []
    longer = [axis for axis in order if axis < len(sizes) and sizes[axis] != 1]
    rank = {axis: place for place, axis in enumerate(sorted(longer))}
    for axis in longer:
        if groups and rank[axis] == rank[groups[-1][-1]] + 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    inputs = sorted(groups)
    found = tuple(math.prod(sizes[axis] for axis in group) for group in inputs)
    return (found, tuple(inputs.index(group) for group in groups)) if groups else ((1,), (0,))


def order_of(node: Node, rank: int) -> tuple[int, ...]:
    perm = node.attribute("perm")
    return perm if isinstance(perm, tuple) else tuple(reversed(range(rank)))
