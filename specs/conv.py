"""Conv: sums of windows times filters, over one to three (or more) spatial axes, in groups of channels."""

from collections.abc import Iterator, Sequence
from typing import Any

from specs._window import per_axis, unknown_windows, window_count, window_pads
from superopt.ops.condition import Condition
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, select, sum_over
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    rank, group = pick(rng, 1, 2, 2, 3), pick(rng, 1, 1, 2, 3)
    per_group, filters = size(rng, 1, 3), group * size(rng, 1, 3)
    if rng.random() < 0.2:
        per_group, group = 1, size(rng, 2, 4)
        filters = group * size(rng, 1, 2)
    sizes = tuple(size(rng, 3, 8) for _ in range(rank))
    kernel = tuple(size(rng, 1, 3) for _ in range(rank))
    arguments: dict[str, Any] = {"group": group}
    if rng.random() < 0.6:
        arguments["strides"] = [size(rng, 1, 3) for _ in range(rank)]
    if rng.random() < 0.4:
        arguments["dilations"] = [size(rng, 1, 2) for _ in range(rank)]
    if rng.random() < 0.5:
        arguments["pads"] = [size(rng, 0, 2) for _ in range(2 * rank)]
    elif "dilations" not in arguments:
        arguments["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    if rng.random() < 0.5:
        arguments["kernel_shape"] = list(kernel)
    shapes = ((size(rng, 1, 2), group * per_group, *sizes), (filters, per_group, *kernel), (filters,))
    return Draw(shapes if rng.random() < 0.5 else shapes[:2], arguments)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield from unknown_windows(symbols, ranks[0] - 2, {"group": symbols.positive("group")})


@operator("Conv", since=1, elements="any", draw=draw, unknown=unknown)
def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[Index] | None = None,
    group: Index = 1,
    kernel_shape: Sequence[Index] | None = None,
    pads: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> Tensor:
    require(x.rank >= 3, "a convolution has at least one spatial axis")
    require(w.rank == x.rank, "input and filters differ in rank")
    rank = x.rank - 2
    n, c, *sizes = x.shape
    filters, per_group, *kernel = w.shape
    for given, k in zip(per_axis(kernel_shape, rank, 0, "kernel_shape"), kernel, strict=True):
        require(kernel_shape is None or given == k, "kernel_shape differs from the filters")
    require(c == per_group * group, "channels differ from filter channels × group")
    require(filters % group == 0, "group does not divide the filters")
    stride = per_axis(strides, rank, 1, "strides")
    dilation = per_axis(dilations, rank, 1, "dilations")
    before, after = window_pads(auto_pad, pads, sizes, kernel, stride, dilation)
    outputs = [window_count(*axis) for axis in zip(sizes, before, after, kernel, stride, dilation, strict=True)]
    if b is not None:
        require(b.rank == 1, "a bias has one axis")
        require(b.shape[0] == filters, "one bias for each filter")

    def at(image: Index, f: Index, *y: Index) -> Element:
        first = f // (filters // group) * per_group

        def taps(channel: Index, inside: Condition | bool, place: tuple[Index, ...], k: tuple[Index, ...]) -> Element:
            axis = len(place)
            if axis == rank:
                return select(inside, x[image, first + channel, *place] * w[f, channel, *k], 0)

            def tap(r: Index) -> Element:
                j = y[axis] * stride[axis] + r * dilation[axis] - before[axis]
                return taps(channel, inside & (j >= 0) & (j < sizes[axis]), (*place, j), (*k, r))

            return sum_over(kernel[axis], tap)

        total = sum_over(per_group, lambda channel: taps(channel, True, (), ()))
        return total if b is None else total + b[f]

    return tensor((n, filters, *outputs), at)
