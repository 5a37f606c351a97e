# pyright: basic
"""Which types hold every value of which others, against numpy."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from superopt.ir.tensor import numpy_dtype
from superopt.ir.types import DType
from superopt.normalize.casting import holds

pytestmark = pytest.mark.unit

INTEGERS = [DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64]
TYPES = [DType.BOOL, *INTEGERS, *FLOATS]


def extremes(dtype: DType) -> np.ndarray:
    """The values that a smaller type cannot hold: largest, smallest, and with the most digits."""
    kind = numpy_dtype(dtype)
    if dtype is DType.BOOL:
        return np.array([False, True])
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        return np.array([limits.min, limits.max, limits.max - 1, 0, 1], kind)
    limits = ml_dtypes.finfo(kind)
    numbers = [limits.max, limits.smallest_subnormal, limits.smallest_normal, 1 + limits.eps, -1, 0]
    return np.array([float(n) for n in numbers], kind)


@pytest.mark.parametrize(("wide", "narrow"), list(itertools.product(TYPES, repeat=2)))
def test_holds(wide: DType, narrow: DType) -> None:
    values = extremes(narrow)
    with np.errstate(all="ignore"):
        there = values.astype(numpy_dtype(wide))
        back = there.astype(numpy_dtype(narrow))
        exact = all(_number(a) == _number(b) for a, b in zip(values, there, strict=True))
    assert holds(wide, narrow) == (exact and bool(np.all(back == values)))


@pytest.mark.parametrize("dtype", [DType.STRING, DType.COMPLEX64, DType.FLOAT8E5M2, DType.INT4])
def test_other_types_hold_only_themselves(dtype: DType) -> None:
    assert [wide for wide in DType if holds(wide, dtype)] == [dtype]
    assert [narrow for narrow in DType if holds(dtype, narrow)] == [dtype]


def _number(value: np.generic) -> int | float:
    """As Python compares them: integers and floats exactly, whatever their size."""
    return float(value) if value.dtype.kind in "fV" or value.dtype.name == "bfloat16" else int(value)
