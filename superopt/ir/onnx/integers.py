# pyright: basic
"""Short integers that a graph computes from shapes, element by element: the target of a Reshape, for one.

Elements are products of sizes; bools are 0 and 1. What is no such thing is not known. onnx's own inference follows some
of these operators too, without division, comparison or choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from superopt.ir.onnx.products import ONE, Product, Size, product

LARGEST = (1 << 31) - 1
LONGEST = 16
"""Elements of a list that is followed; shapes have fewer."""
Values: TypeAlias = "list[Size]"
_WHOLE = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


class Integers:
    """What is known of the integers of one graph; a scalar is a list of one."""

    def __init__(
        self, graph: GraphProto, shape: Callable[[str], Sequence[Size] | None], now: Callable[[Size], Size]
    ) -> None:
        """`now`: a size with all that is known of its symbols by now."""
        self.shape, self._now = shape, now
        self._known: dict[str, Values] = {}
        for tensor in graph.initializer:
            self._remember(tensor.name, _read(tensor))

    def of(self, name: str) -> Values | None:
        found = self._known.get(name)
        return None if found is None else [self._now(size) for size in found]

    def visit(self, node: NodeProto) -> None:
        rule = _RULES.get(node.op_type)
        if rule is not None:
            self._remember(node.output[0], rule(self, node))

    def _remember(self, name: str, found: Values | None) -> None:
        if found is not None and len(found) <= LONGEST:
            self._known[name] = found

    def is_list(self, name: str) -> bool:
        """A scalar or of one axis: of more, the order of elements says less."""
        shape = self.shape(name)
        return shape is not None and len(shape) <= 1


def _read(tensor: TensorProto) -> Values | None:
    small = tensor.data_type in _WHOLE and len(tensor.dims) <= 1 and sum(tensor.dims) <= LONGEST
    if not small or tensor.data_location == TensorProto.EXTERNAL:
        return None
    return [_bounded(Product(int(i))) for i in numpy_helper.to_array(tensor).reshape(-1)]


def attribute_of(node: NodeProto, name: str, default: Any = None) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _constant(known: Integers, node: NodeProto) -> Values | None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return _read(attribute.t)
        if attribute.name in ("value_int", "value_ints"):
            return [Product(int(i)) for i in np.atleast_1d(helper.get_attribute_value(attribute))]
    return None


def _shape(known: Integers, node: NodeProto) -> Values | None:
    shape = known.shape(node.input[0])
    return None if shape is None else list(shape)[attribute_of(node, "start", 0) : attribute_of(node, "end")]


def _size(known: Integers, node: NodeProto) -> Values | None:
    shape = known.shape(node.input[0])
    return None if shape is None else [product(shape)]


def _gather(known: Integers, node: NodeProto) -> Values | None:
    data, indices = known.of(node.input[0]), _numbers(known.of(node.input[1]))
    if data is None or indices is None or not known.is_list(node.input[1]):
        return None
    return [data[i] for i in indices] if all(-len(data) <= i < len(data) for i in indices) else None


def _slice(known: Integers, node: NodeProto) -> Values | None:
    data = known.of(node.input[0])
    if len(node.input) > 1:
        given = [_numbers(known.of(name)) if name else None for name in node.input[1:]]
        starts, ends = given[0], given[1] if len(given) > 1 else None
        steps = given[3] if len(given) > 3 and node.input[4] else [1]
    else:
        starts, ends, steps = attribute_of(node, "starts"), attribute_of(node, "ends"), [1]
    if (
        data is None
        or starts is None
        or ends is None
        or steps is None
        or not len(starts) == len(ends) == len(steps) == 1
    ):
        return None
    return data[starts[0] : ends[0]] if steps[0] == 1 else None


def _same(known: Integers, node: NodeProto) -> Values | None:
    """Another shape, at most one axis, of the same elements."""
    return known.of(node.input[0]) if known.is_list(node.output[0]) else None


def _cast(known: Integers, node: NodeProto) -> Values | None:
    found, to = known.of(node.input[0]), attribute_of(node, "to")
    is_short = found is not None and all(size is None or len(size.symbols) < 2 for size in found)
    return found if to == TensorProto.INT64 or (to == TensorProto.INT32 and is_short) else None


def _concat(known: Integers, node: NodeProto) -> Values | None:
    parts: Values = []
    for name in node.input:
        found, shape = known.of(name), known.shape(name)
        if found is None:
            if shape is None or len(shape) != 1 or shape[0] is None or shape[0].symbols:
                return None
            found = [None] * min(shape[0].number, LONGEST + 1)
        parts += found
    return parts


def _pairwise(combine: Callable[[Product, Product], Size]) -> Callable[[Integers, NodeProto], Values | None]:
    def rule(known: Integers, node: NodeProto) -> Values | None:
        rows = _side_by_side(known, node)
        if rows is None:
            return None
        return [None if a is None or b is None else combine(a, b) for a, b in rows]

    return rule


def _side_by_side(known: Integers, node: NodeProto) -> list[tuple[Size, ...]] | None:
    lists = [known.of(name) for name in node.input]
    length = max((len(found) for found in lists if found is not None), default=0)
    if any(found is None or len(found) not in (1, length) for found in lists):
        return None
    spread = [found * length if len(found) == 1 else found for found in lists if found is not None]
    return list(zip(*spread, strict=True))


def _add(a: Product, b: Product) -> Size:
    if not a.number or not b.number:
        return b if not a.number else a
    total = a.number + b.number
    return _bounded(Product(total)) if not a.symbols and not b.symbols else None


def _times(a: Product, b: Product) -> Size:
    found = a.times(b)
    return None if found is None else _bounded(found)


def _bounded(size: Product) -> Size:
    """None where integers of 32 bits would turn over."""
    return size if abs(size.number) <= LARGEST else None


def _subtract(a: Product, b: Product) -> Size:
    return _add(a, Product(-b.number, b.symbols)) if a.number or not b.number else None


def _divide(a: Product, b: Product) -> Size:
    """Rounding says nothing of a product with symbols, and rounds towards 0 where numbers have signs."""
    if a.symbols or b.symbols:
        return a.over(b) if a.number > 0 and b.number > 0 else None
    return Product(a.number // b.number) if a.number >= 0 and b.number > 0 else None


def _equal(a: Product, b: Product) -> Size:
    if a == b:
        return ONE
    if not a.symbols and not b.symbols:
        return Product(0)
    return Product(0) if (a.number > 0) != (b.number > 0) and _is_negative(a, b) else None


def _is_negative(a: Product, b: Product) -> bool:
    """One is a size, which is never below 0, the other a number that is."""
    return any(not each.symbols and each.number < 0 for each in (a, b))


def _where(known: Integers, node: NodeProto) -> Values | None:
    rows = _side_by_side(known, node)
    if rows is None:
        return None
    return [None if c is None or c.symbols else yes if c.number else no for c, yes, no in rows]


def _filled(known: Integers, node: NodeProto) -> Values | None:
    shape, value = _numbers(known.of(node.input[0])), attribute_of(node, "value")
    filling = _read(value) if value is not None else None  # without one it is a float
    if shape is None or len(shape) != 1 or not 0 <= shape[0] <= LONGEST or not filling:
        return None
    return filling * shape[0]


def _numbers(found: Values | None) -> list[int] | None:
    if found is None or any(size is None or size.symbols for size in found):
        return None
    return [size.number for size in found if size is not None]


_RULES: dict[str, Callable[[Integers, NodeProto], Values | None]] = {
    "Add": _pairwise(_add),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "Div": _pairwise(_divide),
    "Equal": _pairwise(_equal),
    "Gather": _gather,
    "Identity": _same,
    "Mul": _pairwise(_times),
    "Reshape": _same,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Squeeze": _same,
    "Sub": _pairwise(_subtract),
    "Unsqueeze": _same,
    "Where": _where,
}
