"""Exact numbers for fingerprints: what is equal for real numbers is equal here, and what is not almost never is.

A number has up to three parts, and every scene has only those that its operators need.

p   its residue modulo the prime `P` of 31 bits: sums, products and quotients are exact.
q   its residue modulo the prime `Q`, where P = 2·Q + 1. It is there for exponents: e^x is g^q modulo P, for a g whose
    powers repeat after Q steps, so that e^(x+y) = e^x·e^y holds exactly (Mirage's construction). tanh is its quotient
    of exponentials. Of an exponential itself no exponent is known; a random function of p stands for it.
r   a real number, which alone decides what is larger; max, relu and clip take over the p and q of the one they take.

The parts are drawn independently of one another. √ is the power (P + 1)/4, and (Q + 3)/8: multiplicative, as the root
is. Every other function (erf, log, sin …) is a fixed random function of p; erf and sin are odd, cos is even. A law that
random functions do not obey is missed; none is invented, since all that is equal here is proved before it is a rule.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

P, Q = 2147483579, 1073741789
BASE = 4
"""A square other than 1, so its powers repeat after Q steps."""

SPREAD = 9.0
"""The largest real number drawn: beyond the bounds that operators clip at."""

ORDERED = frozenset({"max", "min", "abs", "step", "floor", "round"})
EXPONENTIAL = frozenset({"exp", "tanh"})
_ODD, _EVEN = frozenset({"erf", "sin"}), frozenset({"cos"})


class Value(NamedTuple):
    """A batch of numbers by their parts; None where the scene has no such part."""

    p: Array
    q: Array | None = None
    r: Array | None = None

    def map(self, change: Callable[[Array], Array]) -> Value:
        """The same change to each part, such as another shape."""
        return Value(
            change(self.p), None if self.q is None else change(self.q), None if self.r is None else change(self.r)
        )


def together(parts: Sequence[Array | None]) -> Array | None:
    """One part of several batches, one behind the other on the last axis."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present, axis=-1) if present else None


@dataclass(frozen=True)
class Parts:
    """Which parts numbers have."""

    q: bool = False
    r: bool = False


def times(a: Array, b: Array, modulus: int) -> Array:
    """a·b modulo a number below 2³¹, for 0 ≤ a, b < modulus: a quotient in floating point is off by at most one."""
    product = a * b
    product = product - (product * (1.0 / modulus)).astype(np.int64) * modulus
    product = product + (modulus & (product >> 63))
    return product - (modulus & ((modulus - 1 - product) >> 63))


def power(base: Array, exponent: int, modulus: int) -> Array:
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = times(result, base, modulus)
        base = times(base, base, modulus)
        exponent >>= 1
    return result


def raise_base(exponents: Array) -> Array:
    """BASE to each of the exponents, modulo P."""
    result, square = np.ones_like(exponents), BASE
    for bit in range(Q.bit_length()):
        result = np.where((exponents >> bit) & 1, times(result, np.asarray(square), P), result)
        square = square * square % P
    return result


_quiet: Any = np.errstate(all="ignore")
"""Real parts may overflow: they only decide what is larger."""


class Residues:
    """Arithmetic on batches."""

    def __init__(self, parts: Parts, seed: int = 0) -> None:
        self.parts, self.seed = parts, seed
        self._undefined: Array = np.zeros(1, bool)

    def undefined(self) -> Array:
        """Which of the batch divided by zero since this was last asked: they have no value."""
        found, self._undefined = self._undefined, np.zeros(1, bool)
        return found

    def _watch(self, divisor: Array) -> None:
        if not divisor.all():
            zero = (divisor == 0).any(axis=tuple(range(divisor.ndim - 1))) if divisor.ndim else np.ones(1, bool)
            self._undefined = self._undefined | zero

    def draw(self, shape: tuple[int, ...], random: np.random.Generator, place: float, *, truth: bool = False) -> Value:
        """Random numbers; `truth` for zeros and ones. `place` shifts the real ones, which are spread evenly, so that
        few of them tell signs, and numbers beyond a bound, apart."""
        if truth:
            return self._same(random.integers(0, 2, shape))
        p = random.integers(0, P, shape)
        q = random.integers(0, Q, shape) if self.parts.q else None
        return Value(p, q, _spread(shape, random, place) if self.parts.r else None)

    def _same(self, whole: Array) -> Value:
        return Value(whole % P, whole % Q if self.parts.q else None, whole.astype(np.float64) if self.parts.r else None)

    def number(self, value: Fraction | int) -> Value:
        f = Fraction(value)
        p = np.asarray(f.numerator * pow(f.denominator, -1, P) % P)
        q = np.asarray(f.numerator * pow(f.denominator, -1, Q) % Q) if self.parts.q else None
        return Value(p, q, np.asarray(float(f)) if self.parts.r else None)

    def whole(self, value: Array) -> Value:
        return self._same(np.asarray(value, dtype=np.int64))

    @_quiet
    def add(self, a: Value, b: Value) -> Value:
        q = None if a.q is None or b.q is None else (a.q + b.q) % Q
        return Value(_below(a.p + b.p, P), q, None if a.r is None or b.r is None else a.r + b.r)

    @_quiet
    def multiply(self, a: Value, b: Value) -> Value:
        q = None if a.q is None or b.q is None else times(a.q, b.q, Q)
        return Value(times(a.p, b.p, P), q, None if a.r is None or b.r is None else a.r * b.r)

    def choose(self, which: Array, then: Value, otherwise: Value) -> Value:
        parts: list[Any] = [
            None if a is None or b is None else np.where(which, a, b) for a, b in zip(then, otherwise, strict=True)
        ]
        return Value(*parts)

    @_quiet
    def reduce(self, kind: str, x: Value, guard: Array) -> Value:
        """Over the first axis, where the guard holds."""
        if kind == "sum":
            p = np.where(guard, x.p, 0).sum(axis=0) % P
            q = None if x.q is None else np.where(guard, x.q, 0).sum(axis=0) % Q
            return Value(p, q, None if x.r is None else np.where(guard, x.r, 0.0).sum(axis=0))
        rows = [x.map(lambda part, k=k: np.broadcast_to(part, guard.shape)[k]) for k in range(guard.shape[0])]
        if kind == "product":
            total = self.number(1).map(lambda part: np.broadcast_to(part, guard.shape[1:]))
            for k, row in enumerate(rows):
                total = self.choose(guard[k], self.multiply(total, row), total)
            return total
        assert x.r is not None
        real = np.where(guard, x.r, -np.inf if kind == "max" else np.inf)
        best = (np.argmax if kind == "max" else np.argmin)(real, axis=0)[None]
        return x.map(lambda part: np.take_along_axis(np.broadcast_to(part, guard.shape), best, axis=0)[0])

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        x = arguments[0] if arguments else self.number(0)
        with np.errstate(all="ignore"):
            if function in ORDERED:
                return self._ordered(function, arguments)
            if function == "reciprocal":
                self._watch(x.p)
                q = None if x.q is None else power(x.q, Q - 2, Q)
                return Value(power(x.p, P - 2, P), q, None if x.r is None else 1.0 / x.r)
            if function == "sqrt":
                q = None if x.q is None else power(x.q, (Q + 3) // 8, Q)
                return Value(power(x.p, (P + 1) // 4, P), q, None if x.r is None else np.sqrt(x.r))
            if function in EXPONENTIAL:
                return self._exponential(function, x)
            return self._random(function, arguments)

    def _ordered(self, function: str, arguments: Sequence[Value]) -> Value:
        x = arguments[0]
        assert x.r is not None
        if function in ("max", "min"):
            y = arguments[1]
            assert y.r is not None
            return self.choose(x.r >= y.r if function == "max" else x.r <= y.r, x, y)
        if function == "abs":
            return self.choose(x.r >= 0, x, self.multiply(self.number(-1), x))
        if function == "step":
            return self._same((x.r > 0).astype(np.int64))
        return self._random(function, arguments)

    def _exponential(self, function: str, x: Value) -> Value:
        assert x.q is not None
        if function == "exp":
            p = raise_base(x.q)
            return Value(p, self._scrambled("exponent", [p], Q), None if x.r is None else np.exp(x.r))
        twice = self.call("exp", [self.add(x, x)])
        under = self.call("reciprocal", [self.add(twice, self.number(1))])
        found = self.multiply(self.add(twice, self.number(-1)), under)
        return Value(found.p, found.q, None if x.r is None else np.tanh(x.r))

    def _random(self, function: str, arguments: Sequence[Value]) -> Value:
        def fixed(parts: list[Array], modulus: int) -> Array:
            found = self._scrambled(function, parts, modulus)
            if function in _ODD or function in _EVEN:
                mirrored = self._scrambled(function, [(P - part) % P for part in parts], modulus)
                return (found + (mirrored if function in _EVEN else modulus - mirrored)) % modulus
            return found

        inputs = [x.p for x in arguments]
        q = fixed(inputs, Q) if self.parts.q else None
        return Value(fixed(inputs, P), q, _real(function, arguments) if self.parts.r else None)

    def _scrambled(self, name: str, inputs: list[Array], modulus: int) -> Array:
        """A fixed function without algebra: what holds for it holds for any function."""
        start = int.from_bytes(hashlib.sha256(f"{self.seed}:{name}".encode()).digest()[:4], "big") % P
        state = np.asarray(start, dtype=np.int64)
        for part in inputs:
            state = (times(state, np.asarray(48271), P) + times(part % P, np.asarray(16807), P) + 12345) % P
            state = (times(times(state, state, P), state, P) + state) % P
        return state % modulus


def _spread(shape: tuple[int, ...], random: np.random.Generator, place: float) -> Array:
    """Real numbers from −SPREAD to SPREAD, evenly (by steps of the golden ratio) and shuffled."""
    count = int(np.prod(shape, dtype=np.int64))
    steps = (place + np.arange(count) * (math.sqrt(5) - 1) / 2 + random.uniform(0, 0.01, count)) % 1.0
    return (random.permutation(steps).reshape(shape) * 2 - 1) * SPREAD


_ERF = np.vectorize(math.erf, otypes=[np.float64])
_REAL: dict[str, Callable[..., Array]] = {
    "erf": lambda x: _ERF(x) if np.size(x) else x,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "round": np.round,
    "pow": np.power,
    "pi": lambda: np.asarray(np.pi),
}


def _real(function: str, arguments: Sequence[Value]) -> Array:
    known = _REAL.get(function, lambda x, *_: x)
    return known(*(x.r for x in arguments))


def _below(x: Array, modulus: int) -> Array:
    return x - (modulus & ((modulus - 1 - x) >> 63))
