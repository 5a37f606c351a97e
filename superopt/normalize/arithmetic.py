"""Identities of arithmetic and logic. The shape of the result must provably be the operand's own."""

from __future__ import annotations

from superopt.ir.graph import Node
from superopt.ir.types import DType
from superopt.normalize.rule import Result, Rule, broadcast_keeps
from superopt.normalize.scope import Scope

_POWERS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)


def _neutral(name: str, op: str, number: int, *, commutes: bool) -> Rule:
    """x op number = x. Adding +0 turns −0 into +0, which is an equal number; the others are exact, NaN included."""

    def apply(node: Node, scope: Scope) -> Result:
        for x, neutral in (node.inputs, node.inputs[::-1])[: 2 if commutes else 1]:
            tensor = scope.tensor(neutral)
            if x is None or tensor is None or not broadcast_keeps(x.type, tensor.shape):
                continue
            if scope.is_filled(neutral, number):
                return x
        return None

    return Rule(name, (op,), apply)


def _pow_one(node: Node, scope: Scope) -> Result:
    x, exponent = node.inputs
    tensor = scope.tensor(exponent)
    if x is None or tensor is None or x.tensor_type is None or x.tensor_type.dtype not in _POWERS:
        return None  # integers go through floating point there, and large ones lose digits
    return x if broadcast_keeps(x.type, tensor.shape) and scope.is_filled(exponent, 1) else None


def _twice_is_none(op: str) -> Rule:
    """f(f(x)) = x"""

    def apply(node: Node, scope: Scope) -> Result:
        inner = scope.operator(node.inputs[0], op)
        return None if inner is None else inner.inputs[0]

    return Rule(f"{op.lower()}-of-{op.lower()}", (op,), apply)


def _twice_is_once(op: str) -> Rule:
    """f(f(x)) = f(x)"""

    def apply(node: Node, scope: Scope) -> Result:
        return None if scope.operator(node.inputs[0], op) is None else node.inputs[0]

    return Rule(f"{op.lower()}-of-{op.lower()}", (op,), apply)


RULES = (
    _neutral("add-zero", "Add", 0, commutes=True),
    _neutral("sub-zero", "Sub", 0, commutes=False),
    _neutral("mul-one", "Mul", 1, commutes=True),
    _neutral("div-one", "Div", 1, commutes=False),
    _neutral("and-true", "And", True, commutes=True),
    _neutral("or-false", "Or", False, commutes=True),
    Rule("pow-one", ("Pow",), _pow_one),
    _twice_is_none("Not"),
    _twice_is_none("Neg"),
    _twice_is_once("Relu"),
    _twice_is_once("Abs"),
    _twice_is_once("Ceil"),
    _twice_is_once("Floor"),
)
