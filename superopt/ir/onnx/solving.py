# pyright: basic
"""Dims that onnx's inference leaves open and that follow: the last one of a Reshape, by counting elements; those of an
Expand or a sum, from what is known of operands; the two that a product adds up over, which are equal.

    solve(graph)    a graph with inferred types; symbols that inference invented become what they mean

A meaning holds in every run that does not fail, with sizes of 1 or more: a Reshape of nothing may have any dims beside
a 0. Symbols of the model's inputs keep their names. Bodies have their outer symbols replaced and are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto

from superopt.ir.onnx.integers import Integers, Values, attribute_of
from superopt.ir.onnx.products import ONE, Product, Size, broadcast, cancelled, product, size_of
from superopt.ir.onnx.symbols import bodies_of
from superopt.ir.types import Dim

Shape = Sequence[Size]

_POINTWISE = frozenset(
    ("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
     "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor")
)  # fmt: skip
_WHOLE = 1 << 31
"""An end of a Slice from here on is the end of the axis: what exporters write for it."""


ROUNDS = 4
"""What is learned late may say more of what came before."""


def solve(graph: GraphProto) -> dict[str, list[Dim]]:
    """Shapes that are known and that the graph does not say, by the names of values: None for dims that are open."""
    solver = _Solver(graph)
    for _ in range(ROUNDS):
        known = len(solver.meanings)
        solver.run()
        if len(solver.meanings) == known:
            break
    if solver.meanings:
        _replace(graph, solver.told())
    return {name: [size and size.dim for size in map(solver._now, shape)] for name, shape in solver.found.items()}


class _Solver:
    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.shapes = {v.name: _dims(v.type) for v in (*graph.value_info, *graph.input, *graph.output)}
        self.shapes |= {t.name: [Product(d) for d in t.dims] for t in graph.initializer}
        self.needed = _needed(graph)
        self.meanings: dict[str, Product] = {}
        self.met: dict[str, int] = {}
        """Symbols in the order in which they come up; those of inputs come first and mean themselves."""
        self.seen: set[str] = set()
        """Those that have come up in this round."""
        for value in graph.input:
            self._meet(self.shapes.get(value.name))
        self.own = len(self.met)
        self.capped: dict[str, Product] = {}
        """Symbols of lists cut to a size, which are shorter where they have not so many elements."""
        self.spread: dict[str, tuple[Size, ...]] = {}
        """Symbols of results that may be one of several sizes, or another where that is 1."""
        self.found: dict[str, Shape] = {}
        """Shapes of values of which inference says nothing."""
        self.integers = Integers(graph, self.shape, self._now)

    def run(self) -> None:
        """Once over all nodes, with what is known already."""
        self.seen = set(list(self.met)[: self.own])
        for node in self.graph.node:
            if not node.output or node.domain not in ("", "ai.onnx"):
                self._see(node)
                continue
            self.integers.visit(node)
            if node.output[0] in self.needed:
                self._compare(node)
            self._fill(node)
            self._see(node)
            if node.op_type == "Reshape" and node.output[0] in self.needed:
                self._count(node)

    def shape(self, name: str) -> Shape | None:
        found = self.shapes.get(name)
        return None if found is None else [self._now(size) for size in found]

    def _now(self, size: Size) -> Size:
        """With the meaning of every symbol, and of those in it: some were learned after it."""
        found = size
        while found is not None and any(symbol in self.meanings for symbol in found.symbols):
            found = found.under(self.meanings)
        if size is not None and found is not None and size.dim in self.meanings:
            self.meanings[str(size.dim)] = found
        return found

    def told(self) -> dict[str, int | str]:
        """Symbols that are a number, or another symbol."""
        found = {name: self._now(meaning) for name, meaning in self.meanings.items()}
        return {name: size.dim for name, size in found.items() if size is not None and size.dim is not None}

    def is_positive(self, size: Product) -> bool:
        """Whether it is 1 or more where the inputs' sizes are: others, such as what NonZero finds, may be 0."""
        return size.number > 0 and all(self.met.get(symbol, self.own) < self.own for symbol in size.symbols)

    def _see(self, node: NodeProto) -> None:
        for name in node.output:
            self._meet(self.shapes.get(name))

    def _meet(self, shape: Shape | None) -> None:
        for size in shape or ():
            for symbol in () if size is None else size.symbols:
                self.met.setdefault(symbol, len(self.met))
                self.seen.add(symbol)

    def _fill(self, node: NodeProto) -> None:
        """Symbols that come up with this node, by what its result must be."""
        shape = self.shape(node.output[0])
        if shape is None:
            self._find(node)
            return
        if not any(self._is_new(size) for size in shape):
            return
        rule = _RESULTS.get(node.op_type) or (_pointwise if node.op_type in _POINTWISE else None)
        if node.op_type in ("Reshape", "Expand") and not _has(node, 1):
            return  # as the first opsets had it, with an attribute
        expected = rule(self, node, shape) if rule else None
        if expected is not None and len(expected) == len(shape):
            for size, found in zip(shape, expected, strict=True):
                if found is not None and found.number > 0 and self._is_new(size) and size not in (None, found):
                    assert size is not None
                    self._learn(size.symbols[0], found)

    def _find(self, node: NodeProto) -> None:
        """A shape of which inference knows not even the rank."""
        found: Shape | None = None
        if node.op_type in ("Reshape", "Expand"):
            if not _has(node, 1):
                return
            target = self.integers.of(node.input[1])
            if target is not None and node.op_type == "Reshape":
                found = _reshaped(self, node, [None] * len(target))
            elif target is not None and all(size is None or size.number > 0 for size in target):
                found = _expanded(self, node, ())
        elif node.op_type in _POINTWISE:
            found = _pointwise(self, node, ())
        elif node.op_type in _LIKE_FIRST:
            found = self.shape(node.input[0])
        elif rule := _FOUND.get(node.op_type):
            found = rule(self, node, ())
        if found is not None:
            self.found[node.output[0]] = self.shapes[node.output[0]] = list(found)

    def _is_new(self, size: Size) -> bool:
        return size is not None and isinstance(size.dim, str) and size.dim not in self.seen

    def _learn(self, symbol: str, meaning: Product) -> None:
        now = self._now(meaning)
        if now is not None and symbol not in now.symbols and symbol not in self.meanings:
            self.meanings[symbol] = now

    def _compare(self, node: NodeProto) -> None:
        """Sizes that are equal in a run that does not fail."""
        if node.op_type == "MatMul":
            a, b = (self.shape(name) for name in node.input)
            if a and b:
                self._equate(a[-1], b[-2 if len(b) > 1 else 0])
        for sizes, result in self._met_at(node):
            for size in sizes:
                name = size.dim if size is not None else None
                if isinstance(name, str) and self.met.get(name, 0) >= self.own:
                    self._settle(name, sizes, result)
            if result is not None and isinstance(result.dim, str):
                self.spread.setdefault(result.dim, sizes)

    def _met_at(self, node: NodeProto) -> Iterator[tuple[tuple[Size, ...], Size]]:
        """Axis by axis, the sizes that broadcast to one another, and the result's."""
        shapes, result = [self.shape(name) for name in node.input if name], self.shape(node.output[0])
        if node.op_type == "Expand":
            shapes = [shapes[0], self.integers.of(node.input[1])]
        elif node.op_type == "MatMul" and all(shape is not None and len(shape) > 1 for shape in (*shapes, result)):
            *shapes, result = [list(shape or ())[:-2] for shape in (*shapes, result)]
        elif node.op_type not in _POINTWISE:
            return
        if result is not None and all(shape is not None for shape in shapes):
            for *sizes, size in zip_longest(*(list(s or ())[::-1] for s in (*shapes, result)), fillvalue=ONE):
                yield tuple(dict.fromkeys(sizes)), size

    def _settle(self, name: str, sizes: tuple[Size, ...], result: Size) -> None:
        """A list cut to a length that meets that length has it: one of fewer elements would not fit, and has more than
        one. What came of a size that met others, and meets others to give that size again, was that size all along."""
        cap = self._now(self.capped.get(name))
        if cap is not None and cap in sizes:
            self._learn(name, cap)
        elif result is not None and result in map(self._now, self.spread.get(name, ())):
            self._learn(name, result)

    def _count(self, node: NodeProto) -> None:
        """A Reshape leaves the number of elements as it is."""
        before, after = (product(self.shape(name) or (None,)) for name in (node.input[0], node.output[0]))
        if before is not None and after is not None:
            self._equate(*cancelled(before, after, set(list(self.met)[: self.own])))

    def _equate(self, a: Size, b: Size) -> None:
        """The symbol that was invented last, alone on its side, is what stands on the other."""
        if a is None or b is None or a == b:
            return
        alone = [(x.symbols[0], y.over(Product(x.number)), y) for x, y in ((a, b), (b, a)) if len(x.symbols) == 1]
        found = [(s, m) for s, m, y in alone if m is not None and self.met.get(s, 0) >= self.own and s not in y.symbols]
        if found:
            symbol, meaning = max(found, key=lambda pair: self.met[pair[0]])
            self._learn(symbol, meaning)


def _pointwise(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    return _joined([solver.shape(name) for name in node.input if name])


def _joined(shapes: Sequence[Shape | None]) -> Shape | None:
    if any(s is None for s in shapes):
        return None
    rank = max((len(s) for s in shapes if s is not None), default=0)
    result: list[Size] = [ONE] * rank
    for each in shapes:
        assert each is not None
        padded = [ONE] * (rank - len(each)) + list(each)
        result = [broadcast(a, b) for a, b in zip(result, padded, strict=True)]
    return result


def _expanded(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    return _joined([solver.shape(node.input[0]), solver.integers.of(node.input[1])])


def _product(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    a, b = (solver.shape(name) for name in node.input)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    batch = _joined([a[:-2], b[:-2]])
    return None if batch is None else [*batch, a[-2], b[-1]]


def _turned(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    before, perm = solver.shape(node.input[0]), attribute_of(node, "perm", None)
    if before is None or (perm is not None and sorted(perm) != list(range(len(before)))):
        return None
    return before[::-1] if perm is None else [before[axis] for axis in perm]


def _averaged(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    """With its axes as an attribute, as opsets had it that inference needs help with."""
    before, axes = solver.shape(node.input[0]), attribute_of(node, "axes", None)
    if before is None or axes is None or len(node.input) > 1 or not attribute_of(node, "keepdims", 1):
        return None
    reduced = {axis % len(before) for axis in axes if before}
    return [ONE if axis in reduced else size for axis, size in enumerate(before)]


def _reshaped(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    before, target = solver.shape(node.input[0]), solver.integers.of(node.input[1])
    found = list(shape)
    if target is not None and len(target) == len(found):
        copies = not attribute_of(node, "allowzero", 0)
        for axis, size in enumerate(target):
            if size == Product(0) and copies:
                size = before[axis] if before is not None and axis < len(before) else None
            same = before is not None and axis < len(before) and size == before[axis]
            if size is not None and size.number > 0 and (same or solver.is_positive(size)):
                found[axis] = size  # one that may be 0 may mean another, too
            elif size == Product(0):
                return None  # a result without elements
    dims = list(enumerate(found))
    open_ = [axis for axis, size in dims if size is None or solver._is_new(size)]
    if before is None or len(open_) != 1:
        return found
    total, others = product(before), product(size for axis, size in dims if axis != open_[0])
    if total is None or others is None or not solver.is_positive(others):
        return found
    found[open_[0]] = total.over(others)
    return found


def _flattened(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    before, axis = solver.shape(node.input[0]), attribute_of(node, "axis", 1)
    return None if before is None else [product(before[:axis]), product(before[axis:])]


def _counted(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    """Range, from 0 by steps of 1."""
    start, limit, step = (solver.integers.of(name) for name in node.input)
    return limit if start == [Product(0)] and step == [ONE] and limit and limit[0] is not None else None


def _filled(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    return solver.integers.of(node.input[0])


def _sliced(solver: _Solver, node: NodeProto, shape: Shape) -> Shape | None:
    """Axes that are kept whole."""
    before = solver.shape(node.input[0])
    given = [solver.integers.of(name) if name else None for name in node.input[1:]]
    if before is None or len(given) < 2 or given[0] is None or given[1] is None:
        return None
    count = len(given[0])
    first: Values = [Product(k) for k in range(count)]
    single: Values = [ONE] * count
    axes, steps = given[2] if _has(node, 3) else first, given[3] if _has(node, 4) else single
    if axes is None or steps is None or not len(given[1]) == len(axes) == len(steps) == count:
        return None
    found = list(before)
    for start, end, axis, step in zip(given[0], given[1], axes, steps, strict=True):
        if axis is None or axis.symbols or not -len(found) <= axis.number < len(found):
            return None
        size, result = found[axis.number], shape[axis.number]
        whole = end is not None and (end == size or (not end.symbols and end.number >= _WHOLE))
        if start != Product(0) or step != ONE or not whole:
            found[axis.number] = None
        if (
            start == Product(0) and step == ONE and end is not None and end.symbols and end.dim is not None
            and size is not None and not size.symbols and size.number > 1 and solver._is_new(result)
        ):  # fmt: skip
            assert result is not None
            solver.capped[result.symbols[0]] = end
    return found


_RESULTS: dict[str, Callable[[_Solver, NodeProto, Shape], Shape | None]] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "Flatten": _flattened,
    "MatMul": _product,
    "Range": _counted,
    "Reshape": _reshaped,
    "Slice": _sliced,
}


_LIKE_FIRST = frozenset(
    ("Abs", "Cast", "Clip", "Elu", "Erf", "Exp", "Identity", "IsInf", "IsNaN", "LayerNormalization", "LeakyRelu", "Log",
     "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Sigmoid", "Softmax", "Sqrt", "Tanh")
)  # fmt: skip
"""Operators whose first result has the shape of their first operand."""
_FOUND = {"MatMul": _product, "ReduceMean": _averaged, "Transpose": _turned}
"""What stands between one Reshape and the next: without it, inference would have to begin again for each."""


def _has(node: NodeProto, position: int) -> bool:
    return len(node.input) > position and bool(node.input[position])


_OF_SHAPES = frozenset(("EyeLike", "RandomNormalLike", "RandomUniformLike", "Shape", "Size"))


def _needed(graph: GraphProto) -> set[str]:
    """Values whose elements a result surely depends on. A node that nobody reads may be left out of a run, and cannot
    fail it; nor does one of which only the shape is read, where that is known, or that only a branch reads."""
    needed = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if needed.intersection(node.output) and node.op_type not in _OF_SHAPES:
            needed.update(node.input[:1] if node.op_type == "CastLike" else node.input)
    return needed


def _dims(type_: TypeProto) -> list[Size] | None:
    tensor = type_.tensor_type
    if not type_.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return [size_of(d.dim_value if d.HasField("dim_value") else d.dim_param or None) for d in tensor.shape.dim]


def _replace(graph: GraphProto, meanings: Mapping[str, int | str]) -> None:
    for value in (*graph.value_info, *graph.output):
        _rename(value, meanings)
    for node in graph.node:
        for body in bodies_of(node):
            for value in body.input:
                _rename(value, meanings)
            _replace(body, meanings)


def _rename(value: ValueInfoProto, meanings: Mapping[str, int | str]) -> None:
    if not value.type.HasField("tensor_type"):
        return
    for dim in value.type.tensor_type.shape.dim:
        found = meanings.get(dim.dim_param) if dim.dim_param else None
        if isinstance(found, int):
            dim.dim_value = found
        elif found is not None:
            dim.dim_param = found
