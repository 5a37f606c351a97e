"""Tile: a number of copies along each axis."""

from typing import Any

from superopt.ops.draws import shape, size
from superopt.ops.formula import Static, Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 4)
    return Draw((x,), {"repeats": [0 if rng.random() < 0.03 else size(rng, 1, 3) for _ in x]})


@operator("Tile", since=6, elements="any", draw=draw)
def tile(x: Tensor, repeats: Static) -> Tensor:
    require(len(repeats) == x.rank, "one number of repeats for each axis")
    for r in repeats:
        require(r >= 0, "repeats are not negative")

    def within(axis: int, index: Index) -> Index:
        once = isinstance(repeats[axis], int) and repeats[axis] == 1
        return index if once else index % x.shape[axis]

    shape = tuple(n * r for n, r in zip(x.shape, repeats, strict=True))
    return tensor(shape, lambda *i: x[tuple(within(k, j) for k, j in enumerate(i))])
