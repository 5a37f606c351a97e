"""Graphs with several results: two operators side by side that equal the parts of one.

Equality of several results is equality of each, so nothing new has to be enumerated: where every part of a Split equals
something smaller, the smaller graphs together are one graph with several results, and the Split another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
