# pyright: basic
"""Distances between floating-point numbers, counted in numbers that lie between."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType
from superopt.search.weighing import Origin, Weighing, farthest

pytestmark = pytest.mark.unit

ORIGINS: dict[Origin, bool] = {"original": False, "written": False, "folded": True, "combined": True}
FLOATS = [(DType.FLOAT16, np.float16), (DType.BFLOAT16, ml_dtypes.bfloat16)]
FLOATS += [(DType.FLOAT32, np.float32), (DType.FLOAT64, np.float64)]


@pytest.mark.parametrize(("dtype", "kind"), FLOATS)
@pytest.mark.parametrize("number", [1.0, -1.0, 0.0, -0.0, 1e-3, 65280.0])
def test_neighbours_are_one_apart_and_the_others_more(dtype: DType, kind: type, number: float) -> None:
    here = np.array([number], kind)
    up = np.nextafter(here, np.array([np.inf], kind))
    if number == 0.0 and np.signbit(here[0]):  # from −0 upwards 0 comes first
        up = np.array([0.0], kind)
    assert farthest(here, up, dtype).apart == farthest(up, here, dtype).apart == 1
    assert farthest(here, here, dtype).apart == 0
    further = np.nextafter(up, np.array([np.inf], kind))
    assert farthest(here, further, dtype).apart == 2


@pytest.mark.parametrize(("dtype", "kind"), FLOATS)
def test_the_worst_element_is_found_and_told(dtype: DType, kind: type) -> None:
    ours = np.ones((3, 4), kind)
    theirs = ours.copy()
    theirs[0, 1] = np.nextafter(theirs[0, 1], kind(2))
    theirs[2, 3] = -theirs[2, 3]
    worst = farthest(ours, theirs, dtype)
    assert (worst.index, worst.expected, worst.found) == ((2, 3), 1.0, -1.0)
    assert str(worst).startswith("element [2, 3]: expected 1.0, found -1.0 (")


@pytest.mark.parametrize(("dtype", "kind"), FLOATS)
@pytest.mark.parametrize(("one", "other"), [(np.inf, 1.0), (np.nan, 1.0), (np.inf, -np.inf), (np.inf, "largest")])
def test_what_is_not_finite_is_near_nothing(dtype: DType, kind: type, one: float, other: float | str) -> None:
    number = float(ml_dtypes.finfo(kind).max) if other == "largest" else other
    a, b = np.array(one, kind), np.array(number, kind)
    assert str(farthest(a, b, dtype)).endswith("(beyond counting apart)")
    assert farthest(a, a, dtype).apart == 0


def test_only_what_was_computed_may_be_near() -> None:
    ours = np.ones(5, np.float32)
    theirs = ours.copy()
    theirs[3] = np.nextafter(theirs[3], np.float32(2))
    for origin, allowed in ORIGINS.items():
        weighing = Weighing(lambda _, origin=origin: origin)
        assert weighing.judge(ArrayTensor(ours), ArrayTensor(ours.copy())) == ""
        assert (weighing.judge(ArrayTensor(ours), ArrayTensor(theirs)) == "") == allowed
        assert (weighing.exact[origin], weighing.near[origin]) == (1, int(allowed))


def test_whole_numbers_are_exact_whatever_made_them() -> None:
    weighing = Weighing(lambda _: "combined")
    ours, theirs = ArrayTensor(np.array([1, 2])), ArrayTensor(np.array([1, 3]))
    assert weighing.judge(ours, theirs).startswith("the content differs")
