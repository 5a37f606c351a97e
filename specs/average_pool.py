"""AveragePool: the sum of each window by the number of its elements, padding counted with `count_include_pad`."""

from collections.abc import Iterator, Sequence
from typing import Any

from specs._pool import draw_pooling, pooling, sum_of_windows, unknown_pooling
from superopt.ops.element import ONE, Element
from superopt.ops.formula import Tensor, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    drawn = draw_pooling(rng)
    return Draw(drawn.shapes, {**drawn.arguments, "count_include_pad": int(rng.integers(2))})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for count_include_pad in (0, 1):
        yield from unknown_pooling(symbols, ranks[0] - 2, {"count_include_pad": count_include_pad})


@operator("AveragePool", since=7, draw=draw, unknown=unknown)
def average_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[Index] | None = None,
    kernel_shape: Sequence[Index],
    pads: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> Tensor:
    axes = pooling(x, auto_pad, ceil_mode, dilations, kernel_shape, pads, strides)

    total = sum_of_windows(x, axes, lambda e: e)

    def at(n: Index, c: Index, *y: Index) -> Element:
        count: Element = ONE
        for axis, window in zip(axes, y, strict=True):
            count = count * axis.places(window, count_include_pad)
        return total[n, c, *y] / count

    return tensor(total.shape, at)
