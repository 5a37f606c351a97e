"""LpPool: the root of order p of the sum of |x|^p over each window."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from specs._pool import draw_pooling, pooling, sum_of_windows, unknown_pooling
from superopt.ops.draws import pick
from superopt.ops.element import call, power
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    drawn = draw_pooling(rng)
    return Draw(drawn.shapes, {**drawn.arguments, **pick(rng, {}, {"p": 1}, {"p": 2}, {"p": 3}, {"p": 4})})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield from unknown_pooling(symbols, ranks[0] - 2, {})


@operator("LpPool", since=2, draw=draw, unknown=unknown)
def lp_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[Index] | None = None,
    kernel_shape: Sequence[Index],
    p: int = 2,
    pads: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> Tensor:
    require(p >= 1, "p is at least 1")
    axes = pooling(x, auto_pad, ceil_mode, dilations, kernel_shape, pads, strides)
    total = sum_of_windows(x, axes, lambda e: power(call("abs", e) if p % 2 else e, p))
    return tensor(total.shape, lambda *i: power(total[i], Fraction(1, p)))
