"""Operators that broadcast on their own: what is expanded for them need not be.

`x / x.norm().expand_as(x)`, as torch's functional.normalize is exported, reads a whole tensor where a column would do.
"""

from __future__ import annotations

from collections.abc import Iterator

from superopt.ir.graph import Node, Value, make_node
from superopt.normalize.rule import Replacement, Result, Rule, dims_of
from superopt.normalize.scope import Scope

_OPS = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "Where", "And", "Or", "Xor", "Equal", "Less",
    "LessOrEqual", "Greater", "GreaterOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
)  # fmt: skip
"""All operands broadcast to one shape; not those of PRelu, whose result has the shape of the first."""


def _broadcasts_on_its_own(node: Node, scope: Scope) -> Result:
    """An operand need not be expanded where another one has the shape of the result anyway."""
    result = dims_of(Value(node))
    whole = [k for k, value in enumerate(node.inputs) if result is not None and dims_of(value) == result]
    for k, before in _expanded(node, scope):
        if any(other != k for other in whole):
            inputs = (*node.inputs[:k], before, *node.inputs[k + 1 :])
            return Replacement(make_node(node.op, inputs, dict(node.attributes), node.types), like=node)
    return None


def _expanded(node: Node, scope: Scope) -> Iterator[tuple[int, Value]]:
    """Operands that an Expand makes, and of what."""
    for k, value in enumerate(node.inputs):
        expand = scope.operator(value, "Expand")
        if expand is not None and expand.inputs[0] is not None:
            yield k, expand.inputs[0]


RULES = (Rule("broadcasts-on-its-own", _OPS, _broadcasts_on_its_own),)
