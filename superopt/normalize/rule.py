"""What an identity is: a name, the operators it is tried at, and a function that proves itself on one node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from superopt.ir.graph import Constant, Node, Value
from superopt.ir.types import Dim, DType, TensorType, Type
from superopt.normalize.journal import BY_DEFINITION
from superopt.normalize.scope import Scope


@dataclass(frozen=True)
class Replacement:
    """A node in the place of another, with the constants made for it.

    `like` is the node of the file whose operator and attributes it still has: its record is kept.
    """

    node: Node
    like: Node | None = None
    constants: tuple[tuple[Constant, str], ...] = ()
    """With an ending for the name of each."""
    inner: tuple[tuple[Node, str], ...] = ()
    """Nodes that it reads and that are not there yet, in order, each with an ending for its name."""
    growth: int = 0
    proof: str = BY_DEFINITION


Result: TypeAlias = Value | Replacement | None
"""A value that the node's first output equals; a node that computes the same; or nothing to be done."""


@dataclass(frozen=True)
class Rule:
    name: str
    ops: tuple[str, ...]
    apply: Callable[[Node, Scope], Result]


def broadcast_keeps(type_: Type, dims: tuple[int, ...]) -> bool:
    """Whether a value of this type keeps its shape when broadcast with a tensor of these dims."""
    if not dims:
        return isinstance(type_, TensorType)
    shape = type_.shape if isinstance(type_, TensorType) else None
    if shape is None or len(dims) > len(shape):
        return False
    aligned = shape[len(shape) - len(dims) :]
    return all(own == 1 or (isinstance(dim, int) and own == dim) for own, dim in zip(dims, aligned, strict=True))


def same_static_shape(a: Type, b: Type) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    return a.static_shape is not None and a.static_shape == b.static_shape


def dims_of(value: Value | None) -> tuple[Dim, ...] | None:
    """None where one is not known: two of those need not be equal."""
    type_ = None if value is None else value.tensor_type
    shape = None if type_ is None else type_.shape
    return None if shape is None or None in shape else shape


def rank_of(type_: Type) -> int | None:
    return type_.rank if isinstance(type_, TensorType) else None


def dtype_of(value: Value | None) -> DType | None:
    return None if value is None or value.tensor_type is None else value.tensor_type.dtype
