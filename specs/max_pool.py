"""MaxPool: the largest element of each window; padding is never the largest."""

from collections.abc import Iterator, Sequence
from typing import Any

from specs._pool import draw_pooling, output_shape, pooling, unknown_pooling
from superopt.ops.element import Element, max_over
from superopt.ops.formula import Tensor, covered, tensor
from superopt.ops.index import Index
from superopt.ops.registry import operator
from superopt.ops.symbols import Symbols


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield from unknown_pooling(symbols, ranks[0] - 2, {})


@operator("MaxPool", since=1, draw=draw_pooling, unknown=unknown)
def max_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[Index] | None = None,
    kernel_shape: Sequence[Index],
    pads: Sequence[Index] | None = None,
    storage_order: int = 0,
    strides: Sequence[Index] | None = None,
    outputs: int = 1,
) -> Tensor:
    covered(outputs == 1, "Indices, for which storage_order is")
    axes = pooling(x, auto_pad, ceil_mode, dilations, kernel_shape, pads, strides)

    def at(n: Index, c: Index, *y: Index) -> Element:
        def largest(*place: Index) -> Element:
            if len(place) == len(axes):
                return x[n, c, *place]
            axis, window = axes[len(place)], y[len(place)]
            return max_over(
                axis.kernel,
                lambda r: largest(*place, axis.place(window, r)),
                where=lambda r: axis.inside(window, r),
            )

        return largest()

    return tensor(output_shape(x, axes), at)
