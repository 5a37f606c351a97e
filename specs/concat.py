"""Concat: operands one after the other along an axis."""

from typing import Any

from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import shape, size
from superopt.ops.element import Element, select
from superopt.ops.formula import Tensor, normal_axis, replaced, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    common = shape(rng, 1, 4)
    axis = draw_axis(rng, len(common))
    count = size(rng, 1, 4)
    return Draw(tuple(replaced(common, axis % len(common), size(rng, 0, 3)) for _ in range(count)), {"axis": axis})  # pyright: ignore[reportArgumentType]


@operator("Concat", since=4, elements="any", draw=draw)
def concat(*xs: Tensor, axis: int) -> Tensor:
    require(len(xs) >= 1, "nothing to concatenate")
    first = xs[0]
    k = normal_axis(axis, first.rank)
    total: Index = 0
    starts: list[Index] = []
    for x in xs:
        require(x.rank == first.rank, "operands differ in rank")
        for j in range(first.rank):
            require(j == k or x.shape[j] == first.shape[j], f"operands differ in axis {j}")
        starts.append(total)
        total = total + x.shape[k]

    def at(*i: Index) -> Element:
        value = xs[-1][replaced(i, k, i[k] - starts[-1])]
        for x, start in zip(reversed(xs[:-1]), reversed(starts[:-1]), strict=True):
            value = select(i[k] < start + x.shape[k], x[replaced(i, k, i[k] - start)], value)
        return value

    return tensor(replaced(first.shape, k, total), at)
