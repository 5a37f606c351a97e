"""Which nodes cost nothing at run time, because they depend on constants alone."""

from __future__ import annotations

import weakref

from superopt.ir.graph import Constant, Node, Value

_CHANCE = frozenset(
    ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
)

# Nodes never change, so the answer for one holds for as long as it lives.
_known: weakref.WeakKeyDictionary[Node, bool] = weakref.WeakKeyDictionary()


def is_weight(value: Value) -> bool:
    """A constant, or computed from constants alone."""
    if isinstance(value.producer, Node):
        return is_weight_only(value.producer)
    return isinstance(value.producer, Constant)


def is_weight_only(node: Node) -> bool:
    """Bottom-up without recursion: chains of a hundred thousand nodes exist."""
    known = _known.get(node)
    if known is not None:
        return known
    stack = [node]
    while stack:
        top = stack[-1]
        if top in _known:
            stack.pop()
            continue
        waiting = [v.producer for v in top.operands if isinstance(v.producer, Node) and v.producer not in _known]
        if waiting:
            stack.extend(waiting)
            continue
        _known[top] = top.op not in _CHANCE and all(_settled(v) for v in top.operands)
        stack.pop()
    return _known[node]


def _settled(value: Value) -> bool:
    return _known[value.producer] if isinstance(value.producer, Node) else isinstance(value.producer, Constant)
