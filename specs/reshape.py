"""Reshape: the same elements in row-major order at another shape; 0 copies a size, −1 takes what is left."""

from typing import Any

from superopt.ops.draws import pick, shape
from superopt.ops.formula import Static, Tensor, require, reshaped
from superopt.ops.index import Index, product
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 4, empty=False)
    target: list[int] = []
    left = list(x)
    while left:
        take = int(rng.integers(1, len(left) + 1))
        target.append(int(product(tuple(left[:take]))))  # pyright: ignore[reportArgumentType]
        left = left[take:]
    for k in range(len(target)):
        if k < len(x) and target[k] == x[k] and rng.random() < 0.3:
            target[k] = 0
    if target and rng.random() < 0.5:
        target[int(rng.integers(len(target)))] = -1
    return Draw((x,), {"shape": pick(rng, target, [*target, 1])})


@operator("Reshape", since=5, elements="any", draw=draw)
def reshape(x: Tensor, shape: Static, *, allowzero: int = 0) -> Tensor:
    sizes: list[Index] = []
    open_axis = None
    for k, n in enumerate(shape):
        if isinstance(n, int) and n == 0 and not allowzero:
            require(k < x.rank, "0 copies a size that is not there")
            n = x.shape[k]
        if isinstance(n, int) and n == -1:
            require(open_axis is None, "only one size can be left open")
            open_axis, n = k, 1
        sizes.append(n)
    if open_axis is not None:
        known, total = product(tuple(sizes)), product(x.shape)
        require(total % known == 0, "the sizes given do not divide the number of elements")
        sizes[open_axis] = total // known
    return reshaped(x, tuple(sizes))
