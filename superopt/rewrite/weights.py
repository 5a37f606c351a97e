"""Weights combined at export: what depends on constants alone, computed in float64 and rounded once.

Floating-point constants are widened, every node between them and a result works in float64, and only the result is
rounded, to the type that the graph declares for it. Casts between floating-point types on the way round nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from specs import load
from superopt.errors import SuperoptError
from superopt.ir.graph import Attribute, Constant, Node, Value, make_node
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.reference import evaluate_plainly
from superopt.ir.onnx.small import runnable
from superopt.ir.onnx.tensors import CODES
from superopt.ir.tensor import Array, ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType, TensorType, element_count
from superopt.rewrite.constants import WITHOUT_FORMULA
from superopt.rewrite.rounding import rounded
from superopt.runtime.evaluate import evaluate

BOUND = 2 << 30
"""Bytes that combining may hold in memory at once."""

WIDENED = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})
_WIDE = CODES[DType.FLOAT64]
_NARROW_CODES = frozenset(CODES[dtype] for dtype in WIDENED)
_TYPE_ATTRIBUTES = {"Cast": "to", "EyeLike": "dtype"}
_MAY_TRAP = frozenset({"Div", "Mod"})
"""Integer division: processors trap on a zero divisor, and on the smallest number divided by −1."""


class CannotCombine(Exception):
    """Why weights stay as they are: the rewrite that needs them combined is not made."""


def combine(model: Model, wanted: Sequence[Value], bound: int = BOUND) -> dict[Value, Tensor]:
    """Each wanted value as a tensor of the type it declares; what several of them need is computed once."""
    return _Combiner(model, wanted, bound).run()


def combined_bytes(wanted: Iterable[Value]) -> int:
    """What the results take in the file, told from their types."""
    return sum(_bytes(_static(value)) for value in dict.fromkeys(wanted))


class _Combiner:
    def __init__(self, model: Model, wanted: Sequence[Value], bound: int) -> None:
        self.model, self.bound = model, bound
        self.wanted = dict.fromkeys(wanted)
        self.registry = load()
        self.order = self._order()
        self.waiting = Counter(list(self.wanted))
        for node in self.order:
            self.waiting.update(_read(node))
        self.live: dict[Value, Array] = {}
        self.worst: dict[Value, int] = {}
        """What is behind a value: 0 finite numbers only, 1 infinities, 2 NaN. Nothing worse may be in it."""
        self.held = 0

    def run(self) -> dict[Value, Tensor]:
        found: dict[Value, Tensor] = {}
        for value in self.wanted:
            if isinstance(value.producer, Constant):
                found[value] = value.producer.tensor
        for node in self.order:
            self._compute(node)
            for value in node.outputs:
                if value in self.wanted:
                    found[value] = self._rounded(value)
                    self.held += found[value].nbytes
                    self._release(value)
        return {value: found[value] for value in self.wanted}

    def _order(self) -> list[Node]:
        """The nodes behind the wanted values, each after what it reads, without recursion."""
        done: dict[Node, None] = {}
        for value in self.wanted:
            stack = [value.producer]
            while stack:
                top = stack[-1]
                if isinstance(top, Constant) or top in done:
                    stack.pop()
                    continue
                if not isinstance(top, Node):
                    raise CannotCombine("depends on an input of the graph")
                waiting = [
                    v.producer for v in _read(top) if v.producer not in done and not isinstance(v.producer, Constant)
                ]
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    self._refuse_unknown(top)
                    done[top] = None
                    stack.pop()
        return list(done)

    def _refuse_unknown(self, node: Node) -> None:
        own = (node.domain, node.op) in self.model.functions
        plain = node.op in WITHOUT_FORMULA and not node.domain
        if own or node.bodies or not (plain or self.registry.find(node.op, node.domain)):
            raise CannotCombine(f"{node.kind} has no evaluation")

    def _compute(self, node: Node) -> None:
        types = {v: _static(v) for v in node.outputs if v.type is not None}
        if node.op == "Constant":
            arrays = [self._literal(node)]
        else:
            operands = {v: self._operand(v) for v in _read(node)}
            self._reserve(sum(_wide_bytes(t) for t in types.values()) + _scratch(node, types), node)
            _refuse_traps(node, operands)
            arrays = self._evaluate(node, operands, tuple(v in types for v in node.outputs))
        numbers = [v for v in _read(node) if self.live[v].dtype.kind == "f"]
        for (value, type_), array in zip(types.items(), arrays, strict=True):
            if array.shape != type_.shape:
                raise CannotCombine(f"{node.kind}: expected the shape {type_.shape}, found {array.shape}")
            if value in self.waiting:
                self._hold(value, array, max(self.worst[v] for v in numbers) if numbers else _worst(array))
        for value in _read(node):
            self._release(value)

    def _operand(self, value: Value) -> Tensor:
        if value not in self.live:
            assert isinstance(value.producer, Constant)
            array = self._widened(value.producer.tensor)
            self._hold(value, array, _worst(array))
        return ArrayTensor(self.live[value])

    def _widened(self, tensor: Tensor) -> Array:
        if not tensor.readable:
            raise CannotCombine(f"a constant of type {tensor.type} cannot be read")
        _refuse_type(tensor.dtype)
        self._reserve(_wide_bytes(tensor.type), None)
        return _wide(tensor.numpy())

    def _literal(self, node: Node) -> Array:
        tensor = Value(node).constant
        if tensor is not None:
            return self._widened(tensor)
        type_ = _static(Value(node))
        small = runnable(self.model, [(node, (True,))], {}, {Value(node): type_})
        return _wide(self._run(node, small.data, small.feeds)[0])

    def _evaluate(self, node: Node, operands: dict[Value, Tensor], present: tuple[bool, ...]) -> list[Array]:
        """The node on widened operands, its own types widened likewise."""
        attributes = {name: _wide_attribute(node, name, value) for name, value in node.attributes}
        if node.op == "ConstantOfShape" and "value" not in attributes:
            attributes["value"] = ArrayTensor(np.zeros(1))
        wide = make_node(node.op, node.inputs, attributes, node.types, domain=node.domain)
        outputs = {
            v: TensorType(_wide_dtype(_static(v).dtype), None)
            for v, there in zip(wide.outputs, present, strict=True)
            if there
        }
        small = runnable(self.model, [(wide, present)], operands, outputs)
        return self._run(node, small.data, small.feeds)

    def _run(self, node: Node, data: bytes, feeds: dict[str, Array]) -> list[Array]:
        try:
            return evaluate(data, feeds)
        except SuperoptError as error:
            refusal = error
        try:
            return evaluate_plainly(data, feeds)
        except SuperoptError as error:
            raise CannotCombine(f"{node.kind} has no evaluation in float64: {refusal}; {error}") from None

    def _rounded(self, value: Value) -> Tensor:
        array, type_ = self.live[value], _static(value)
        assert type_.dtype is not None
        if type_.dtype not in WIDENED:
            if array.dtype != numpy_dtype(type_.dtype):
                raise CannotCombine(f"expected elements of type {type_.dtype}, found {array.dtype}")
            return ArrayTensor(array)
        result = rounded(array, type_.dtype)
        lost = np.isfinite(array) & ~np.isfinite(result)
        if lost.any():
            largest = float(np.max(np.abs(array[lost])))
            raise CannotCombine(f"{largest:.6g} overflows {type_.dtype}")
        if _worst(result) > self.worst[value]:
            what = "no number" if self.worst[value] else "not finite"
            raise CannotCombine(
                f"a result of {'' if self.worst[value] else 'finite '}numbers is {what} in {type_.dtype}"
            )
        return ArrayTensor(result)

    def _reserve(self, size: int, node: Node | None) -> None:
        if self.held + size > self.bound:
            what = "widening a constant" if node is None else node.kind
            raise CannotCombine(f"{what} needs {self.held + size} bytes in memory, the bound is {self.bound}")

    def _hold(self, value: Value, array: Array, worst: int) -> None:
        self.live[value], self.worst[value] = array, worst
        self.held += array.nbytes

    def _release(self, value: Value) -> None:
        self.waiting[value] -= 1
        if not self.waiting[value]:
            self.held -= self.live.pop(value).nbytes


def _read(node: Node) -> list[Value]:
    return list(dict.fromkeys(node.operands))


def _static(value: Value) -> TensorType:
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.static_shape is None:
        raise CannotCombine(f"a value of unknown type or size: {type_ or '?'}")
    _refuse_type(type_.dtype)
    return type_


def _refuse_type(dtype: DType) -> None:
    if dtype not in WIDENED and dtype is not DType.BOOL and not (dtype.is_integer and dtype.bits >= 8):
        raise CannotCombine(f"elements of type {dtype} are not combined")


def _bytes(type_: TensorType) -> int:
    assert type_.dtype is not None
    assert type_.static_shape is not None
    return element_count(type_.static_shape) * type_.dtype.bits // 8


def _wide_bytes(type_: TensorType) -> int:
    return _bytes(TensorType(_wide_dtype(type_.dtype), type_.shape))


def _wide_dtype(dtype: DType | None) -> DType | None:
    return DType.FLOAT64 if dtype in WIDENED else dtype


def _wide(array: Array) -> Array:
    narrow = array.dtype.kind == "f" or array.dtype == numpy_dtype(DType.BFLOAT16)
    return np.asarray(array, dtype=np.float64 if narrow else None, order="C")


def _wide_attribute(node: Node, name: str, value: Attribute) -> Attribute:
    if _TYPE_ATTRIBUTES.get(node.op) == name and not node.domain:
        return _WIDE if value in _NARROW_CODES else value
    return ArrayTensor(_wide(value.numpy())) if isinstance(value, Tensor) else value


def _scratch(node: Node, types: dict[Value, TensorType]) -> int:
    """What a Conv takes to lay out its windows as a matrix."""
    if node.op != "Conv" or node.domain or node.inputs[1] is None:
        return 0
    filters, result = _static(node.inputs[1]).static_shape, types[Value(node)].static_shape
    assert filters is not None
    assert result is not None
    return 8 * element_count(filters[1:]) * (element_count(result) // max(result[1], 1))


def _refuse_traps(node: Node, operands: dict[Value, Tensor]) -> None:
    if node.op not in _MAY_TRAP or node.inputs[1] is None:
        return
    divisor = operands[node.inputs[1]].numpy()
    if divisor.dtype.kind in "iu" and np.isin(divisor, (0, -1)).any():
        raise CannotCombine(f"{node.kind}: an integer divided by 0 or −1")


def _worst(array: np.ndarray[Any, Any]) -> int:
    if array.dtype.kind not in "fV" or bool(np.isfinite(array).all()):
        return 0
    return 2 if bool(np.isnan(array).any()) else 1
