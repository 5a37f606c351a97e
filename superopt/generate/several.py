"""Graphs with several results: two operators side by side that equal the parts of one.

Equality of several results is equality of each, so nothing new has to be enumerated: where every part of a Split equals
something smaller, the smaller graphs together are one graph with several results, and the Split another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from superopt.generate.recipe import Scene
from superopt.generate.term import Node, Pair, Term, leaves, size


def joined(pairs: Iterable[Pair], scene: Scene) -> Iterator[Pair]:
    """From pairs with one result each, those with several."""
    parts: dict[tuple[int, tuple[Term, ...]], dict[int, Term]] = {}
    for pair in pairs:
        smaller, other = pair.left[0], pair.right[0]
        if isinstance(other, Node) and scene.templates[other.template].outputs > 1:
            parts.setdefault(other.operator, {}).setdefault(other.output, smaller)
    for (template, operands), found in parts.items():
        count = scene.templates[template].outputs
        if len(found) < count:
            continue
        left = tuple(found[k] for k in range(count))
        right = tuple(Node(template, operands, k) for k in range(count))
        if _is_news(left, right):
            yield Pair(left, right)


def _is_news(left: tuple[Term, ...], right: tuple[Term, ...]) -> bool:
    """Each part is computed, no two are the same, and together they read all that the other side reads."""
    computed = all(isinstance(t, Node) for t in left)
    return computed and len(set(left)) == len(left) and set(leaves(*right)) <= set(leaves(*left)) and size(*right) > 1


def side_by_side(graphs: Sequence[float], most: int) -> float:
    """How many graphs with several results and up to `most` operators are covered, where `graphs[k]` graphs with k
    operators and one result are: every choice of two or more of them with that many operators together. Those that
    share operators are not counted, so this is too small."""
    return sum(_chosen(graphs, total, total) for total in range(2, most + 1)) - sum(graphs[2 : most + 1])


def _chosen(graphs: Sequence[float], total: int, largest: int) -> float:
    """Ways to choose different graphs with so many operators together, none with more than `largest`."""
    if total == 0:
        return 1.0
    if largest == 0:
        return 0.0
    ways = 0.0
    for count in range(total // largest + 1):
        of_this_size = graphs[largest] if largest < len(graphs) else 0.0
        ways += _combinations(of_this_size, count) * _chosen(graphs, total - count * largest, largest - 1)
    return ways


def _combinations(of: float, count: int) -> float:
    return max(0.0, math.prod(of - k for k in range(count)) / math.factorial(count))
