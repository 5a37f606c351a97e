"""Identities of operators that hand an operand on: Identity, Dropout in inference, Concat of one, a decided Where."""

from __future__ import annotations

from superopt.ir.graph import Node
from superopt.normalize.purity import is_inference
from superopt.normalize.rule import Result, Rule, same_static_shape
from superopt.normalize.scope import Scope


def _identity(node: Node, scope: Scope) -> Result:
    return node.inputs[0]


def _dropout(node: Node, scope: Scope) -> Result:
    return node.inputs[0] if is_inference(node, scope.tensor) else None


def _of_one(node: Node, scope: Scope) -> Result:
    return node.inputs[0] if len(node.inputs) == 1 else None


def _into_one(node: Node, scope: Scope) -> Result:
    return node.inputs[0] if len(node.types) == 1 else None


def _where(node: Node, scope: Scope) -> Result:
    for number, index in ((1, 1), (0, 2)):
        picked = node.inputs[index]
        if picked is not None and scope.is_filled(node.inputs[0], number):
            return picked if same_static_shape(picked.type, node.types[0]) else None
    return None


RULES = (
    Rule("identity", ("Identity",), _identity),
    Rule("dropout-inference", ("Dropout",), _dropout),
    Rule("concat-of-one", ("Concat",), _of_one),
    Rule("variadic-of-one", ("Sum", "Max", "Min", "Mean"), _of_one),
    Rule("split-into-one", ("Split",), _into_one),
    Rule("where-constant", ("Where",), _where),
)
