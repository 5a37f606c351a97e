"""A function of a Where that picks one of two constants: a Where that picks between its values. And a Where by what is
not.

As many nodes as before, and what was between them is gone: a limit that depends on a condition, cast and negated.
"""

from __future__ import annotations

import numpy as np

from superopt.ir.graph import Constant, Node, Value, make_node
from superopt.ir.tensor import Array, ArrayTensor, Tensor
from superopt.ir.types import DType
from superopt.normalize.casting import target
from superopt.normalize.rule import Replacement, Result, Rule
from superopt.normalize.scope import Scope

_TYPES = {DType.FLOAT16: np.float16, DType.FLOAT32: np.float32, DType.FLOAT64: np.float64}
"""Those that numpy and onnxruntime round to alike."""
_MOST = 16
"""Elements of a constant that is kept in two versions."""


def _of_choice(node: Node, scope: Scope) -> Result:
    where = scope.operator(node.inputs[0], "Where")
    if where is None:
        return None
    values = [_value(node, scope.tensor(option)) for option in where.inputs[1:]]
    if any(value is None for value in values):
        return None
    options = [Constant(ArrayTensor(value)) for value in values if value is not None]
    return Replacement(
        make_node("Where", (where.inputs[0], *map(Value, options)), where.attributes, node.types),
        constants=tuple(zip(options, ("_if_so", "_if_not"), strict=True)),
    )


def _value(function: Node, option: Tensor | None) -> Array | None:
    if option is None or option.dtype not in _TYPES or option.count > _MOST:
        return None
    if function.op == "Neg":
        return np.asarray(np.negative(option.numpy()))
    to = _TYPES.get(target(function) or option.dtype)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, as it does in the model
        return None if to is None else option.numpy().astype(to)


def _by_not(node: Node, scope: Scope) -> Result:
    """Where(Not(c), a, b) = Where(c, b, a)"""
    condition, a, b = node.inputs
    negated = scope.operator(condition, "Not")
    if negated is None:
        return None
    return Replacement(make_node("Where", (negated.inputs[0], b, a), node.attributes, node.types), like=node)


RULES = (
    Rule("function-of-choice", ("Neg", "Cast"), _of_choice),
    Rule("choice-by-not", ("Where",), _by_not),
)
