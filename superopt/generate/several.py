"""Graphs with several results: two operators side by side that equal the parts of one.

Equality of several results is equality of each, so nothing new has to be enumerated: where every part of a Split equals
something smaller, the smaller graphs together are one graph with several results, and the Split another. Of other
operators, such as SkipLayerNormalization with its mean and variance, two results are enough: a Split of which a part is
not read is a Slice, while theirs come at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from superopt.generate.recipe import Scene
from superopt.generate.term import Node, Pair, Term, leaves, size, subterms

SPLIT = "Split"


def joined(pairs: Iterable[Pair], scene: Scene) -> Iterator[Pair]:
    """From pairs with one result each, those with several."""
    parts: dict[tuple[int, tuple[Term, ...]], dict[int, Term]] = {}
    for pair in pairs:
        for term, result in _readings(pair.left[0], pair.right[0], scene):
            parts.setdefault(result.operator, {}).setdefault(result.output, term)
    for (template, operands), found in parts.items():
        of = scene.templates[template]
        if len(found) < (of.outputs if of.call.op == SPLIT else 2):
            continue
        left = tuple(found[k] for k in sorted(found))
        right = tuple(Node(template, operands, k) for k in sorted(found))
        if _is_news(left, right) and (of.call.op != SPLIT or size(*right) > 1):
            yield Pair(left, right)


def _readings(smaller: Term, other: Term, scene: Scene) -> Iterator[tuple[Term, Node]]:
    """What a result of an operator with several is equal to: for a Split something smaller; for others whatever is made
    without them, since one of their results may be the smallest graph there is."""
    for term, result in ((smaller, other), (other, smaller)):
        if not isinstance(result, Node) or scene.templates[result.template].outputs < 2:
            continue
        is_split = scene.templates[result.template].call.op == SPLIT
        if (is_split and result is other) or (not is_split and not _uses(term, result.template, scene)):
            yield term, result


def _uses(term: Term, template: int, scene: Scene) -> bool:
    """Whether the operator of a template takes part in it."""
    name = scene.templates[template].call.op
    return any(isinstance(t, Node) and scene.templates[t.template].call.op == name for t in subterms(term))


def _is_news(left: tuple[Term, ...], right: tuple[Term, ...]) -> bool:
    """Each part is computed, no two are the same, and together they read all that the other side reads."""
    computed = all(isinstance(t, Node) for t in left)
    return computed and len(set(left)) == len(left) and set(leaves(*right)) <= set(leaves(*left))


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
