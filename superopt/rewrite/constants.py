"""What a matcher may know of constants, and the constants that rewrites add; one object for each content.

Nodes are hash-consed by the identity of their operands, so equal numbers made twice must be the same `Constant`, or
equal graphs would look different.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from superopt.ir.graph import Constant, Node, Value
from superopt.ir.tensor import ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType
from superopt.rewrite.finite import SEARCHED, Finite

READABLE = 1 << 16
"""Elements of the largest constant that is looked into for one number that fills it."""
SHORT = 4096
"""Elements of the longest list of axes, pads or dims that is read."""
NEAR = 4
"""Nodes between one and the weights that it is told apart by."""

WITHOUT_FORMULA = frozenset({"Constant", "CastLike", "Shape", "Size"})
"""Operators that have no formula in specs/ and are functions of their inputs all the same."""

Number: TypeAlias = int | float


class Constants:
    """The constants of one optimization, by identity and by content."""

    def __init__(self, is_function: Callable[[Node], bool] = lambda node: True) -> None:
        self.is_function = is_function
        """Whether a node computes a function of its operands, by a definition that is known: no random number, say."""
        self._fills: dict[Tensor, Number | None] = {}
        self._positive: dict[Tensor, bool] = {}
        self.finite = Finite()
        self._made: dict[tuple[DType, tuple[int, ...], bytes], Value] = {}
        self._weights: dict[Node, bool] = {}
        self._repeated: dict[tuple[Tensor, int, int | None], Value | None] = {}
        self._numbers: dict[Value, int] = {}
        self._behind: dict[tuple[Node, int], tuple[int, ...]] = {}

    def tensor(self, value: Value | None) -> Tensor | None:
        found = None if value is None else value.constant
        return found if found is not None and found.readable else None

    def fill(self, value: Value) -> Number | None:
        """The one number that every element equals; None where there is none or it was not looked at."""
        tensor = self.tensor(value)
        if tensor is None:
            return None
        if tensor not in self._fills:
            self._fills[tensor] = _fill(tensor)
        return self._fills[tensor]

    def is_positive(self, value: Value) -> bool:
        """Whether all elements are numbers above 0; no, where that was not looked at."""
        tensor = self.tensor(value)
        if tensor is None or tensor.count > SEARCHED or not tensor.dtype.is_float:
            return False
        if tensor not in self._positive:
            array = tensor.numpy()
            self._positive[tensor] = bool(np.all(np.isfinite(array) & (array > 0)))
        return self._positive[tensor]

    def repeated(self, value: Value, times: int = 2, rank: int | None = None) -> Value | None:
        """What a constant repeats so many times along its last axis, as cosines of a rotary embedding do; None where it
        does not, or is one number. With `rank`, without leading axes of size 1 beyond that."""
        tensor = self.tensor(value)
        if tensor is None or tensor.count > SEARCHED or not tensor.dtype.is_float or not tensor.shape:
            return None
        key = tensor, times, rank
        if key not in self._repeated:
            self._repeated[key] = self._part(tensor, times, len(tensor.shape) if rank is None else rank)
        return self._repeated[key]

    def _part(self, tensor: Tensor, times: int, rank: int) -> Value | None:
        shape = tensor.shape[max(0, len(tensor.shape) - rank) :]
        if len(shape) != rank or any(n != 1 for n in tensor.shape[: -rank or None]) or shape[-1] % times:
            return None
        array = tensor.numpy().reshape(*shape[:-1], times, shape[-1] // times)
        first = array[..., :1, :]
        if first.size < 2 or not bool(np.all(array == first)) or bool(np.all(first == first.reshape(-1)[0])):
            return None
        return self._make(np.ascontiguousarray(first[..., 0, :]))

    def integers(self, value: Value | None) -> list[int] | None:
        """A short list of whole numbers, such as axes; scales are floating point, and often whole."""
        tensor = self.tensor(value)
        if tensor is None or tensor.count > SHORT:
            return None
        if tensor.dtype.is_float:
            array = tensor.numpy().reshape(-1).astype(np.float64)
            return (
                [int(x) for x in array] if bool(np.all(array == np.floor(array)) and np.isfinite(array).all()) else None
            )
        return [int(i) for i in tensor.numpy().reshape(-1)] if tensor.dtype.is_integer else None

    def meet(self, weight: Value) -> None:
        """The model reads this weight; those that it reads first have the lowest numbers."""
        self._numbers.setdefault(weight, len(self._numbers))

    def behind(self, node: Node, depth: int = NEAR) -> tuple[int, ...]:
        """Numbers of the weights that a node reads, or what it reads does, and so on a few times."""
        key = node, depth
        if key not in self._behind:
            found: list[int] = []
            for value in node.operands:
                if value in self._numbers:
                    found.append(self._numbers[value])
                elif value.node is not None and depth:
                    found += self.behind(value.node, depth - 1)
            self._behind[key] = tuple(found)
        return self._behind[key]

    def is_weight(self, value: Value) -> bool:
        """Whether a value depends on constants alone, so that it is computed once, at export."""
        if isinstance(value.producer, Constant):
            return True
        if not isinstance(value.producer, Node):
            return False
        stack = [value.producer]
        while stack:
            node = stack[-1]
            if node in self._weights:
                stack.pop()
                continue
            below = [v.producer for v in node.operands if isinstance(v.producer, Node)]
            waiting = [n for n in below if n not in self._weights]
            if waiting:
                stack += waiting
                continue
            fixed = all(isinstance(v.producer, Constant | Node) for v in node.operands)
            made = bool(node.inputs) or node.op == "Constant"
            pure = not node.bodies and self.is_function(node)
            self._weights[node] = fixed and made and pure and all(self._weights[n] for n in below)
            stack.pop()
        return self._weights[value.producer]

    def number(self, number: Number, dtype: DType) -> Value:
        """A tensor without axes."""
        return self._make(np.asarray(number, dtype=numpy_dtype(dtype)))

    def table(self, numbers: list[Any], dtype: DType) -> Value:
        """A tensor of the numbers in nested lists."""
        return self._make(np.asarray(numbers, dtype=numpy_dtype(dtype)))

    def filled(self, number: Number, dtype: DType) -> Tensor:
        """A tensor of one element, as ConstantOfShape wants it."""
        return self._tensor(np.asarray([number], dtype=numpy_dtype(dtype)))

    def list_of(self, numbers: list[int] | np.ndarray[Any, np.dtype[np.int64]]) -> Value:
        return self._make(np.asarray(numbers, dtype=np.int64))

    def scales(self, numbers: list[int]) -> Value:
        return self._make(np.asarray(numbers, dtype=np.float32))

    def scalar_index(self, number: int) -> Value:
        return self._make(np.asarray(number, dtype=np.int64))

    def _make(self, array: np.ndarray) -> Value:
        tensor = ArrayTensor(array)
        key = (tensor.dtype, tensor.shape, array.tobytes())
        if key not in self._made:
            self._made[key] = Value(Constant(tensor))
        return self._made[key]

    def _tensor(self, array: np.ndarray) -> Tensor:
        constant = self._make(array).constant
        assert constant is not None
        return constant


def _fill(tensor: Tensor) -> Number | None:
    if not tensor.count or tensor.count > READABLE or not (tensor.dtype.is_float or tensor.dtype.is_integer):
        return None
    array = tensor.numpy().reshape(-1)
    first = array[0]
    if not bool(np.all(array == first)):
        return None
    return float(first) if tensor.dtype.is_float else int(first)
