"""Whether a weight is made of numbers alone: of constants without NaN and infinity, by operators that keep it so."""

from __future__ import annotations

import numpy as np

from superopt.ir.graph import Constant, Node, Value
from superopt.ir.tensor import Tensor

SEARCHED = 1 << 22
"""Elements of the largest constant that is looked into."""
MOST = 256
"""Nodes behind a weight that are looked at."""
KEEPING = frozenset(
    {
        "Add", "Sub", "Mul", "Sum", "Neg", "MatMul", "Concat", "Split", "Slice", "Gather", "Reshape", "Transpose",
        "Squeeze", "Unsqueeze", "Flatten", "Pad", "Expand", "Tile", "Identity",
    }
)  # fmt: skip
"""Operators that make numbers of numbers, and have nothing but their operands to make them of."""


class Finite:
    """What was found, by tensor: constants are the same throughout an optimization."""

    def __init__(self) -> None:
        self._known: dict[Tensor, bool] = {}

    def holds(self, value: Value) -> bool:
        """Whether all elements are numbers; no, where that was not looked at."""
        seen: set[Value] = set()
        stack = [value]
        while stack:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            if len(seen) > MOST or not self._step(top, stack):
                return False
        return True

    def _step(self, value: Value, stack: list[Value]) -> bool:
        producer = value.producer
        if isinstance(producer, Constant):
            return self._is_finite(producer.tensor)
        if not isinstance(producer, Node) or producer.domain or producer.op not in KEEPING:
            return False
        stack.extend(producer.operands)
        return True

    def _is_finite(self, tensor: Tensor) -> bool:
        if not tensor.dtype.is_float:
            return True
        if not tensor.readable or tensor.count > SEARCHED:
            return False
        if tensor not in self._known:
            self._known[tensor] = bool(np.isfinite(tensor.numpy()).all())
        return self._known[tensor]
