"""Normalization by mean and variance, or by the mean of squares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from specs._reduce import Body, Sizes, mean_all
from superopt.ops.element import Element, Operand, call
from superopt.ops.formula import Tensor, require
from superopt.ops.index import Index
from superopt.ops.symbols import Symbols


def variance(sizes: Sizes, elements: Body) -> Element:
    """The mean of squared differences from the mean."""
    mean = mean_all(sizes, elements)
    return mean_all(sizes, lambda *j: (elements(*j) - mean) ** 2)


def inverse_root(e: Element, epsilon: Operand) -> Element:
    """1 / √(e + ε)."""
    return 1 / call("sqrt", e + epsilon)


def standardized(e: Element, sizes: Sizes, elements: Body, epsilon: Operand) -> Element:
    """(e − mean) / √(variance + ε) among elements."""
    return (e - mean_all(sizes, elements)) * inverse_root(variance(sizes, elements), epsilon)


def inverse_rms(sizes: Sizes, elements: Body, epsilon: Operand) -> Element:
    """1 / √(mean of squares + ε)."""
    return inverse_root(mean_all(sizes, lambda *j: elements(*j) ** 2), epsilon)


def per_channel(x: Tensor, channels: Index, name: str) -> Tensor:
    """An operand with one number for each channel."""
    require(x.rank == 1, f"{name} has one axis")
    require(x.shape[0] == channels, f"{name} has one element for each channel")
    return x


def apart(rng: Any, shape: tuple[int, ...]) -> Any:
    """Numbers that differ: the runtime takes E[x²] − E[x]² for the variance, which is no good for a small one."""
    count = math.prod(shape)
    return (rng.permutation(count).reshape(shape) - count / 2) / 4


def unknown_epsilon(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield {"epsilon": symbols.real("epsilon")}


def unknown_axis_and_epsilon(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for axis in range(ranks[0]):
        yield {"axis": axis, "epsilon": symbols.real("epsilon")}
