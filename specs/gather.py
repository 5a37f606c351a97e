"""Gather: the entries of an axis that constant indices name, in the indices' own shape."""

from typing import Any

from specs._table import entries, look_up, table_shape
from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import pick, shape
from superopt.ops.element import Element
from superopt.ops.formula import Static, Tensor, normal_axis, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.series import Series


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    axis = draw_axis(rng, len(x))
    n, wanted = x[axis], shape(rng, 0, 2)
    if rng.random() < 0.3:
        start = int(rng.integers(n))
        indices = list(range(start, int(rng.integers(start, n)) + 1, pick(rng, 1, 2)))
    else:
        indices = rng.integers(-n, n, wanted).tolist()
    return Draw((x,), {"indices": indices, **({"axis": axis} if axis else {})})


@operator("Gather", since=1, elements="any", draw=draw)
def gather(x: Tensor, indices: Static, *, axis: int = 0) -> Tensor:
    require(x.rank >= 1, "a scalar has no axis")
    k = normal_axis(axis, x.rank)
    if isinstance(indices, Series):
        return _by_formula(x, indices, k)
    wanted, n = table_shape(indices), x.shape[k]
    taken = [index + n if index < 0 else index for index in entries(indices)]
    for index in taken:
        require(index >= 0, "an index before the start of the axis")
        require(index < n, "an index beyond the end of the axis")

    def at(*i: Index) -> Element:
        before, named, after = i[:k], i[k : k + len(wanted)], i[k + len(wanted) :]
        return look_up(wanted, taken, named, lambda index: x[*before, index, *after])

    return tensor((*x.shape[:k], *wanted, *x.shape[k + 1 :]), at)


def _by_formula(x: Tensor, indices: Series, k: int) -> Tensor:
    """Entries that are known are places of the axis. Where sizes are symbols they are not asked; a rule is only used
    where they are known."""
    known = indices.values()
    if known is not None:
        require(int(known.min()) >= 0, "an index before the start of the axis")
        require(int(known.max()) < x.shape[k], "an index beyond the end of the axis")
    shape = (*x.shape[:k], indices.size, *x.shape[k + 1 :])
    return tensor(shape, lambda *i: x[*i[:k], indices.entry(i[k]), *i[k + 1 :]])
