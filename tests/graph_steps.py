# pyright: basic
"""Steps that random models are made of: each adds a node or a few to a graph under construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

Draw = Callable[[st.SearchStrategy[Any]], Any]
Shape = tuple[int, ...]

FLOATS = ("float32", "float64", "float16")
NUMBERS = (*FLOATS, "int64", "int32")
RANDOM = "RandomUniformLike"
_CODES = {str(np.dtype(d)): helper.np_dtype_to_tensor_dtype(np.dtype(d)) for d in (*NUMBERS, "bool")}


@dataclass(frozen=True)
class Known:
    """A value under construction: what it will be at run time, whatever the model declares."""

    name: str
    dtype: str
    shape: Shape


@dataclass
class Builder:
    """One graph under construction. A body sees `outer` values; names are unique in the whole model."""

    draw: Draw
    opset: int
    old: bool
    counter: list[int]
    outer: list[Known] = field(default_factory=list)
    values: list[Known] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    no_initializers: bool = False
    """Before IR version 4 initializers had to be inputs as well, which a body's cannot be."""

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def fresh(self) -> str:
        self.counter[0] += 1
        return f"v{self.counter[0]}"

    def any_value(self, test: Callable[[Known], bool] = lambda v: True) -> Known | None:
        found = [v for v in (*self.outer, *self.values) if test(v)]
        if self.pick((True, False)):
            found = found[-3:]
        return self.pick(found) if found else None

    def add(self, op: str, inputs: Sequence[str], dtype: str, shape: Shape, **attributes: Any) -> Known:
        value = Known(self.fresh(), dtype, shape)
        name = self.pick((f"n{self.counter[0]}", ""))
        self.nodes.append(helper.make_node(op, list(inputs), [value.name], name=name, **attributes))
        self.values.append(value)
        return value

    def constant(self, array: np.ndarray) -> str:
        """An initializer or a Constant node."""
        name = self.fresh()
        if not self.no_initializers and self.pick((True, False)):
            self.initializers.append(numpy_helper.from_array(array, name))
            return name
        self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def numbers(self, dtype: str, shape: Shape) -> np.ndarray:
        """Zeros, ones or a few small numbers, so that neutral and equal constants are common."""
        kind = self.pick(("zero", "one", "some"))
        if kind == "zero":
            return np.zeros(shape, dtype)
        if kind == "one":
            return np.ones(shape, dtype)
        rng = np.random.default_rng(self.number(0, 3))
        return rng.integers(0 if dtype == "bool" else -3, 2 if dtype == "bool" else 4, shape).astype(dtype)

    def declared(self, value: Known, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(value.name, _CODES[value.dtype], shape)


def _shape_of_operand(b: Builder, shape: Shape) -> Shape:
    """A shape that broadcasts with another: a scalar, ones, a tail, or the same."""
    kind = b.pick(("scalar", "ones", "tail", "same", "wider"))
    if kind == "scalar":
        return ()
    if kind == "ones":
        return (1,) * b.number(0, len(shape))
    if kind == "tail":
        return shape[b.number(0, len(shape)) :]
    return (1, *shape) if kind == "wider" and len(shape) < 4 else shape


def _unary(b: Builder, x: Known) -> None:
    ops = {"bool": ["Not", "Identity"], "int64": ["Neg", "Abs", "Identity"], "int32": ["Neg", "Abs", "Identity"]}
    op = b.pick(ops.get(x.dtype, ["Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Floor", "Identity", "Dropout"]))
    y = b.add(op, [x.name], x.dtype, x.shape)
    if b.pick((True, False)):
        b.add(op, [y.name], x.dtype, x.shape)


def _binary(b: Builder, x: Known) -> None:
    other = b.any_value(lambda v: v.dtype == x.dtype and v.shape == x.shape and v != x)
    shape = x.shape
    if other is None or b.pick((True, False)):
        shape = _shape_of_operand(b, x.shape)
        name = b.constant(b.numbers(x.dtype, shape))
    else:
        name = other.name
    ops = ["And", "Or", "Xor"] if x.dtype == "bool" else ["Add", "Sub", "Mul", "Add", "Mul"]
    inputs = b.pick(([x.name, name], [name, x.name]))
    b.add(b.pick(ops), inputs, x.dtype, np.broadcast_shapes(x.shape, shape))


def _divide(b: Builder, x: Known) -> None:
    if x.dtype in FLOATS:
        array = b.pick((np.array(1, x.dtype), np.array(2, x.dtype), np.ones(x.shape, x.dtype)))
        op = b.pick(("Div", "Pow")) if x.dtype != "float16" else "Div"
        b.add(op, [x.name, b.constant(array)], x.dtype, x.shape)


def _compare(b: Builder, x: Known) -> None:
    if x.dtype in ("float32", "int64"):
        test = b.add(b.pick(("Greater", "Less")), [x.name, b.constant(b.numbers(x.dtype, ()))], "bool", x.shape)
        other = b.constant(b.numbers(x.dtype, _shape_of_operand(b, x.shape)[-len(x.shape) :] if x.shape else ()))
        condition = test.name
        if b.pick((True, False)):
            condition = b.constant(b.numbers("bool", b.pick(((), x.shape))))
        b.add("Where", b.pick(([condition, x.name, other], [condition, other, x.name])), x.dtype, x.shape)


def _cast(b: Builder, x: Known) -> None:
    dtype = b.pick((*NUMBERS, "bool", x.dtype))
    like = b.any_value(lambda v: v.dtype == dtype)
    if b.opset >= 15 and like is not None and b.pick((True, False)):
        y = b.add("CastLike", [x.name, like.name], dtype, x.shape)
    else:
        y = b.add("Cast", [x.name], dtype, x.shape, to=_CODES[dtype])
    if b.pick((True, False)):
        b.add("Cast", [y.name], x.dtype, x.shape, to=_CODES[x.dtype])


def _transpose(b: Builder, x: Known) -> None:
    for _ in range(b.number(1, 2) if x.shape else 0):
        perm = b.draw(st.permutations(range(len(x.shape))))
        x = b.add("Transpose", [x.name], x.dtype, tuple(x.shape[i] for i in perm), perm=perm)


def _reshape(b: Builder, x: Known) -> None:
    for _ in range(b.number(1, 2) if all(x.shape) else 0):
        size = int(np.prod(x.shape))
        targets = [x.shape, (size,), (1, size), (size, 1), tuple(reversed(x.shape))]
        shape = b.pick([t for t in targets if t])
        target = list(shape)
        axis = b.number(0, len(target) - 1)
        if b.pick((True, False)):
            target[axis] = -1
        elif len(shape) <= len(x.shape) and shape[axis] == x.shape[axis]:
            target[axis] = 0
        x = b.add("Reshape", [x.name, b.integers(*target)], x.dtype, shape)


def _with_axes(b: Builder, op: str, x: Known, axes: tuple[int, ...], dtype: str, shape: Shape, since: int) -> Known:
    if b.opset >= since:
        return b.add(op, [x.name, b.integers(*axes)], dtype, shape)
    return b.add(op, [x.name], dtype, shape, axes=axes)


def _squeeze(b: Builder, x: Known) -> None:
    if len(x.shape) < 4:
        axis = b.number(0, len(x.shape))
        y = _with_axes(b, "Unsqueeze", x, (axis,), x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]), 13)
        if b.pick((True, False)):
            axis = b.pick([i for i, d in enumerate(y.shape) if d == 1])
            _with_axes(b, "Squeeze", y, (axis,), x.dtype, (*y.shape[:axis], *y.shape[axis + 1 :]), 13)


def _flatten(b: Builder, x: Known) -> None:
    axis = b.number(0, len(x.shape))
    shape = (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))
    b.add("Flatten", [x.name], x.dtype, shape, axis=axis)


def _concat(b: Builder, x: Known) -> None:
    if x.shape:
        axis, parts = b.number(0, len(x.shape) - 1), b.number(1, 3)
        shape = tuple(d * parts if i == axis else d for i, d in enumerate(x.shape))
        if np.prod(shape) <= 200:
            b.add("Concat", [x.name] * parts, x.dtype, shape, axis=axis)


def _slice(b: Builder, x: Known) -> None:
    if x.shape:
        axis = b.number(0, len(x.shape) - 1)
        size = x.shape[axis]
        start = b.number(0, size) if b.pick((True, False)) else 0
        end = b.pick((size, 2**31 - 1, 2**62)) if b.opset >= 10 else size
        shape = tuple(max(size - start, 0) if i == axis else d for i, d in enumerate(x.shape))
        if b.opset >= 10:
            b.add("Slice", [x.name, b.integers(start), b.integers(end), b.integers(axis)], x.dtype, shape)
        else:
            b.add("Slice", [x.name], x.dtype, shape, starts=[start], ends=[end], axes=[axis])


def _pad(b: Builder, x: Known) -> None:
    if x.dtype in ("float32", "float64") and x.shape:
        before, after = (b.number(0, 1) for _ in range(2))
        pads = [before, *[0] * (len(x.shape) - 1), after, *[0] * (len(x.shape) - 1)]
        shape = (x.shape[0] + before + after, *x.shape[1:])
        if b.opset >= 11:
            b.add("Pad", [x.name, b.integers(*pads)], x.dtype, shape)
        else:
            b.add("Pad", [x.name], x.dtype, shape, pads=pads)


def _expand(b: Builder, x: Known) -> None:
    target = b.pick((x.shape, (1,) * len(x.shape), (2, *x.shape)))
    shape = tuple(np.broadcast_shapes(x.shape, target))
    if len(shape) <= 4 and np.prod(shape) <= 200:
        b.add("Expand", [x.name, b.integers(*target)], x.dtype, shape)


def _reduce(b: Builder, x: Known) -> None:
    if x.dtype in ("float32", "float64", "int64", "int32") and x.shape and all(x.shape):
        axis = b.number(0, len(x.shape) - 1)
        shape = tuple(1 if i == axis else d for i, d in enumerate(x.shape))
        op = b.pick(("ReduceSum", "ReduceMean")) if x.dtype != "int32" else "ReduceSum"
        if op == "ReduceMean" and x.dtype == "int64":
            op = "ReduceSum"
        _with_axes(b, op, x, (axis,), x.dtype, shape, 13 if op == "ReduceSum" else 18)


def _matmul(b: Builder, x: Known) -> None:
    if x.dtype in ("float32", "float64") and len(x.shape) >= 2:
        width = b.number(1, 3)
        weight = b.constant(b.numbers(x.dtype, (x.shape[-1], width)))
        b.add("MatMul", [x.name, weight], x.dtype, (*x.shape[:-1], width))


def _shape(b: Builder, x: Known) -> None:
    """Shapes computed by nodes: whole, one dim, and used again as a target."""
    shape = b.add("Shape", [x.name], "int64", (len(x.shape),))
    if x.shape:
        axis = b.number(0, len(x.shape) - 1)
        b.add("Gather", [shape.name, b.integers(axis)], "int64", (1,))
        if b.opset >= 9 and np.prod(x.shape) <= 200:
            filled = b.add("ConstantOfShape", [shape.name], "float32", x.shape)
            b.add("Reshape", [filled.name, shape.name], "float32", x.shape)
    b.add("Size", [x.name], "int64", ())


def _split(b: Builder, x: Known) -> None:
    if x.shape and x.dtype in ("float32", "int64") and x.shape[0]:
        extra = {"num_outputs": 1} if b.opset >= 18 else {}
        b.add("Split", [x.name], x.dtype, x.shape, axis=0, **extra)


def _variadic(b: Builder, x: Known) -> None:
    if x.dtype in ("float32", "float64"):
        ops = ("Sum", "Max", "Min", "Mean") if x.dtype == "float32" else ("Sum", "Max", "Min")
        b.add(b.pick(ops), [x.name] * b.number(1, 2), x.dtype, x.shape)


def _again(b: Builder, x: Known) -> None:
    """A copy of an earlier node under other names."""
    found = [n for n in b.nodes if len(n.output) == 1 and n.op_type not in ("If", "Loop", RANDOM)]
    if found:
        node = onnx.NodeProto()
        node.CopyFrom(b.pick(found))
        known = next((v for v in b.values if v.name == node.output[0]), None)
        if known is not None:
            node.output[0], node.name = b.fresh(), ""
            b.nodes.append(node)
            b.values.append(Known(node.output[0], known.dtype, known.shape))


def _random(b: Builder, x: Known) -> None:
    """Two draws of one kind, each multiplied away: their number must not change, and the answer stays the same."""
    if x.dtype == "float32":
        for _ in range(2):
            noise = b.add(RANDOM, [x.name], x.dtype, x.shape)
            b.values.remove(noise)
            b.add("Mul", [noise.name, b.constant(np.zeros((), x.dtype))], x.dtype, x.shape)


def _same_type_step(b: Builder, x: Known) -> Known:
    """One node that keeps type and shape, on what the body has or captures."""
    others = [v for v in (*b.outer, *b.values) if v.dtype == x.dtype and v.shape == x.shape]
    op = b.pick(("Xor", "And")) if x.dtype == "bool" else b.pick(("Add", "Mul", "Sub"))
    other = b.constant(b.numbers(x.dtype, ())) if b.pick((True, False)) else b.pick(others or [x]).name
    return b.add(op, [x.name, other], x.dtype, x.shape)


def _body(b: Builder, values: list[Known]) -> Builder:
    inner = Builder(b.draw, b.opset, b.old, b.counter, [*b.outer, *b.values], values, no_initializers=b.old)
    for _ in range(inner.number(0, 2)):
        x = inner.any_value()
        if x is not None:
            inner.pick(PLAIN)(inner, x)
    return inner


def _if(b: Builder, x: Known) -> None:
    condition = b.any_value(lambda v: v.dtype == "bool" and v.shape == ())
    if condition is None:
        return
    branches = []
    for name in ("then", "else"):
        inner = _body(b, [])
        result = _same_type_step(inner, x)
        branches.append(make_graph(inner, name, [], [result]))
    b.add("If", [condition.name], x.dtype, x.shape, then_branch=branches[0], else_branch=branches[1])


def _loop(b: Builder, x: Known) -> None:
    if x.dtype == "bool":
        return
    trip, keep = Known(b.fresh(), "int64", ()), Known(b.fresh(), "bool", ())
    carried = Known(b.fresh(), x.dtype, x.shape)
    inner = _body(b, [trip, keep, carried])
    result = _same_type_step(inner, carried)
    going = inner.add("Identity", [keep.name], "bool", ())
    declared = [inner.declared(trip, []), inner.declared(keep, []), inner.declared(carried)]
    body = make_graph(inner, "body", declared, [going, result])
    count = b.constant(np.array(b.number(0, 2), np.int64))
    b.add("Loop", [count, b.constant(np.array(True)), x.name], x.dtype, x.shape, body=body)


def make_graph(
    b: Builder, name: str, inputs: list[onnx.ValueInfoProto], results: list[Known], extra: Sequence[Any] = ()
) -> onnx.GraphProto:
    outputs = [b.declared(v) for v in results]
    return helper.make_graph(b.nodes, name, inputs, outputs, [*b.initializers, *extra])


PLAIN = (
    _unary, _binary, _binary, _divide, _compare, _cast, _transpose, _reshape, _squeeze, _flatten, _concat, _slice, _pad,
    _expand, _reduce, _matmul, _shape, _split, _variadic, _again,
)  # fmt: skip
WITH_BODIES = (*PLAIN, _if, _loop, _random)
