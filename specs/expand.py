"""Expand: broadcast to a shape, as an operand of that shape would do it."""

from typing import Any

from superopt.ops.draws import shape as draw_shape
from superopt.ops.formula import Static, Tensor, broadcast, broadcast_shape, require
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    full = draw_shape(rng, 1, 4)
    x = tuple(1 if rng.random() < 0.4 else n for n in full)[int(rng.integers(len(full) + 1)) :]
    aligned = (1,) * (len(full) - len(x)) + x
    target = [1 if n == m and rng.random() < 0.3 else n for n, m in zip(full, aligned, strict=True)]
    missing = int(rng.integers(len(full) + 1)) if rng.random() < 0.3 else 0
    return Draw((x,), {"shape": target[missing:]})


@operator("Expand", since=8, elements="any", draw=draw)
def expand(x: Tensor, shape: Static) -> Tensor:
    for n in shape:
        require(n >= 0, "a size is not negative")
    return broadcast(x, broadcast_shape(x.shape, tuple(shape)))
