# pyright: basic
"""Rules whose right side has a list by formula: used on whole images, and where sizes are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import opened, rules

ROLLED = """
g (float[N,6,8,3] x) => (float y)
<int64[1] far = {9223372036854775807}, int64[1] zero = {0}, int64[1] rows = {1}, int64[1] columns = {2},
 int64[1] two = {2}, int64[1] three = {-5}, int64[6] cut = {0,2,3,4,2,3}>
{
  a = Slice(x, two, far, rows)
  b = Slice(x, zero, two, rows)
  c = Concat<axis = 1>(a, b)
  d = Slice(c, three, far, columns)
  e = Slice(c, zero, three, columns)
  f = Concat<axis = 2>(d, e)
  s = Reshape(f, cut)
  y = Transpose<perm = [PERM]>(s)
}"""
BATCH_FIRST, POSITIONS_FIRST = "0,1,3,2,4,5", "2,4,0,1,3,5"
PUT_TOGETHER = """
g (float[2,2,4,3,2,5] x) => (float y)
<int64[1] far = {9223372036854775807}, int64[1] zero = {0}, int64[1] rows = {1}, int64[1] columns = {2},
 int64[1] one = {-1}, int64[1] three = {3}, int64[4] image = {2,6,8,5}>
{
  t = Transpose<perm = [0,1,3,2,4,5]>(x)
  s = Reshape(t, image)
  a = Slice(s, one, far, rows)
  b = Slice(s, zero, one, rows)
  c = Concat<axis = 1>(a, b)
  d = Slice(c, three, far, columns)
  e = Slice(c, zero, three, columns)
  y = Concat<axis = 2>(d, e)
}"""
FORWARD = rules("rolled-windows-to-gather", "rolled-windows-with-positions-first-to-gather")
BACK = rules("windows-put-together-and-rolled-to-gather")


@pytest.mark.ort
@pytest.mark.parametrize("batch", ["2", "N"])
def test_rolled_windows_of_any_batch_are_looked_up(batch: str) -> None:
    text = ROLLED.replace("N,", f"{batch},").replace("PERM", BATCH_FIRST)
    assert every_way(model(text), {"x": numbers(2, 6, 8, 3)}, FORWARD) == ["rolled-windows-to-gather"]


@pytest.mark.ort
def test_positions_first_needs_the_batch() -> None:
    """The images come between positions and windows: a list of their own for each batch size."""
    known, unknown = (ROLLED.replace("N,", f"{n},").replace("PERM", POSITIONS_FIRST) for n in ("2", "N"))
    found = every_way(model(known), {"x": numbers(2, 6, 8, 3)}, FORWARD)
    assert found == ["rolled-windows-with-positions-first-to-gather"]
    assert not every_way(model(unknown), {"x": numbers(2, 6, 8, 3)}, FORWARD)


@pytest.mark.ort
def test_windows_put_together_and_rolled_are_looked_up() -> None:
    assert every_way(model(PUT_TOGETHER), {"x": numbers(2, 2, 4, 3, 2, 5)}, BACK)


@pytest.mark.unit
def test_a_look_up_of_whole_rows_has_one_index_for_each() -> None:
    start = opened(model(ROLLED.replace("N,", "2,").replace("PERM", BATCH_FIRST)))
    (found,) = start.matches(start.piece, FORWARD)
    taken = start.take(start.piece, found)
    (gather,) = [node for node in taken.nodes if node.op == "Gather"]
    indices = gather.inputs[1]
    assert indices is not None
    assert indices.constant is not None
    places = np.roll(np.arange(48).reshape(6, 8), (-2, -3), (0, 1))
    wanted = places.reshape(2, 3, 4, 2).transpose(0, 2, 1, 3).reshape(-1)
    assert np.array_equal(indices.constant.numpy(), wanted)
