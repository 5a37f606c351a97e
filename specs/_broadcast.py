"""ONNX's unidirectional broadcasting: one operand gives way to the shape of another."""

from __future__ import annotations

from superopt.ops.formula import Tensor, broadcast, require
from superopt.ops.index import Index


def broadcast_to(x: Tensor, shape: tuple[Index, ...]) -> Tensor:
    """`x` at a shape that it must broadcast to."""
    require(x.rank <= len(shape), f"{x.rank} axes do not broadcast to {len(shape)}")
    for n, full in zip(reversed(x.shape), reversed(shape), strict=False):
        if n != full:
            require(n == 1, f"size {n} does not broadcast to {full}")
    return broadcast(x, shape)
