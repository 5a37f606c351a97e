"""Operands that broadcast or do not, as the run will tell: a mask of one size, scores of another.

Their result's type says what comes of it: in a run that does not fail, the operand's size there is the result's, or 1.
So the operand, expanded to that size, is the same operand, and of a size that rules can read. The size is taken from
the operand itself, where another axis has it, or from an input of the graph: nothing else is sure to be there, whatever
is rewritten. Nodes are made for those who read; a rewrite that uses them brings them into the graph, and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from superopt.ir.graph import Node, Parameter, Value, make_node
from superopt.ir.types import Dim, DType, TensorType
from superopt.rewrite.constants import Constants
from superopt.rewrite.sizes import dtype_of

STRETCHED = frozenset({"Add", "Div", "Mul", "Sub"})
LEAST_OPSET = 10
"""From here on Slice takes its ends as inputs."""
SHAPE_OF_AXES = 15
"""And from here on Shape gives those that are asked for."""


@dataclass(frozen=True)
class Stretcher:
    opset: int
    constants: Constants

    def operands(self, node: Node) -> tuple[Value | None, ...]:
        """The node's inputs, those expanded of which it is not known whether they broadcast."""
        shape = _shape(Value(node))
        if node.domain or node.op not in STRETCHED or self.opset < LEAST_OPSET or shape is None:
            return node.inputs
        return tuple(v and self._stretched(v, shape, node) for v in node.inputs)

    def _stretched(self, value: Value, shape: Sequence[Dim], node: Node) -> Value:
        own = _shape(value)
        if own is None or len(own) > len(shape):
            return value
        wanted = shape[len(shape) - len(own) :]
        open_ = [k for k, (a, b) in enumerate(zip(own, wanted, strict=True)) if isinstance(a, str) and a != b]
        if not open_ or any(wanted[k] is None for k in open_):
            return value
        target = [wanted[k] if k in open_ else 1 for k in range(len(own))]
        listed = self.listed(target, value, (Value(node),))
        if listed is None:
            return value
        dims = tuple(wanted[k] if k in open_ else dim for k, dim in enumerate(own))
        return Value(make_node("Expand", (value, listed), (), (TensorType(dtype_of(value), dims),)))

    def listed(self, target: Sequence[Dim], own: Value, others: Sequence[Value]) -> Value | None:
        """The sizes as a list that the run computes: taken from a value itself, or from inputs of the graph that it or
        others are computed from; None where none of these has them."""
        if all(isinstance(dim, int) for dim in target):
            return self.constants.list_of([dim for dim in target if isinstance(dim, int)])
        parts: list[Value] = []
        for dim in target:
            if isinstance(dim, int):
                parts.append(self.constants.list_of([dim]))
                continue
            source = own if dim in (_shape(own) or ()) else _source(dim, (own, *others)) if dim is not None else None
            if source is None:
                return None
            parts.append(self._taken(source, str(dim)))
        return Value(make_node("Concat", parts, {"axis": 0}, (_list(len(parts)),)))

    def _taken(self, source: Value, name: str) -> Value:
        shape = _shape(source) or ()
        axis = shape.index(name)
        if self.opset >= SHAPE_OF_AXES:
            return Value(make_node("Shape", (source,), {"start": axis, "end": axis + 1}, (_list(1),)))
        whole = make_node("Shape", (source,), (), (_list(len(shape)),))
        ends = (self.constants.list_of([k]) for k in (axis, axis + 1, 0))
        return Value(make_node("Slice", (Value(whole), *ends), (), (_list(1),)))


def _source(name: str, values: Sequence[Value]) -> Value | None:
    """The first input of the graph with that size."""
    found = {v.producer.position: v for v in _below(values, name) if isinstance(v.producer, Parameter)}
    return found[min(found)] if found else None


def _below(values: Sequence[Value], name: str) -> Iterator[Value]:
    """What they depend on by way of values of that size, and they themselves."""
    met = {value for value in values if name in (_shape(value) or ())}
    stack = list(met)
    while stack:
        value = stack.pop()
        yield value
        for operand in value.node.inputs if value.node is not None else ():
            if operand is not None and operand not in met and name in (_shape(operand) or ()):
                met.add(operand)
                stack.append(operand)


def _shape(value: Value) -> tuple[Dim, ...] | None:
    type_ = value.tensor_type
    return None if type_ is None else type_.shape


def _list(length: int) -> TensorType:
    return TensorType(DType.INT64, (length,))
