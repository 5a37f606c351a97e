"""Pooling windows, as AveragePool, MaxPool and LpPool share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specs._window import per_axis, window_count, window_pads
from superopt.ops.condition import Condition
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, lift, select, sum_over
from superopt.ops.formula import Tensor, covered, require, tensor
from superopt.ops.index import Index, same
from superopt.ops.registry import Draw
from superopt.ops.symbols import Symbols


@dataclass(frozen=True)
class Axis:
    """Windows along one spatial axis."""

    size: Index
    kernel: Index
    stride: Index
    dilation: Index
    before: Index
    after: Index
    count: Index
    ceil_mode: int

    @property
    def unpadded(self) -> bool:
        return same(self.before, 0) and same(self.after, 0)

    def place(self, y: Index, r: Index) -> Index:
        """Where the input is read by place `r` of window `y`; it may be in the padding."""
        return y * self.stride + r * self.dilation - self.before

    def inside(self, y: Index, r: Index) -> Condition | bool:
        """Whether that is in the input."""
        if self.unpadded and not self.ceil_mode:
            return True
        return (self.place(y, r) >= 0) & (self.place(y, r) < self.size)

    def in_padded(self, y: Index, r: Index) -> Condition | bool:
        """Whether that is in the input or its padding; a window that `ceil_mode` adds reaches beyond both."""
        return self.place(y, r) < self.size + self.after if self.ceil_mode else True

    def places(self, y: Index, count_include_pad: int) -> Element:
        """How many places of window `y` count."""
        if not self.ceil_mode and (count_include_pad or self.unpadded):
            return lift(self.kernel)
        counts = self.in_padded if count_include_pad else self.inside
        return sum_over(self.kernel, lambda r: select(counts(y, r), 1, 0))


def pooling(
    x: Tensor,
    auto_pad: str,
    ceil_mode: int,
    dilations: Sequence[Index] | None,
    kernel_shape: Sequence[Index],
    pads: Sequence[Index] | None,
    strides: Sequence[Index] | None,
) -> tuple[Axis, ...]:
    """The windows along each spatial axis."""
    require(x.rank >= 3, "pooling has at least one spatial axis")
    sizes = x.shape[2:]
    kernel = per_axis(kernel_shape, len(sizes), 1, "kernel_shape")
    stride = per_axis(strides, len(sizes), 1, "strides")
    dilation = per_axis(dilations, len(sizes), 1, "dilations")
    # onnxruntime rounds up where ONNX says ⌈(n − extent + 1) / stride⌉.
    covered(not (auto_pad == "VALID" and ceil_mode), "auto_pad VALID with ceil_mode")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
            # onnxruntime pads as if windows had no gaps, and crops (MaxPool: refuses) where windows leave some out.
            covered(d == 1, f"auto_pad {auto_pad} with dilations")
            covered((n + s - 1) // s * s - s + k >= n, f"auto_pad {auto_pad} with strides beyond the windows")
    before, after = window_pads(auto_pad, pads, sizes, kernel, stride, dilation)
    if auto_pad == "NOTSET" and pads is not None:
        for k, b, a in zip(kernel, before, after, strict=True):
            covered((b < k) & (a < k), "padding as large as the window")
    return tuple(
        _axis(*axis, ceil_mode=ceil_mode) for axis in zip(sizes, kernel, stride, dilation, before, after, strict=True)
    )


def _axis(
    n: Index, kernel: Index, stride: Index, dilation: Index, before: Index, after: Index, *, ceil_mode: int
) -> Axis:
    if not (same(before, 0) and same(after, 0)):
        covered(n >= dilation, "a window may lie in the padding alone")
    count = window_count(n, before, after, kernel, stride, dilation)
    if ceil_mode:
        rounded_up = window_count(n + stride - 1, before, after, kernel, stride, dilation)
        if (rounded_up - 1) * stride >= n + before:
            rounded_up = rounded_up - 1  # a window that would start in the padding after the input
        if same(rounded_up, count):
            ceil_mode = 0  # no window is added, none reaches beyond the padding
        count = rounded_up
    return Axis(n, kernel, stride, dilation, before, after, count, ceil_mode)


def output_shape(x: Tensor, axes: tuple[Axis, ...]) -> tuple[Index, ...]:
    return (*x.shape[:2], *(axis.count for axis in axes))


def sum_of_windows(x: Tensor, axes: tuple[Axis, ...], value: Callable[[Element], Element]) -> Tensor:
    """The sum over each window of `value` of its elements; padding adds nothing."""

    def at(n: Index, c: Index, *y: Index) -> Element:
        def total(inside: Condition | bool, *place: Index) -> Element:
            if len(place) == len(axes):
                return select(inside, value(x[n, c, *place]), 0)
            axis, window = axes[len(place)], y[len(place)]
            return sum_over(
                axis.kernel,
                lambda r: total(inside & axis.inside(window, r), *place, axis.place(window, r)),
            )

        return total(True)

    return tensor(output_shape(x, axes), at)


def draw_pooling(rng: Any) -> Draw:
    rank = pick(rng, 1, 2, 2, 3)
    kernel = [size(rng, 1, 4) for _ in range(rank)]
    arguments: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.7:
        arguments["strides"] = [size(rng, 1, 3) for _ in range(rank)]
    if rng.random() < 0.4:
        arguments["dilations"] = [size(rng, 1, 3) for _ in range(rank)]
    if rng.random() < 0.5:
        arguments["ceil_mode"] = int(rng.integers(2))
    if rng.random() < 0.6:
        arguments["pads"] = [size(rng, 0, k - 1) for k in (*kernel, *kernel)]
    else:
        arguments["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    sizes = tuple(size(rng, 3, 9) for _ in range(rank))
    return Draw(((size(rng, 0 if rng.random() < 0.1 else 1, 2), size(rng, 1, 3), *sizes),), arguments)


def unknown_pooling(symbols: Symbols, rank: int, further: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Any windows, rounded down or up, and under each way to say how to pad."""
    common: dict[str, Any] = {
        "kernel_shape": [symbols.positive(f"kernel{k}") for k in range(rank)],
        "strides": [symbols.positive(f"stride{k}") for k in range(rank)],
        **further,
    }
    dilations = [symbols.positive(f"dilation{k}") for k in range(rank)]
    pads = [symbols.natural(f"pad{k}") for k in range(2 * rank)]
    for ceil_mode in (0, 1):
        yield {**common, "dilations": dilations, "pads": pads, "ceil_mode": ceil_mode}
        for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            yield {**common, "auto_pad": auto_pad, "ceil_mode": ceil_mode}
    yield {**common, "dilations": dilations, "auto_pad": "VALID"}
