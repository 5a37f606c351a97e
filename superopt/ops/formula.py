"""The words that operator definitions are written in.

    @operator("MatMul", since=9)
    def matmul(a, b):
        *batch, m, k = a.shape
        require(b.shape[-2] == k, "inner dimensions differ")
        ...
        return tensor((*batch, m, n), lambda *i: sum_over(k, lambda l: a[*i[:-1], l] * b[*i[:-2], l, i[-1]]))

Positional parameters are input tensors (`= None` where ONNX makes them optional, `*xs` for any number of them), those
annotated `Static` are inputs whose value must be known (axes, sizes, splits; older opsets have them as attributes), and
keyword parameters are attributes with ONNX's defaults. Two keywords are no attributes but facts about the node:
`outputs`, how many results it has, and `types`, element types of operands by name, where a mask of booleans means
something else than one of numbers. `require` states what ONNX demands of legal operands, `covered` what this definition
handles of what ONNX allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from superopt.ops.condition import Condition
from superopt.ops.element import Element, Operand, lift, select
from superopt.ops.index import Index, product, same


class Illegal(Exception):
    """ONNX does not allow these operands together."""


class NotCovered(Exception):
    """ONNX allows it; the definition does not handle it, so a node like this is a barrier."""


@dataclass(frozen=True)
class Tensor:
    """A shape, and the value of each element."""

    shape: tuple[Index, ...]
    at: Callable[..., Element]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Element:
        place = indices if isinstance(indices, tuple) else (indices,)
        if len(place) != len(self.shape):
            raise TypeError(f"{len(place)} indices into a tensor of rank {len(self.shape)}")
        return self.at(*place)


Static = Any
"""Marks a parameter that is not a tensor but the known value of one: integers, possibly symbolic."""


def tensor(shape: tuple[Index, ...], at: Callable[..., Element]) -> Tensor:
    return Tensor(tuple(shape), at)


def constant(value: Operand, shape: tuple[Index, ...] = ()) -> Tensor:
    """A tensor known to hold one number everywhere, such as the exponent 2."""
    return Tensor(shape, lambda *_: lift(value))


def require(condition: Condition | bool, message: str) -> None:
    if not condition:
        raise Illegal(message)


def covered(condition: Condition | bool, message: str) -> None:
    if not condition:
        raise NotCovered(message)


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front; ONNX lets it count from the back."""
    require(-rank <= axis < rank, f"axis {axis} outside a tensor of rank {rank}")
    return axis % rank if rank else 0


def broadcast_shape(*shapes: tuple[Index, ...]) -> tuple[Index, ...]:
    """The common shape as ONNX (and numpy) broadcast: aligned at the end, a size of 1 gives way."""
    rank = max(map(len, shapes))
    return tuple(
        _common_size([shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0])
        for axis in range(rank)
    )


def _common_size(sizes: list[Index]) -> Index:
    """Sizes of one form are equal without asking; only the others have to be compared."""
    common: Index = 1
    for size in sizes:
        if same(size, common) or same(size, 1):
            continue
        if same(common, 1) or common == 1:
            common = size
        elif not (size == common or size == 1):
            raise Illegal(f"sizes {common} and {size} do not broadcast")
    return common


def broadcast(x: Tensor, shape: tuple[Index, ...]) -> Tensor:
    """`x` seen at a shape it broadcasts to."""
    offset = len(shape) - x.rank
    stretched = [not same(n, shape[offset + k]) and bool(n == 1) for k, n in enumerate(x.shape)]

    def at(*i: Index) -> Element:
        return x[tuple(0 if stretched[k] else i[offset + k] for k in range(x.rank))]

    return Tensor(tuple(shape), at)


def elementwise(function: Callable[..., Element], *operands: Tensor) -> Tensor:
    """The function at each element of the broadcast operands."""
    shape = broadcast_shape(*(x.shape for x in operands))
    seen = [broadcast(x, shape) for x in operands]
    return Tensor(shape, lambda *i: function(*(x[i] for x in seen)))


def replaced(indices: tuple[Index, ...], axis: int, index: Index) -> tuple[Index, ...]:
    return (*indices[:axis], index, *indices[axis + 1 :])


def padded(x: Tensor, before: tuple[Index, ...], after: tuple[Index, ...], fill: Element) -> Tensor:
    """`x` with a border of `fill`; negative borders crop."""
    shape = tuple(n + b + a for n, b, a in zip(x.shape, before, after, strict=True))

    def at(*i: Index) -> Element:
        inside: Condition | bool = True
        place: list[Index] = []
        for k, n in enumerate(x.shape):
            j = i[k] - before[k]
            place.append(j)
            if not (_is_zero(before[k]) and _is_zero(after[k])):
                inside = inside & (j >= 0) & (j < n)
        return select(inside, x[tuple(place)], fill)

    return Tensor(shape, at)


def _is_zero(size: Index) -> bool:
    return isinstance(size, int) and size == 0


def reshaped(x: Tensor, shape: tuple[Index, ...]) -> Tensor:
    """The same elements in row-major order at another shape of the same count."""
    require(product(x.shape) == product(shape), "a reshape keeps the number of elements")

    def at(*i: Index) -> Element:
        place: list[Index] = []
        for olds, news, start in aligned_groups(x.shape, tuple(shape)):
            linear: Index = 0
            for k, n in enumerate(news):
                linear = linear * n + i[start + k]
            for k, n in enumerate(olds):
                inner = product(olds[k + 1 :])
                index = linear // inner
                place.append(index if k == 0 else index % n)
        return x[tuple(place)]

    return Tensor(tuple(shape), at)


Group: TypeAlias = tuple[tuple[Index, ...], tuple[Index, ...], int]


def aligned_groups(old: tuple[Index, ...], new: tuple[Index, ...]) -> list[Group]:
    """Runs of axes with equal products, as short as possible: (old sizes, new sizes, first new axis)."""
    groups: list[Group] = []
    a = b = 0
    while a < len(old) or b < len(new):
        taken, given = _shortest_run(old[a:], new[b:])
        groups.append((old[a : a + taken], new[b : b + given], b))
        a, b = a + taken, b + given
    return groups


def _shortest_run(old: tuple[Index, ...], new: tuple[Index, ...]) -> tuple[int, int]:
    for total in range(1, len(old) + len(new) + 1):
        for taken in range(max(0, total - len(new)), min(total, len(old)) + 1):
            if same(product(old[:taken]), product(new[: total - taken])):
                return taken, total - taken
    return len(old), len(new)
