"""Numbers of rules, such as 1/sqrt(2), against numbers of models, which are rounded to some type."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from superopt.ops.element import PI, Add, Call, Element, Multiply, Number
from superopt.rewrite.bind import Conflict

_PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-51}
"""Distance of neighbouring numbers near 1."""
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
    """Whether a model's number is the rule's, as its type can hold it: rounded up or down."""
    if isinstance(found, int):
        return found == expected
    if math.isnan(found) or math.isinf(found):
        return False
    precision = _PRECISION.get(dtype)
    return precision is not None and abs(found - expected) <= precision * abs(expected)
