"""Operators that only move elements, computed here: onnxruntime has no CPU kernel of theirs for some types, bfloat16
among them, and to move an element takes no arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from superopt.ir.graph import Node
from superopt.ir.tensor import Array


def _where(condition: Array, x: Array, y: Array) -> Array:
    if condition.dtype != np.bool_ or x.dtype != y.dtype:
        raise TypeError("types that Where does not take")
    return np.where(condition, x, y)


def _expand(x: Array, shape: Array) -> Array:
    wanted = tuple(int(n) for n in shape)
    return np.ascontiguousarray(np.broadcast_to(x, np.broadcast_shapes(x.shape, wanted)))


def _tile(x: Array, repeats: Array) -> Array:
    return np.tile(x, [int(n) for n in repeats])


_MOVERS: dict[str, Callable[..., Any]] = {"Where": _where, "Expand": _expand, "Tile": _tile}


def moved(node: Node, operands: Sequence[Array | None]) -> Array | None:
    """The node's only result; None where it is not one of these, or not what it seems."""
    mover = _MOVERS.get(node.op) if not node.domain else None
    if mover is None or any(operand is None for operand in operands):
        return None
    try:
        return mover(*operands)
    except (TypeError, ValueError):
        return None
