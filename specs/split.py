"""Split: consecutive parts along an axis, of the sizes given or as equal as can be."""

from collections.abc import Sequence
from typing import Any

from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import shape, size
from superopt.ops.formula import Static, Tensor, covered, normal_axis, replaced, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def parts(x: Tensor, axis: int, sizes: Sequence[Index], outputs: int) -> tuple[Tensor, ...]:
    """Parts of these sizes, one after the other."""
    require(len(sizes) == outputs, f"{len(sizes)} sizes for {outputs} outputs")
    found: list[Tensor] = []
    start: Index = 0
    for n in sizes:
        require(n >= 0, "a part has no negative size")
        found.append(_part(x, axis, start, n))
        start = start + n
    require(start == x.shape[axis], "the parts do not add up to the axis")
    return tuple(found)


def _part(x: Tensor, axis: int, start: Index, n: Index) -> Tensor:
    return tensor(replaced(x.shape, axis, n), lambda *i: x[replaced(i, axis, start + i[axis])])


def _drawn(rng: Any) -> tuple[list[int], int, list[int]]:
    x = list(shape(rng, 1, 4))
    axis = draw_axis(rng, len(x))
    return x, axis, [size(rng, 0, 3) for _ in range(size(rng, 1, 4))]


def draw_2(rng: Any) -> Draw:
    x, axis, split = _drawn(rng)
    if rng.random() < 0.3:
        x[axis] = len(split) * size(rng, 1, 3)
        return Draw((tuple(x),), {"axis": axis}, outputs=len(split))
    x[axis] = sum(split)
    return Draw((tuple(x),), {"axis": axis, "split": split}, outputs=len(split))


def draw_18(rng: Any) -> Draw:
    x, axis, split = _drawn(rng)
    if rng.random() < 0.5:
        x[axis] = size(rng, 1, 12)
        return Draw((tuple(x),), {"axis": axis, "num_outputs": len(split)}, outputs=len(split))
    x[axis] = sum(split)
    return Draw((tuple(x),), {"axis": axis, "split": split}, outputs=len(split))


@operator("Split", since=2, until=17, elements="any", draw=draw_2)
def split_2(x: Tensor, split: Static = None, *, axis: int = 0, outputs: int) -> tuple[Tensor, ...]:
    k = normal_axis(axis, x.rank)
    if split is None:
        require(x.shape[k] % outputs == 0, "the axis does not split evenly")
        split = [x.shape[k] // outputs] * outputs
    return parts(x, k, split, outputs)


@operator("Split", since=18, elements="any", draw=draw_18)
def split_18(
    x: Tensor, split: Static = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int
) -> tuple[Tensor, ...]:
    k = normal_axis(axis, x.rank)
    require((split is None) != (num_outputs is None), "either split or num_outputs is given")
    if split is None:
        require(num_outputs == outputs, f"num_outputs is {num_outputs}, outputs are {outputs}")
        chunk = (x.shape[k] + outputs - 1) // outputs
        last = x.shape[k] - chunk * (outputs - 1)
        covered(last >= 1, "nothing left for the last part")
        split = [*[chunk] * (outputs - 1), last]
    return parts(x, k, split, outputs)
