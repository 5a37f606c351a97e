"""Operators that fail where a size is 0, though what they stand for in the original does not.

Seen in onnxruntime 1.31.1 on the CPU, where FusedMatMul with its batch inside and Einsum end the process. Others that
rules write were not seen to; the check of the whole model tries sizes of 0, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TypeAlias

from superopt.ir.graph import Node
from superopt.ops.index import Index, Poly
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.sizes import Sizes

Shape: TypeAlias = "tuple[Index, ...]"


def refuse_empty(node: Node, sizes: Sizes, never: frozenset[str]) -> None:
    """Raises `Conflict` where the node fails for a size of 0. `never`: names of those that are not."""
    told = _FAILING.get(node.op)
    if told is None:
        return
    shapes = [() if v is None else sizes.shape(v) or () for v in node.inputs]
    for size in told(node, shapes):
        if may_be_zero(size, never):
            raise Conflict(f"{node.kind} fails where {size} is 0, and the original does not")


def may_be_zero(size: Index, never: frozenset[str]) -> bool:
    if not isinstance(size, Poly):
        return False
    terms = size.terms
    if all(count > 0 for count in terms.values()):
        return all(any(str(atom) not in never for atom in monomial) for monomial in terms)
    return any(str(atom) not in never for monomial in terms for atom in monomial)


def _product(node: Node, shapes: list[Shape]) -> Iterator[Index]:
    """A matrix for several others is found by stretching sizes of 1, which those of 0 refuse."""
    left, right = shapes[0], shapes[1]
    turned = [bool(node.attribute(name, 0)) for name in ("transBatchA", "transBatchB")]
    for shape, is_turned in zip((left, right), turned, strict=True):
        yield from shape[:1] if is_turned else ()
    first, second = (
        shape[1:-1] if is_turned else shape[:-2] for shape, is_turned in zip((left, right), turned, strict=True)
    )
    is_one = len(right) > 1 and len(left) >= len(right) and all(isinstance(n, int) and n == 1 for n in second)
    if is_one and not any((*turned, node.attribute("transA", 0))):
        return
    for a, b in zip_longest(first[::-1], second[::-1], fillvalue=1):
        if isinstance(a, int) != isinstance(b, int):
            yield b if isinstance(a, int) else a
    if len(right) == 1:
        yield from left[:-1]


def _einsum(node: Node, shapes: list[Shape]) -> Iterator[Index]:
    for shape in shapes:
        yield from shape


def _reshape(node: Node, shapes: list[Shape]) -> Iterator[Index]:
    """What is left over is not worked out beside a size of 0 that is copied."""
    told = node.inputs[1] if len(node.inputs) > 1 else None
    constant = None if told is None else told.constant
    target = [] if constant is None else constant.numpy().tolist()
    if -1 in target:
        yield from (size for size, wanted in zip(shapes[0], target, strict=False) if wanted == 0)


_FAILING: dict[str, Callable[[Node, list[Shape]], Iterator[Index]]] = {
    "MatMul": _product,
    "FusedMatMul": _product,
    "Einsum": _einsum,
    "Reshape": _reshape,
}
