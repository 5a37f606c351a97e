"""Common subexpressions: pure nodes with the same operator, operands, attributes and outputs are one."""

from __future__ import annotations

from superopt.ir.graph import Attribute, Node, make_node
from superopt.ir.tensor import Tensor
from superopt.ir.types import TensorType, Type
from superopt.normalize.scope import Scope
from superopt.normalize.sharing import sample

COMMON = "common-subexpression"
KEPT = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""Not merged: onnxruntime recognizes quantized operators by the pairs around each of them."""

_PRESENT, _ABSENT = TensorType(None, None), None


class Duplicates:
    """The nodes of one graph so far, by what they compute."""

    def __init__(self) -> None:
        self._seen: dict[Node, list[Node]] = {}

    def find(self, key: Node, node: Node) -> Node | None:
        return next((n for n in self._seen.get(key, ()) if _same_tensors(n, node)), None)

    def remember(self, key: Node, node: Node) -> None:
        self._seen.setdefault(key, []).append(node)


def may_merge(node: Node, scope: Scope) -> bool:
    return node.op not in KEPT and not node.bodies and scope.is_pure(node)


def key_of(node: Node, present: tuple[bool, ...]) -> Node:
    """The node without what does not matter to its results: instance, inferred types, all but a sample of its tensors.

    Types say no more than which outputs there are: inference may name the unknown dims of equal nodes differently.
    """
    types: tuple[Type, ...] = tuple(_PRESENT if there else _ABSENT for there in present)
    attributes: tuple[tuple[str, Attribute], ...] = tuple(
        (name, str(value.type).encode() + sample(value) if isinstance(value, Tensor) else value)
        for name, value in node.attributes
    )
    return make_node(node.op, node.inputs, attributes, types, domain=node.domain)


def _same_tensors(a: Node, b: Node) -> bool:
    for (_, x), (_, y) in zip(a.attributes, b.attributes, strict=True):
        if isinstance(x, Tensor) != isinstance(y, Tensor):
            return False
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x is not y and x.digest != y.digest:
            return False
    return True
