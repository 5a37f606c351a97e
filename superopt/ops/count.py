"""How much work a formula is at concrete sizes: operations, and the bytes it must at least move."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from superopt.ops.element import Add, Call, Choose, Element, Multiply, Reduce, Select
from superopt.ops.formula import Tensor
from superopt.ops.index import symbol


@dataclass(frozen=True)
class Work:
    operations: int
    """Additions, products, functions and comparisons, as the formula is written; guards are not counted."""
    elements_moved: int
    """Elements of the inputs and of the result, each once."""


def work(result: Tensor, inputs: Iterable[tuple[int, ...]]) -> Work:
    """For sizes that are numbers."""
    count = math.prod(int(n) for n in result.shape)  # pyright: ignore[reportArgumentType]
    element = result[tuple(symbol(f"@{k}") for k in range(result.rank))]
    return Work(count * _operations(element), count + sum(math.prod(shape) for shape in inputs))


def _operations(e: Element) -> int:
    """For one element."""
    if isinstance(e, Add | Multiply):
        return 1 + _operations(e.left) + _operations(e.right)
    if isinstance(e, Call):
        return 1 + sum(map(_operations, e.arguments))
    if isinstance(e, Select):
        return max(_operations(e.then), _operations(e.otherwise))
    if isinstance(e, Choose):
        return 1 + _operations(e.which) + max(_operations(e.then), _operations(e.otherwise))
    if isinstance(e, Reduce):
        return int(e.extent) * (1 + _operations(e.body))  # pyright: ignore[reportArgumentType]
    return 0
