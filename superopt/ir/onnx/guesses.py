# pyright: basic
"""Where onnx's shape inference says more than it knows, found by running it against real results.

    Attention   unknown dims are added and multiplied as if they were 0
    Einsum      of dims that broadcast the first is taken, which may be the 1
    Slice       at opset 10, a dim that is no number stays what it was
    NonZero     of a tensor without axes, onnxruntime finds places of one axis

Such a node is moved to a domain that inference knows nothing of, and inference starts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto

from superopt.ir.onnx.symbols import bodies_of, nodes_within

HIDDEN = "not.inferred"

Shape: TypeAlias = "Sequence[int | str | None] | None"


def hide_guesses(skeleton: GraphProto, found: GraphProto, opset: int, outer: Mapping[str, Shape] | None = None) -> bool:
    """Hide the nodes of the skeleton for which inference found what it cannot know; whether there were any."""
    shapes = dict(outer or {})
    shapes.update((v.name, _shape(v)) for v in (*found.input, *found.output, *found.value_info))
    shapes.update((t.name, tuple(t.dims)) for t in found.initializer)
    hidden = False
    for node, typed in zip(skeleton.node, found.node, strict=True):
        if _is_guess(typed, shapes, opset):
            node.domain, hidden = HIDDEN, True
        for body, typed_body in zip(bodies_of(node), bodies_of(typed), strict=True):
            hidden = hide_guesses(body, typed_body, opset, shapes) or hidden
    return hidden


def hide_all(nodes: Iterable[NodeProto], opset: int) -> None:
    """Hide every node that could be a guess: inside the functions of a model nobody sees what inference found."""
    doubtful = ("Attention", "Einsum", "NonZero", *(("Slice",) if opset == 10 else ()))
    for node in nodes_within(nodes):
        if _is_standard(node, *doubtful):
            node.domain = HIDDEN


def _is_guess(node: NodeProto, shapes: Mapping[str, Shape], opset: int) -> bool:
    if _is_standard(node, "Slice"):
        before = shapes.get(node.input[0]) if node.input else None
        return opset == 10 and before is not None and any(not isinstance(dim, int) for dim in before)
    if _is_standard(node, "NonZero"):
        return bool(node.input) and shapes.get(node.input[0]) == ()
    if _is_standard(node, "Attention"):
        return any(0 in (shapes.get(name) or ()) for name in node.output)
    return _is_standard(node, "Einsum") and any(
        not _agree(dims) for dims in _shared_dims(_equation(node), [shapes.get(name) for name in node.input])
    )


def _is_standard(node: NodeProto, *ops: str) -> bool:
    return node.op_type in ops and node.domain in ("", "ai.onnx")


def _agree(dims: Sequence[int | str | None]) -> bool:
    return len(dims) < 2 or (dims[0] is not None and all(dim == dims[0] for dim in dims))


def _shared_dims(equation: str, shapes: Sequence[Shape]) -> Iterator[list[int | str | None]]:
    """For each letter of the result, and each axis of the ellipsis counted from its end: the operands' dims there."""
    terms, _, result = equation.partition("->")
    found: dict[str | int, list[int | str | None]] = {}
    for term, shape in zip(terms.split(","), shapes, strict=False):
        if shape is None:
            continue
        before, dots, after = term.partition("...")
        rest = len(shape) - len(before) - len(after)
        if rest < 0 or (rest and not dots):
            continue
        places: list[str | int] = [*before, *range(-rest, 0), *after]
        for place, dim in zip(places, shape, strict=True):
            if isinstance(place, int) or place in result:
                found.setdefault(place, []).append(dim)
    yield from found.values()


def _equation(node: NodeProto) -> str:
    for attribute in node.attribute:
        if attribute.name == "equation" and attribute.type == AttributeProto.STRING:
            return attribute.s.decode(errors="replace").replace(" ", "")
    return ""


def _shape(value: ValueInfoProto) -> Shape:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
