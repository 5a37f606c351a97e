"""Ifs that ask for the rank of a value which nobody declares: decided by what follows them.

Exporters write `rank(x) == 2 ? x : unsqueeze(x)` before a recurrent cell, with x the result of another If of which one
branch has two dims and the other three. With three dims the run fails at the cell, whatever is chosen here. So a rank
is ruled out when neither branch gives the rank that a node after the If demands by its definition; where the ranks that
are left choose one branch, that is the branch. Runs that failed before still fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from superopt.ir.graph import Graph, Node, Parameter, Value
from superopt.ir.tensor import ArrayTensor, Tensor
from superopt.normalize.rule import rank_of
from superopt.normalize.scope import Scope

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
"""Their sequence X and their initial states have three dims."""
_STATES = (0, 5, 6)
_ELEMENTWISE = frozenset({"Abs", "Cast", "Identity", "Neg", "Relu", "Sigmoid", "Tanh"})
_FAR = 64
"""Nodes behind a condition among which the question for the rank is looked for."""

Ranks = Mapping[Value, int]


@dataclass(frozen=True)
class Measured:
    """A value of unknown rank, and the values that count its dims."""

    value: Value
    counts: tuple[Value, ...]

    def assuming(self, rank: int) -> dict[Value, Tensor]:
        return {count: ArrayTensor(np.array(rank, np.int64)) for count in self.counts}


def measured(condition: Value, scope: Scope) -> Measured | None:
    """The one value whose rank the condition asks for: Size(Shape(x))."""
    found: dict[Value, dict[Value, None]] = {}
    waiting, met = [condition], {condition}
    while waiting:
        value = waiting.pop()
        size = scope.operator(value, "Size")
        shape = None if size is None else scope.operator(size.inputs[0], "Shape")
        of = None if shape is None or shape.attributes else shape.inputs[0]
        if of is not None and rank_of(of.type) is None:
            found.setdefault(of, {})[value] = None
            continue
        if value.node is not None and not value.node.bodies:
            waiting.extend(v for v in value.node.operands if v not in met)
            met.update(value.node.operands)
        if len(met) > _FAR:
            return None
    if len(found) != 1:
        return None
    [(value, counts)] = found.items()
    return Measured(value, tuple(counts))


def possible(value: Value, scope: Scope) -> set[int] | None:
    """The ranks that the result of an If may have: those of its branches."""
    node = value.node
    if node is None or node.op != "If" or node.domain or not scope.context.purity.is_known(node):
        return None
    ranks: set[int] = set()
    for body in node.bodies:
        rank = _rank(body.outputs[value.index], {}, node.captured, scope)
        if rank is None:
            return None
        ranks.add(rank)
    return ranks


class Demands:
    """The ranks that nodes of one graph demand of what they read, by definition. All of them run whenever one does."""

    def __init__(self, graph: Graph, scope: Scope) -> None:
        self._of: dict[Value, int] = {}
        for node in reversed(graph.nodes):
            if node.domain or not scope.context.purity.is_known(node):
                continue
            if node.op in _RECURRENT:
                for i, value in enumerate(node.inputs):
                    if value is not None and i in _STATES:
                        self._of.setdefault(value, 3)
                continue
            change = _change(node, (), scope)
            after = self._of.get(Value(node))
            if change is not None and after is not None and node.inputs[0] is not None:
                self._of.setdefault(node.inputs[0], after - change)

    def of(self, value: Value) -> int | None:
        return self._of.get(value)


def settled(choice: Node, value: Value, cases: Mapping[int, bool], demands: Demands, scope: Scope) -> int | None:
    """A rank of the value with which the model can run, where all such ranks take the same branch of the If."""
    left = [
        rank
        for rank in cases
        if demands.of(value) in (None, rank)
        and not all(_refused(choice, body, {value: rank}, demands, scope) for body in choice.bodies)
    ]
    return left[0] if left and len({cases[rank] for rank in left}) == 1 else None


def _refused(choice: Node, body: Graph, assumed: Ranks, demands: Demands, scope: Scope) -> bool:
    """Whether a node after the If cannot take what this branch gives."""
    for result, inside in zip(choice.outputs, body.outputs, strict=True):
        demanded, rank = demands.of(result), _rank(inside, assumed, choice.captured, scope)
        if demanded is not None and rank is not None and demanded != rank:
            return True
    return False


def _rank(value: Value, assumed: Ranks, captured: tuple[Value, ...], scope: Scope) -> int | None:
    """The rank of a value in a branch that captures these."""
    more = 0
    while True:
        value, captured = _outside(value, captured)
        rank = assumed.get(value, rank_of(value.type))
        if rank is not None:
            return rank + more
        node = value.node
        change = None if node is None or value.index else _change(node, captured, scope)
        if node is None or change is None or node.inputs[0] is None:
            return None
        more += change
        value = node.inputs[0]


def _outside(value: Value, captured: tuple[Value, ...]) -> tuple[Value, tuple[Value, ...]]:
    producer = value.producer
    if captured and isinstance(producer, Parameter) and producer.captured:
        return captured[producer.position], ()
    return value, captured


def _change(node: Node, captured: tuple[Value, ...], scope: Scope) -> int | None:
    """How many dims more than its first operand the node's result has."""
    if node.domain or not scope.context.purity.is_known(node):
        return None
    if node.op in _ELEMENTWISE:
        return 0
    if node.op not in ("Squeeze", "Unsqueeze"):
        return None
    axes = node.attribute("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = scope.integers(_outside(node.inputs[1], captured)[0])
    if not isinstance(axes, tuple):
        return None
    return len(axes) if node.op == "Unsqueeze" else -len(axes)
