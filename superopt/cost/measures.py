"""Sizes of values and bytes of nodes, told from types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from superopt.cost.kinds import KINDS
from superopt.ir.graph import Node, Value
from superopt.ir.types import Dim, DType, TensorType

Shape: TypeAlias = tuple[int, ...]

UNKNOWN_SIZE = 16
UNKNOWN_SHAPE = (UNKNOWN_SIZE, UNKNOWN_SIZE, UNKNOWN_SIZE)
_DEEPEST_GUESS = 6


@dataclass(frozen=True)
class Measures:
    """Shapes of values, symbols replaced by their sizes; what is unknown counts as if it were small."""

    sizes: Mapping[str, int]

    def shape(self, value: Value | None, depth: int = 0) -> Shape:
        if value is None:
            return ()
        type_ = value.type
        if not isinstance(type_, TensorType) or type_.shape is None:
            return self._guess(value, depth)
        return tuple(self._size(d) for d in type_.shape)

    def elements(self, value: Value | None) -> int:
        return math.prod(self.shape(value)) if value is not None else 0

    def bytes(self, value: Value) -> float:
        type_ = value.type
        bits = type_.dtype.bits if isinstance(type_, TensorType) and type_.dtype is not None else 32
        return self.elements(value) * bits / 8

    def _size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.sizes.get(dim or "", UNKNOWN_SIZE)

    def _guess(self, value: Value, depth: int) -> Shape:
        """Like the largest operand; a product like its two matrices. ONNX itself types no operator of the runtime's."""
        node = value.node
        shapes = [self.shape(v, depth + 1) for v in node.inputs] if node and depth < _DEEPEST_GUESS else []
        if not shapes or node is None or value.index > 0:
            return UNKNOWN_SHAPE if not shapes else ()
        if KINDS.get(node.op) == "product" and len(shapes) > 1 and min(map(len, shapes[:2])) > 1:
            left, right = shapes[:2]
            return (*left[:-1], right[-2 if node.attribute("transB", 0) else -1])
        return shapes[0] if KINDS.get(node.op) in ("attention", "reduction") else max(shapes, key=math.prod)


def operand(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def moved(node: Node, measures: Measures) -> float:
    inputs = {v for v in node.inputs if v is not None}
    return sum(map(measures.bytes, inputs)) + sum(map(measures.bytes, node.outputs))


def typed(node: Node, style: str) -> str:
    """With the element type unless that is float32."""
    result = node.outputs[0].tensor_type
    dtype = None if result is None else result.dtype
    return style if dtype in (None, DType.FLOAT32) else f"{style} {dtype}"
