"""Numbers of models as people would write them, and numbers of rules as types hold them."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superopt.ir.tensor import numpy_dtype
from superopt.ir.types import DType
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.numerals import decimal, held, rounds_to
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import rules

pytestmark = pytest.mark.unit

TYPES = ("float16", "bfloat16", "float32", "float64")


@settings(derandomize=True, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from(TYPES))
def test_a_decimal_reads_back_as_the_number(number: float, dtype: str) -> None:
    with np.errstate(over="ignore"):
        held = float(np.asarray(number, numpy_dtype(DType(dtype))))
    if math.isfinite(held):
        again = np.asarray(float(decimal(held, dtype)), numpy_dtype(DType(dtype)))
        assert float(again) == held


@pytest.mark.parametrize(("number", "text"), [(0.1, "1/10"), (1e-5, "1/100000"), (1.702, "851/500"), (-0.5, "-1/2")])
def test_decimals_are_the_shortest(number: float, text: str) -> None:
    assert str(decimal(float(np.float32(number)))) == text


def test_zero_is_a_whole_number() -> None:
    """Some operators take an attribute of 0 for none, and look for the number 0."""
    assert isinstance(decimal(0.0), int)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("number", [0.0, 1.0, 2.0, -3.0, 0.5, 6.0])
def test_a_number_that_a_type_holds_is_that_number_alone(number: float, dtype: str) -> None:
    kind = numpy_dtype(DType(dtype))
    assert rounds_to(number, number, dtype)
    for toward in (-99.0, 99.0):
        near = float(np.nextafter(np.asarray(number, kind), np.asarray(toward, kind)))
        assert not rounds_to(near, number, dtype)


@pytest.mark.parametrize("dtype", TYPES[:3])
@pytest.mark.parametrize("number", [1 / 3, math.pi, 1 / math.sqrt(2), 0.044715, 1e-5])
def test_another_number_is_one_of_its_neighbours(number: float, dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    near = np.asarray(number, kind)
    other = np.nextafter(near, np.asarray(99.0 if float(near) < number else -99.0, kind))
    assert rounds_to(float(near), number, dtype)
    assert rounds_to(float(other), number, dtype) or number < 1e-4
    assert not rounds_to(number * 1.05, number, dtype)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_number(number: float) -> None:
    assert not rounds_to(number, 1.0, "float32")


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32])
def test_a_float_that_a_type_does_not_hold_is_refused(dtype: DType) -> None:
    largest, least = {DType.FLOAT16: (65504.0, 2.0**-24)}.get(dtype, (2.0**127, 2.0**-126))
    for number in (0, 1, Fraction(1, 3), -largest, least, math.inf, -math.inf):
        assert held(number, dtype) == float(number)
    for number in (largest * 2, -largest * 2, least / 2**30):
        with pytest.raises(Conflict, match="do not hold"):
            held(number, dtype)


@pytest.mark.ort
@pytest.mark.parametrize("side", [16, 200])
def test_a_mean_over_more_pixels_than_float16_has_weights_for_stays(side: int) -> None:
    text = f"g (float16[1,2,{side},{side}] x) => (float16[1,2,1,1] y) {{ y = GlobalAveragePool(x) }}"
    feeds = {"x": numbers(1, 2, side, side).astype(np.float16)}
    found = every_way(model(text), feeds, rules("global-average-pool-to-product"))
    assert bool(found) == (side == 16)
