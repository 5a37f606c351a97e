"""Pad: a border around a tensor, of a constant or of its own elements; negative pads crop, before anything is added."""

from collections.abc import Sequence
from typing import Any

from superopt.ops.draws import axes as draw_axes
from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Element, Operand, lift, select
from superopt.ops.formula import Static, Tensor, covered, normal_axis, padded, replaced, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw_2(rng: Any) -> Draw:
    x = shape(rng, 1, 4)
    arguments: dict[str, Any] = {"mode": pick(rng, "constant", "reflect", "edge")}
    if arguments["mode"] == "constant":
        arguments["value"] = float(rng.integers(-2, 3))
    return Draw((x,), {**arguments, "pads": [size(rng, -1, 3) for _ in range(2 * len(x))]})


def draw_11(rng: Any) -> Draw:
    x = shape(rng, 1, 4)
    mode = pick(rng, "constant", "reflect", "edge", "wrap")
    arguments: dict[str, Any] = {"mode": mode} if mode != "constant" or rng.random() < 0.5 else {}
    count = len(x)
    if rng.random() < 0.5:
        arguments["axes"] = draw_axes(rng, len(x), least=1)
        count = len(arguments["axes"])
    arguments["pads"] = [size(rng, -1, 2 if mode == "reflect" else 4) for _ in range(2 * count)]
    return Draw((x, pick(rng, (), (1,))) if mode == "constant" and rng.random() < 0.6 else (x,), arguments)


def bordered(x: Tensor, before: Sequence[Index], after: Sequence[Index], mode: str, fill: Operand) -> Tensor:
    """`x` with `before` and `after` elements more at each axis."""
    for n, b, a in zip(x.shape, before, after, strict=True):
        require(n + b + a >= 0, "more is cropped than there is")
    if mode == "constant":
        return padded(x, tuple(before), tuple(after), lift(fill))
    require(mode in ("reflect", "edge", "wrap"), f"mode {mode} is none of ONNX")
    for axis in range(x.rank):
        x = _continued(x, axis, before[axis], after[axis], mode)
    return x


def _continued(x: Tensor, axis: int, before: Index, after: Index, mode: str) -> Tensor:
    """One axis, cropped where a pad is negative and then continued by its own elements."""
    if all(isinstance(pad, int) and pad == 0 for pad in (before, after)):
        return x
    first: Index = 0
    n = x.shape[axis]
    if before < 0:
        first, n, before = -before, n + before, 0
    if after < 0:
        n, after = n + after, 0
    require(n >= 1, "nothing is left to continue")
    if mode == "reflect":
        covered(before < n, "a reflection longer than the axis")
        covered(after < n, "a reflection longer than the axis")

    def at(*i: Index) -> Element:
        def read(index: Index) -> Element:
            return x[replaced(i, axis, first + index)]

        j = i[axis] - before
        if mode == "wrap":
            return read(j % n)
        low, high = (-j, 2 * (n - 1) - j) if mode == "reflect" else (0, n - 1)
        return select(j < 0, read(low), select(j < n, read(j), read(high)))

    return tensor(replaced(x.shape, axis, before + n + after), at)


@operator("Pad", since=2, until=10, elements="any", draw=draw_2)
def pad_2(x: Tensor, *, pads: Sequence[Index], mode: str = "constant", value: float | Element = 0.0) -> Tensor:
    require(len(pads) == 2 * x.rank, "two pads for each axis")
    return bordered(x, pads[: x.rank], pads[x.rank :], mode, value)


@operator("Pad", since=11, elements="any", draw=draw_11)
def pad_11(
    x: Tensor, pads: Static, constant_value: Tensor | None = None, axes: Static = None, *, mode: str = "constant"
) -> Tensor:
    along = [normal_axis(a, x.rank) for a in (range(x.rank) if axes is None else axes)]
    require(len(set(along)) == len(along), "an axis is named twice")
    require(len(pads) == 2 * len(along), "two pads for each axis")
    before: list[Index] = [0] * x.rank
    after: list[Index] = [0] * x.rank
    for k, axis in enumerate(along):
        before[axis], after[axis] = pads[k], pads[len(along) + k]
    if constant_value is None:
        return bordered(x, before, after, mode, 0)
    require(constant_value.rank <= 1, "constant_value is one number")
    if constant_value.rank:
        require(constant_value.shape[0] == 1, "constant_value is one number")
    return bordered(x, before, after, mode, constant_value[(0,) * constant_value.rank])
