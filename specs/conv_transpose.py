"""ConvTranspose: each input element times the filters, added up where they fall: at input · stride + tap · dilation."""

from collections.abc import Iterator, Sequence
from typing import Any

from specs._window import per_axis
from superopt.ops.condition import Condition
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, select, sum_over
from superopt.ops.formula import Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols

Sizes = Sequence[Index]


def draw(rng: Any) -> Draw:
    rank, group = pick(rng, 1, 2, 2, 3), pick(rng, 1, 1, 2, 3)
    channels, per_group = group * size(rng, 1, 3), size(rng, 1, 3)
    sizes, kernel = [size(rng, 1, 5) for _ in range(rank)], [size(rng, 1, 4) for _ in range(rank)]
    strides = [size(rng, 1, 3) for _ in range(rank)] if rng.random() < 0.8 else [1] * rank
    dilations = [size(rng, 1, 2) for _ in range(rank)] if rng.random() < 0.4 else [1] * rank
    arguments: dict[str, Any] = {"group": group, "strides": strides, "dilations": dilations}
    extra = [size(rng, 0, s - 1) for s in strides] if rng.random() < 0.5 else [0] * rank
    if any(extra):
        arguments["output_padding"] = extra
    match pick(rng, "pads", "pads", "auto_pad", "output_shape"):
        case "pads":
            arguments["pads"] = [size(rng, 0, 2) for _ in range(2 * rank)]
        case "auto_pad":
            arguments["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
        case _:
            full = [s * (n - 1) + e + (k - 1) * d + 1
                    for n, k, s, d, e in zip(sizes, kernel, strides, dilations, extra, strict=True)]  # fmt: skip
            arguments["output_shape"] = [max(1, n - size(rng, 0, 3)) for n in full]
            arguments["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "NOTSET")
    if rng.random() < 0.5:
        arguments["kernel_shape"] = kernel
    shapes = ((size(rng, 1, 2), channels, *sizes), (channels, per_group, *kernel), (group * per_group,))
    return Draw(shapes if rng.random() < 0.5 else shapes[:2], arguments)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    rank = ranks[0] - 2
    common: dict[str, Any] = {
        "strides": [symbols.positive(f"stride{k}") for k in range(rank)],
        "dilations": [symbols.positive(f"dilation{k}") for k in range(rank)],
        "output_padding": [symbols.natural(f"extra{k}") for k in range(rank)],
        "group": symbols.positive("group"),
    }
    output_shape = [symbols.positive(f"output{k}") for k in range(rank)]
    yield {**common, "pads": [symbols.natural(f"pad{k}") for k in range(2 * rank)]}
    yield {**common, "auto_pad": "VALID"}
    yield {**common, "output_shape": output_shape}
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        yield {**common, "auto_pad": auto_pad}
        yield {**common, "auto_pad": auto_pad, "output_shape": output_shape}


def cut(
    auto_pad: str, pads: Sizes | None, output_shape: Sizes | None, full: Sizes, sizes: Sizes, stride: Sizes
) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """What is cut off before each axis of the full result, and what is left: by pads, or by the size wanted."""
    rank = len(full)
    if output_shape is None and auto_pad in ("NOTSET", "VALID"):
        both = per_axis(pads if auto_pad == "NOTSET" else None, 2 * rank, 0, "pads")
        return both[:rank], tuple(n - b - a for n, b, a in zip(full, both[:rank], both[rank:], strict=True))
    if output_shape is None:
        covered(auto_pad in ("SAME_UPPER", "SAME_LOWER"), f"auto_pad {auto_pad}")
        wanted = tuple(n * s for n, s in zip(sizes, stride, strict=True))
    else:
        wanted = per_axis(output_shape, rank, 0, "output_shape")
    before: list[Index] = []
    for n, m in zip(full, wanted, strict=True):
        covered(n >= m, "more output than the filters reach")
        before.append((n - m) // 2 if auto_pad == "SAME_UPPER" else n - m - (n - m) // 2)
    return tuple(before), wanted


@operator("ConvTranspose", since=1, elements="any", draw=draw, unknown=unknown)
def conv_transpose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes | None = None,
    group: Index = 1,
    kernel_shape: Sizes | None = None,
    output_padding: Sizes | None = None,
    output_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> Tensor:
    require(x.rank >= 3, "a convolution has at least one spatial axis")
    require(w.rank == x.rank, "input and filters differ in rank")
    rank = x.rank - 2
    n, channels, *sizes = x.shape
    _, per_group, *kernel = w.shape
    for given, k in zip(per_axis(kernel_shape, rank, 0, "kernel_shape"), kernel, strict=True):
        require(kernel_shape is None or given == k, "kernel_shape differs from the filters")
    require(w.shape[0] == channels, "filters are for other channels")
    require(channels % group == 0, "group does not divide the channels")
    filters = per_group * group
    stride = per_axis(strides, rank, 1, "strides")
    dilation = per_axis(dilations, rank, 1, "dilations")
    extra = per_axis(output_padding, rank, 0, "output_padding")
    full: list[Index] = []
    for m, k, s, d, e in zip(sizes, kernel, stride, dilation, extra, strict=True):
        require((e < s) | (e < d), "output_padding is less than stride or dilation")
        full.append(s * (m - 1) + e + (k - 1) * d + 1)
    before, outputs = cut(auto_pad, pads, output_shape, full, sizes, stride)
    for m in outputs:
        require(m >= 1, "nothing of the output is left")
    if b is not None:
        require(b.rank == 1, "a bias has one axis")
        require(b.shape[0] == filters, "one bias for each filter")

    def at(image: Index, f: Index, *y: Index) -> Element:
        members = channels // group
        first = f // per_group * members

        def taps(channel: Index, reached: Condition | bool, place: tuple[Index, ...], k: tuple[Index, ...]) -> Element:
            axis = len(place)
            if axis == rank:
                return select(reached, x[image, channel, *place] * w[channel, f % per_group, *k], 0)

            def tap(r: Index) -> Element:
                scaled = y[axis] + before[axis] - r * dilation[axis]
                j = scaled // stride[axis]
                hit = (scaled % stride[axis] == 0) & (j >= 0) & (j < sizes[axis])
                return taps(channel, reached & hit, (*place, j), (*k, r))

            return sum_over(kernel[axis], tap)

        total = sum_over(members, lambda member: taps(first + member, True, (), ()))
        return total if b is None else total + b[f]

    return tensor((n, filters, *outputs), at)
