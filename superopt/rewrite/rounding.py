"""float64 rounded to a narrower type once: to the nearest number, ties to the even one."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from superopt.ir.tensor import Array, numpy_dtype
from superopt.ir.types import DType


def rounded(array: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype is not DType.BFLOAT16:
            return array.astype(numpy_dtype(dtype))
        return _to_odd(array).astype(ml_dtypes.bfloat16)


def _to_odd(array: Array) -> Array:
    """float32 whose last bit says whether something was cut off, so that rounding it again is rounding once."""
    wide = np.asarray(array, np.float64)
    near = wide.astype(np.float32)
    inexact = np.isfinite(near) & (near.astype(np.float64) != wide)
    away = inexact & (np.abs(near.astype(np.float64)) > np.abs(wide))
    bits = near.view(np.uint32).copy()
    bits[away] -= 1  # cut off instead of rounded up
    bits[inexact] |= 1
    return bits.view(np.float32).reshape(wide.shape)
