"""Types that become known once an operand does: the shape of a Reshape whose target was folded, for one."""

from __future__ import annotations

from collections.abc import Mapping

from superopt.ir.graph import Attribute, Constant, Graph, Node, Value, make_node
from superopt.ir.onnx.small import infer_types
from superopt.ir.types import Dim, TensorType, Type
from superopt.normalize.scope import Scope

_SHAPED_BY_VALUES = frozenset(
    {
        "CenterCropPad",
        "Col2Im",
        "ConstantOfShape",
        "Expand",
        "OneHot",
        "Pad",
        "Range",
        "Reshape",
        "Resize",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "TopK",
        "Unsqueeze",
        "Upsample",
    }
)
"""Operators whose operands' values, not only their types, decide the shape of the result."""


def retyped(old: Node, node: Node, present: tuple[bool, ...], scope: Scope) -> Node:
    """`node` is `old` on other operands: typed anew where those say more."""
    pairs = zip(old.inputs, node.inputs, strict=True)
    if any(a != b and a is not None and b is not None and _says_more(node, a, b) for a, b in pairs):
        return typed(node, present, scope)
    return node


def typed(node: Node, present: tuple[bool, ...], scope: Scope) -> Node:
    """The node with what onnx infers for it now; what was known of its results stays."""
    if node.bodies or all(_is_static(t) for t in node.types) or not scope.context.purity.is_known(node):
        return node
    known = {v: tensor for v in node.inputs if v is not None and (tensor := scope.tensor(v)) is not None}
    inferred = infer_types(scope.context.model, node, known, present)
    types = tuple(better(a, b) for a, b in zip(node.types, inferred, strict=True))
    if types == node.types:
        return node
    return make_node(node.op, node.inputs, node.attributes, types, domain=node.domain, instance=node.instance)


def types_of_branches(choice: Node, attributes: Mapping[str, Attribute]) -> tuple[Type, ...]:
    """What an If gives: what both of its branches give."""
    yes, no = attributes.get("then_branch"), attributes.get("else_branch")
    if not isinstance(yes, Graph) or not isinstance(no, Graph):
        return choice.types
    results = zip(choice.types, yes.outputs, no.outputs, strict=True)
    return tuple(better(type_, a.type) if a.type == b.type else type_ for type_, a, b in results)


def _says_more(node: Node, before: Value, after: Value) -> bool:
    if before.type != after.type:
        return True
    return isinstance(after.producer, Constant) and (node.op in _SHAPED_BY_VALUES or node.op.startswith("Reduce"))


def _is_static(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.static_shape is not None


def better(old: Type, new: Type) -> Type:
    if not isinstance(new, TensorType):
        return old
    if not isinstance(old, TensorType):
        return TensorType(new.dtype, _numbers(new.shape)) if old is None else old
    if new.shape is None or (old.shape is not None and len(old.shape) != len(new.shape)):
        return old
    shape = _numbers(new.shape)
    if old.shape is not None and shape is not None:
        shape = tuple(a if isinstance(a, int) or b is None else b for a, b in zip(old.shape, shape, strict=True))
    return TensorType(old.dtype or new.dtype, shape)


def _numbers(shape: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """Inference on one node invents names for dims; only numbers are news."""
    return None if shape is None else tuple(d if isinstance(d, int) else None for d in shape)
