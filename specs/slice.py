"""Slice: a range with a step along some axes; ends beyond the axis stop at it, negative ones count from its end."""

from typing import Any

from superopt.ops.draws import axes as draw_axes
from superopt.ops.draws import pick, shape, size
from superopt.ops.formula import Static, Tensor, normal_axis, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator

INT_MAX = 2**31 - 1
"""From here on a bound means the end of the axis, whatever its size, as ONNX recommends to write it."""


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4)
    axes = draw_axes(rng, len(x), least=1)
    if named := rng.random() < 0.8:
        count = len(axes)
    else:
        count = size(rng, 1, len(x))
    steps = [pick(rng, 1, 1, 2, 3, -1, -2) for _ in range(count)]
    far = [INT_MAX, 2**63 - 1] if rng.random() < 0.5 else [9]
    starts = [size(rng, -6, 6) for _ in steps]
    ends = [pick(rng, size(rng, -6, 6), size(rng, -6, 6), *(n if s > 0 else -n for n in far)) for s in steps]
    arguments: dict[str, Any] = {"starts": starts, "ends": ends}
    if named:
        arguments["axes"] = axes
    if any(s != 1 for s in steps):
        arguments["steps"] = steps
    return Draw((x,), arguments)


def bounded(bound: Index, n: Index, low: Index, high: Index) -> Index:
    """A start or end within `low` … `high`, where a negative one counts from the end of an axis of size `n`."""
    if isinstance(bound, int) and abs(bound) >= INT_MAX:
        return high if bound > 0 else low
    if bound < 0:
        bound = bound + n
    if bound < low:
        bound = low
    return high if bound > high else bound


def places(n: Index, start: Index, end: Index, step: Index) -> tuple[Index, Index]:
    """The first index taken, and how many are."""
    require(step != 0, "a step is not 0")
    if step > 0:
        first, past = bounded(start, n, 0, n), bounded(end, n, 0, n)
        span, stride = past - first, step
    else:
        first, past = bounded(start, n, 0, n - 1), bounded(end, n, -1, n - 1)
        span, stride = first - past, -step
    return first, ((span + stride - 1) // stride if span > 0 else 0)


@operator("Slice", since=1, elements="any", draw=draw)
def slice_(x: Tensor, starts: Static, ends: Static, axes: Static = None, steps: Static = None) -> Tensor:
    count = len(starts)
    along = [normal_axis(a, x.rank) for a in (range(count) if axes is None else axes)]
    strides: list[Index] = [1] * count if steps is None else list(steps)
    require(len(ends) == len(along) == len(strides) == count, "starts, ends, axes and steps differ in number")
    require(len(set(along)) == count, "an axis is named twice")
    firsts: list[Index] = [0] * x.rank
    step_of: list[Index] = [1] * x.rank
    sizes = list(x.shape)
    for axis, start, end, step in zip(along, starts, ends, strides, strict=True):
        firsts[axis], sizes[axis] = places(x.shape[axis], start, end, step)
        step_of[axis] = step
    return tensor(tuple(sizes), lambda *i: x[tuple(f + s * j for f, s, j in zip(firsts, step_of, i, strict=True))])
