"""Spelled-out functions that onnxruntime recognizes and runs as one kernel.

A spelling is a tree: an operator over its operands; `X` stands for one and the same value wherever it occurs, `C` for a
constant. Operands of Add and Mul come in either order. This is an estimate of what the runtime does, for ranking:
conditions of its own that it may have (on constants, ranks or types) are not repeated here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from superopt.cost.weights import is_weight
from superopt.ir.graph import Node, Value

Tree: TypeAlias = "str | tuple[Any, ...]"
_Found: TypeAlias = "tuple[Value | None, tuple[Node, ...]]"

X: Final = "x"
C: Final = "constant"
_COMMUTE = frozenset(("Add", "Mul"))

_CENTRED = ("Sub", X, ("ReduceMean", X))
_ERF = ("Add", ("Erf", ("Div", X, C)), C)
_ERF_SCALED = ("Add", ("Erf", ("Mul", X, C)), C)


def _deviation(of: Tree) -> Tree:
    return ("Sqrt", ("Add", ("ReduceMean", ("Pow", of, C)), C))


SPELLINGS: dict[str, tuple[Tree, ...]] = {
    "Gelu": (
        ("Mul", ("Mul", X, _ERF), C),
        ("Mul", X, ("Mul", _ERF, C)),
        ("Mul", ("Mul", X, _ERF_SCALED), C),
        ("Mul", X, ("Mul", _ERF_SCALED, C)),
    ),
    "QuickGelu": (("Mul", X, ("Sigmoid", X)), ("Mul", X, ("Sigmoid", ("Mul", X, C)))),
    "LayerNormalization": (("Add", ("Mul", ("Div", _CENTRED, _deviation(_CENTRED)), C), C),),
    "SimplifiedLayerNormalization": (("Mul", ("Div", X, _deviation(X)), C),),
}


@dataclass(frozen=True)
class Spelling:
    """The function, what it is applied to, and the nodes besides the last one that spell it."""

    op: str
    x: Value
    inner: tuple[Node, ...]


# Nodes never change, so what one spells holds for as long as it lives.
_known: weakref.WeakKeyDictionary[Node, Spelling | None] = weakref.WeakKeyDictionary()


def spelled(node: Node) -> Spelling | None:
    """What the node is the last step of."""
    if node.op not in _COMMUTE or node.domain:
        return None
    if node not in _known:
        _known[node] = _recognize(node)
    return _known[node]


def _recognize(node: Node) -> Spelling | None:
    for op, trees in SPELLINGS.items():
        for tree in trees:
            for x, nodes in _matches(tree, Value(node), None, ()):
                assert x is not None  # every spelling has one
                return Spelling(op, x, tuple(n for n in dict.fromkeys(nodes) if n is not node))
    return None


def _matches(tree: Tree, value: Value, x: Value | None, nodes: tuple[Node, ...]) -> Iterator[_Found]:
    """Every way to read the value as the tree, with what X is and the nodes met so far."""
    if isinstance(tree, str):
        if tree == X and (x is None or x == value):
            yield value, nodes
        elif tree == C and is_weight(value):
            yield x, nodes
        return
    op, *operands = tree
    node = value.node
    if node is None or node.op != op or node.domain:
        return
    given = [v for v in node.inputs if v is not None]
    if len(given) < len(operands) or not all(map(is_weight, given[len(operands) :])):
        return
    yield from _all_match(operands, given, x, (*nodes, node))
    if op in _COMMUTE:
        yield from _all_match(operands, given[::-1], x, (*nodes, node))


def _all_match(
    trees: Sequence[Tree], values: Sequence[Value], x: Value | None, nodes: tuple[Node, ...]
) -> Iterator[_Found]:
    if not trees:
        yield x, nodes
        return
    for bound, met in _matches(trees[0], values[0], x, nodes):
        yield from _all_match(trees[1:], values[1:], bound, met)
