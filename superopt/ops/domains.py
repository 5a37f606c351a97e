"""Arithmetics to evaluate formulas in.

Reals      float64: what the operator computes, for tests against the runtime and for counterexamples
Field      integers modulo a prime of 31 bits: exact; quotients are exact, functions are random functions
Ordered    small integers: exact and ordered, for max and relu; no quotients, no transcendental functions
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from superopt.ops.evaluate import Array, Unsupported

PRIME = (1 << 31) - 1


def _rounding_to(dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """The nearest number of a floating-point type; an integer toward zero, and wrapped around; 0 or 1 for bool."""
    if dtype.kind in "iu":
        return lambda x: np.trunc(x).astype(np.int64).astype(dtype).astype(np.float64)
    return lambda x: x.astype(dtype).astype(np.float64)


_CAST_TYPES: tuple[type[Any], ...] = (
    np.bool_, np.float16, ml_dtypes.bfloat16, np.float32, np.float64,
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
_ERF = np.vectorize(math.erf, otypes=[np.float64])
_FLOAT_CALLS: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "erf": lambda x: _ERF(x) if np.size(x) else x,
    "reciprocal": lambda x: 1.0 / x,
    "max": np.maximum,
    "min": np.minimum,
    "abs": np.abs,
    "step": lambda x: (x > 0).astype(np.float64),
    "pow": np.power,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "round": np.round,
    "pi": lambda: np.asarray(np.pi),
    "isnan": lambda x: np.isnan(x).astype(np.float64),
    **{f"cast_{np.dtype(t)}": _rounding_to(np.dtype(t)) for t in _CAST_TYPES},
}


class Reals:
    """What has no value is NaN or infinite, as in the runtime, and no warning."""

    def number(self, value: Any) -> Array:
        return np.asarray(float(value) if isinstance(value, Fraction) else value, dtype=np.float64)

    def add(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return a + b

    def multiply(self, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return a * b

    def call(self, function: str, arguments: list[Array]) -> Array:
        known = _FLOAT_CALLS.get(function)
        if known is None:
            raise Unsupported(f"no real function is called {function!r}")
        with np.errstate(all="ignore"):
            return known(*arguments)

    def reduce(self, kind: str, values: Array, guard: Array) -> Array:
        neutral = {"sum": 0.0, "product": 1.0, "max": -np.inf, "min": np.inf}[kind]
        values = np.where(guard, values, neutral)
        by = {"sum": np.sum, "product": np.prod, "max": np.max, "min": np.min}[kind]
        return by(values, axis=0, initial=neutral) if kind in ("max", "min") else by(values, axis=0)


class Field:
    """Arithmetic modulo `PRIME`. Inputs must be in 0 … PRIME − 1."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def number(self, value: Any) -> Array:
        if isinstance(value, Fraction):
            return np.asarray(value.numerator * pow(value.denominator, -1, PRIME) % PRIME, dtype=np.int64)
        return np.asarray(value, dtype=np.int64) % PRIME

    def add(self, a: Array, b: Array) -> Array:
        return (a + b) % PRIME

    def multiply(self, a: Array, b: Array) -> Array:
        return a * b % PRIME

    def call(self, function: str, arguments: list[Array]) -> Array:
        if function in ("max", "min", "abs", "step", "floor", "round"):
            raise Unsupported(f"a field has no order, so no {function}")
        if function == "reciprocal":
            return _inverse(arguments[0])
        if function == "cast_bool":
            return _is_not_zero(arguments[0])
        if function == "isnan":
            return np.zeros_like(arguments[0])
        return self._random_function(function, arguments)

    def _random_function(self, name: str, arguments: list[Array]) -> Array:
        """A fixed function with no algebra: what holds for it holds for any function."""
        state = np.asarray(hash_text(f"{self.seed}:{name}") % PRIME, dtype=np.int64)
        for argument in arguments:
            state = (state * 48271 + argument * 16807 + 12345) % PRIME
            state = (state * state % PRIME * state + state) % PRIME
        return state

    def reduce(self, kind: str, values: Array, guard: Array) -> Array:
        if kind == "sum":
            return np.where(guard, values, 0).sum(axis=0) % PRIME
        if kind == "product":
            total = np.ones(values.shape[1:], np.int64)
            for row in np.where(guard, values, 1):
                total = total * row % PRIME
            return total
        raise Unsupported(f"a field has no order, so no {kind}")


class Ordered:
    """Exact int64 with true order."""

    def number(self, value: Any) -> Array:
        if isinstance(value, Fraction):
            if value.denominator != 1:
                raise Unsupported(f"{value} is no integer")
            value = value.numerator
        return np.asarray(value, dtype=np.int64)

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def multiply(self, a: Array, b: Array) -> Array:
        return a * b

    def call(self, function: str, arguments: list[Array]) -> Array:
        if function in ("max", "min", "abs"):
            return _FLOAT_CALLS[function](*arguments)
        if function == "step":
            return (arguments[0] > 0).astype(np.int64)
        if function == "cast_bool":
            return _is_not_zero(arguments[0])
        if function == "isnan":
            return np.zeros_like(arguments[0])
        raise Unsupported(f"{function} of an integer is no integer")

    def reduce(self, kind: str, values: Array, guard: Array) -> Array:
        huge = np.iinfo(np.int64).max // 4
        neutral = {"sum": 0, "product": 1, "max": -huge, "min": huge}[kind]
        values = np.where(guard, values, neutral)
        by = {"sum": np.sum, "product": np.prod, "max": np.max, "min": np.min}[kind]
        return by(values, axis=0, initial=neutral) if kind in ("max", "min") else by(values, axis=0)


def _is_not_zero(a: Array) -> Array:
    """What masks are made with: it needs no order, so every arithmetic has it."""
    return (a != 0).astype(np.int64)


def _inverse(a: Array) -> Array:
    """a^(p−2) by squaring; 0 has no inverse and gives 0."""
    result, base, exponent = np.ones_like(a), a % PRIME, PRIME - 2
    while exponent:
        if exponent & 1:
            result = result * base % PRIME
        base = base * base % PRIME
        exponent >>= 1
    return result


def hash_text(text: str) -> int:
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % (1 << 32)
    return value
