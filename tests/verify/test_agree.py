"""Where programs agree: the boxes are exactly the positions where outputs are the same for all inputs."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ops.domains import PRIME, Field
from superopt.ops.evaluate import evaluate
from superopt.ops.index import Index
from superopt.verify.agree import Box, agree, boxes
from superopt.verify.agree_symbolic import Programs, Sizes, agree_symbolically
from tests.verify.sides import given, op

pytestmark = pytest.mark.smt


def test_stacked_images_differ_only_at_the_seam() -> None:
    a, b, k = given("a", 1, 2, 6, 5), given("b", 1, 2, 6, 5), given("k", 3, 2, 3, 3)
    pads = [1, 1, 1, 1]
    apart = op("Concat", op("Conv", a, k, pads=pads), op("Conv", b, k, pads=pads), axis=2)
    stacked = op("Conv", op("Concat", a, b, axis=2), k, pads=pads)
    found = agree(apart, stacked, {"a": (1, 2, 6, 5), "b": (1, 2, 6, 5), "k": (3, 2, 3, 3)})
    assert found.different == (Box((0, 0, 5, 0), (1, 3, 7, 5)),)
    assert sum(box.count for box in found.same) == 3 * 10 * 5


def test_equal_programs_agree_everywhere() -> None:
    x, y = given("x", 3, 4), given("y", 4, 2)
    found = agree(
        op("MatMul", x, y),
        op("Transpose", op("MatMul", op("Transpose", y), op("Transpose", x))),
        {"x": (3, 4), "y": (4, 2)},
    )
    assert found.everywhere
    assert found.same == (Box((0, 0), (3, 2)),)


@pytest.mark.parametrize("seed", range(12))
def test_boxes_are_exact_for_random_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, kernel, stride = int(rng.integers(5, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    pad = int(rng.integers(0, kernel))
    shapes = {"x": (1, 1, size, size), "k": (1, 1, kernel, kernel)}
    x, k = given("x", *shapes["x"]), given("k", *shapes["k"])
    padded = op("Conv", x, k, pads=[pad] * 4, strides=[stride] * 2)
    shifted = op("Conv", x, k, pads=[pad, 0, pad, 2 * pad], strides=[stride] * 2)
    if padded.shape != shifted.shape:
        pytest.fail("the test draws programs of one shape")
    found = agree(padded, shifted, shapes)
    values = {n: rng.integers(0, PRIME, s) for n, s in shapes.items()}
    same = evaluate(padded, values, Field()) == evaluate(shifted, values, Field())
    covered = np.zeros_like(same)
    for box in found.same:
        covered[box.slices] = True
    np.testing.assert_array_equal(covered, same)


@pytest.mark.unit
def test_boxes_cover_a_mask_exactly() -> None:
    rng = np.random.default_rng(3)
    mask = rng.random((4, 5, 3)) < 0.6
    again = np.zeros_like(mask)
    for box in boxes(mask):
        assert not again[box.slices].any()
        again[box.slices] = True
    np.testing.assert_array_equal(again, mask)


def test_the_seam_is_found_for_all_heights() -> None:
    def build(sizes: Sizes) -> Programs:
        h, w = sizes["h"], sizes["w"]
        shapes: dict[str, tuple[Index, ...]] = {"a": (1, 1, h, w), "b": (1, 1, h, w), "k": (1, 1, 3, 3)}
        a, b, k = (given(n, *s) for n, s in shapes.items())
        pads = [1, 1, 1, 1]
        apart = op("Concat", op("Conv", a, k, pads=pads), op("Conv", b, k, pads=pads), axis=2)
        return apart, op("Conv", op("Concat", a, b, axis=2), k, pads=pads), shapes

    found = agree_symbolically(build, ["h", "w"])
    assert [str(box) for box in found] == [
        "0 ≤ i0 < 1, 0 ≤ i1 < 1, 0 ≤ i2 < -1 + h, 0 ≤ i3 < w",
        "0 ≤ i0 < 1, 0 ≤ i1 < 1, 1 + h ≤ i2 < 2·h, 0 ≤ i3 < w",
    ]


def test_programs_that_agree_nowhere_have_no_boxes() -> None:
    def build(sizes: Sizes) -> Programs:
        x = given("x", sizes["n"])
        return op("Add", x, x), x, {"x": (sizes["n"],)}

    assert agree_symbolically(build, ["n"]) == ()
