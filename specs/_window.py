"""Sliding windows, as Conv and the pooling operators share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from superopt.ops.formula import covered, require
from superopt.ops.index import Index
from superopt.ops.symbols import Symbols

Sizes = Sequence[Index]


def per_axis(values: Sizes | None, rank: int, default: Index, name: str) -> tuple[Index, ...]:
    """An attribute with one entry for each spatial axis."""
    if values is None:
        return (default,) * rank
    require(len(values) == rank, f"{name} needs {rank} entries, found {len(values)}")
    return tuple(values)


def window_pads(
    auto_pad: str,
    pads: Sizes | None,
    sizes: Sizes,
    kernel: Sizes,
    strides: Sizes,
    dilations: Sizes,
) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
    """Padding before and after each spatial axis."""
    rank = len(sizes)
    if auto_pad == "NOTSET":
        both = per_axis(pads, 2 * rank, 0, "pads")
        return both[:rank], both[rank:]
    if auto_pad == "VALID":
        return (0,) * rank, (0,) * rank
    covered(auto_pad in ("SAME_UPPER", "SAME_LOWER"), f"auto_pad {auto_pad}")
    before: list[Index] = []
    after: list[Index] = []
    for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        outputs = (n + s - 1) // s
        total = (outputs - 1) * s + (k - 1) * d + 1 - n
        if not total >= 0:
            total = 0
        small = total // 2
        before.append(small if auto_pad == "SAME_UPPER" else total - small)
        after.append(total - small if auto_pad == "SAME_UPPER" else small)
    return tuple(before), tuple(after)


def window_count(n: Index, before: Index, after: Index, kernel: Index, stride: Index, dilation: Index) -> Index:
    """How many windows fit: ⌊(padded − extent) / stride⌋ + 1."""
    slack = n + before + after - (kernel - 1) * dilation - 1
    require(slack >= 0, "the window is larger than the padded input")
    return slack // stride + 1


def unknown_windows(symbols: Symbols, rank: int, further: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Any strides, dilations and padding, under each way to say how to pad."""
    common: dict[str, Any] = {
        "strides": [symbols.positive(f"stride{k}") for k in range(rank)],
        "dilations": [symbols.positive(f"dilation{k}") for k in range(rank)],
        **further,
    }
    yield {**common, "pads": [symbols.natural(f"pad{k}") for k in range(2 * rank)]}
    for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER"):
        yield {**common, "auto_pad": auto_pad}
