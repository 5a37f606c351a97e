"""Numbers of rules, such as 1/sqrt(2), against numbers of models, which are rounded to some type."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.ir.tensor import numpy_dtype
from superopt.ir.types import DType
from superopt.ops.element import PI, Add, Call, Element, Multiply, Number
from superopt.rewrite.conflict import Conflict

_PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-51}
"""Distance of neighbouring numbers near 1."""
_CODES = {"float16": "<e", "bfloat16": "<f", "float32": "<f"}
_FUNCTIONS = {"sqrt": math.sqrt, "reciprocal": lambda x: 1 / x, "exp": math.exp, "log": math.log}


def number_of(value: Any) -> float:
    """The value of an expression of numbers alone."""
    if isinstance(value, int | float | Fraction):
        return float(value)
    if value is PI:
        return math.pi
    if isinstance(value, Number):
        return float(value.value)
    if isinstance(value, Add):
        return number_of(value.left) + number_of(value.right)
    if isinstance(value, Multiply):
        return number_of(value.left) * number_of(value.right)
    if isinstance(value, Call) and value.function in _FUNCTIONS and len(value.arguments) == 1:
        try:
            return _FUNCTIONS[value.function](number_of(value.arguments[0]))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise Conflict("a number of the rule does not exist here") from None
    kind = type(value).__name__ if isinstance(value, Element) else "a symbolic size"
    raise Conflict(f"a number of the rule is not known: {kind}")


def rounds_to(found: float | int, expected: float, dtype: str) -> bool:
    """Whether a model's number is the rule's: the same where its type can hold it, else its neighbour on either side.

    The number next to 2 is not 2: x² of a negative x is a number, x to the power of almost 2 is none.
    """
    if isinstance(found, int) or found == expected:
        return found == expected
    precision, nearest = _PRECISION.get(dtype), rounded(expected, dtype)
    if precision is None or not math.isfinite(found) or nearest == expected:
        return False
    return found == nearest or abs(found - expected) <= precision * abs(expected)


def decimal(number: float, dtype: str = "float32") -> Fraction | float | int:
    """The shortest decimal that reads back as the same number of that type; infinities stay what they are."""
    if not number or not math.isfinite(number):
        return number or 0
    if dtype == "float64":
        return Fraction(repr(number))
    for digits in range(1, 18):
        text = f"{number:.{digits}g}"
        if rounded(float(text), dtype) == number:
            return Fraction(text)
    return Fraction(number)


def rounded(number: float, dtype: str) -> float:
    """The nearest number of a type, the even one of two; numbers too large for it stay what they are."""
    code = _CODES.get(dtype)
    if code is None:
        return number
    try:
        packed = struct.pack(code, number)
    except OverflowError:
        return number
    if dtype == "bfloat16":  # the upper half of float32
        bits = int.from_bytes(packed, "little")
        packed = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).to_bytes(4, "little")
    return struct.unpack(code, packed)[0]


def held(number: Any, dtype: DType) -> int | float:
    """A number as elements of a type hold it: integers hold whole ones only, and in a float what is neither 0 nor
    infinite becomes neither."""
    if not dtype.is_integer:
        meant = number_of(number)
        with np.errstate(over="ignore", under="ignore"):
            kept = float(np.asarray(meant).astype(numpy_dtype(dtype)))
        if dtype.is_float and (math.isinf(kept) != math.isinf(meant) or bool(kept) != bool(meant)):
            raise Conflict(f"elements of type {dtype} do not hold {meant}")
        return meant
    whole = number.value if isinstance(number, Number) else number
    if not isinstance(whole, int | Fraction) or whole.denominator != 1:
        raise Conflict(f"elements of type {dtype} hold no fractions")
    low, high = (0, 1 << dtype.bits) if str(dtype).startswith("u") else (-1 << dtype.bits - 1, 1 << dtype.bits - 1)
    if not low <= whole < high:
        raise Conflict(f"elements of type {dtype} do not hold {whole}")
    return int(whole)


def held_all(numbers: list[Any], dtype: DType) -> list[Any]:
    return [held_all(n, dtype) if isinstance(n, list) else held(n, dtype) for n in numbers]
