"""Unsqueeze: with further axes of size 1, at their places in the result."""

from typing import Any

from superopt.ops.draws import shape, size
from superopt.ops.formula import Static, Tensor, normal_axis, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 4)
    count = size(rng, 1, 3)
    rank = len(x) + count
    axes = [int(a) for a in rng.permutation(rank)[:count]]
    return Draw((x,), {"axes": [a - rank if rng.random() < 0.5 else a for a in axes]})


@operator("Unsqueeze", since=1, elements="any", draw=draw)
def unsqueeze(x: Tensor, axes: Static) -> Tensor:
    rank = x.rank + len(axes)
    added = {normal_axis(a, rank) for a in axes}
    require(len(added) == len(axes), "an axis is named twice")
    kept = [k for k in range(rank) if k not in added]
    sizes = iter(x.shape)
    return tensor(
        tuple(1 if k in added else next(sizes) for k in range(rank)),
        lambda *i: x[tuple(i[k] for k in kept)],
    )
