"""The value of one element, as an expression over accesses to input tensors.

Every domain reads these expressions: numbers, finite fields, proofs, degrees, operation counts. `Call` stands for a
function of elements by name; a domain says what it knows about `exp` or `max`, and may know nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from superopt.ops.condition import Condition
from superopt.ops.index import Index, Poly, Symbol


class Element:
    """An expression; arithmetic with numbers and sizes builds larger ones."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Element:
        return add(self, lift(other))

    def __mul__(self, other: Operand) -> Element:
        return multiply(self, lift(other))

    def __sub__(self, other: Operand) -> Element:
        return add(self, multiply(Number(Fraction(-1)), lift(other)))

    def __rsub__(self, other: Operand) -> Element:
        return lift(other) - self

    def __neg__(self) -> Element:
        return multiply(Number(Fraction(-1)), self)

    def __truediv__(self, other: Operand) -> Element:
        return multiply(self, reciprocal(lift(other)))

    def __rtruediv__(self, other: Operand) -> Element:
        return lift(other) / self

    def __pow__(self, exponent: int) -> Element:
        power: Element = Number(Fraction(1))
        for _ in range(exponent):
            power = multiply(power, self)
        return power

    __radd__, __rmul__ = __add__, __mul__


@dataclass(frozen=True, slots=True, eq=False)
class Access(Element):
    """Element `indices` of the input tensor called `tensor`."""

    tensor: str
    indices: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Number(Element):
    value: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Size(Element):
    """A size used as a number, as in the mean over an axis."""

    index: Poly


@dataclass(frozen=True, slots=True, eq=False)
class Add(Element):
    left: Element
    right: Element


@dataclass(frozen=True, slots=True, eq=False)
class Multiply(Element):
    left: Element
    right: Element


@dataclass(frozen=True, slots=True, eq=False)
class Call(Element):
    """A function of elements: exp, reciprocal, max, …"""

    function: str
    arguments: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(Element):
    """`sum`, `max`, `min` or `product` of the body for variable = 0 … extent − 1, where the guard holds."""

    kind: str
    variable: Symbol
    extent: Index
    guard: Condition | bool
    body: Element


@dataclass(frozen=True, slots=True, eq=False)
class Select(Element):
    """The first where the condition on indices holds, the second elsewhere."""

    condition: Condition
    then: Element
    otherwise: Element


@dataclass(frozen=True, slots=True, eq=False)
class Choose(Element):
    """The second where the first, an element that is 0 or 1, is 1; the third where it is 0."""

    which: Element
    then: Element
    otherwise: Element


Operand: TypeAlias = Element | int | float | Fraction | Poly
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def lift(value: Operand) -> Element:
    """A number or size as an element. A float is taken for the decimal it prints as: 0.1 is one tenth."""
    if isinstance(value, Element):
        return value
    if isinstance(value, Poly):
        return Size(value)
    return Number(Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value))


def add(a: Element, b: Element) -> Element:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value + b.value)
    if a == ZERO:
        return b
    return a if b == ZERO else Add(a, b)


def multiply(a: Element, b: Element) -> Element:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.value * b.value)
    if a == ONE:
        return b
    return a if b == ONE else Multiply(a, b)


def reciprocal(a: Element) -> Element:
    if isinstance(a, Number) and a.value:
        return Number(1 / a.value)
    return Call("reciprocal", (a,))


def call(function: str, *arguments: Operand) -> Element:
    return Call(function, tuple(map(lift, arguments)))


def power(base: Element, exponent: Operand) -> Element:
    """base^exponent; where the exponent is a small known number, as a product, a root or the reciprocal of one."""
    e = lift(exponent)
    size = abs(e.value) if isinstance(e, Number) else None
    if size in (0, 1, 2, 3, 4):
        found = base ** int(size)
    elif size == Fraction(1, 2):
        found = call("sqrt", base)
    else:
        return call("pow", base, e)
    return reciprocal(found) if isinstance(e, Number) and e.value < 0 else found


def maximum(a: Operand, b: Operand) -> Element:
    return call("max", a, b)


def minimum(a: Operand, b: Operand) -> Element:
    return call("min", a, b)


def select(condition: Condition | bool, then: Operand, otherwise: Operand) -> Element:
    """By a condition on indices, such as being inside the padding."""
    if isinstance(condition, bool):
        return lift(then) if condition else lift(otherwise)
    return Select(condition, lift(then), lift(otherwise))


def choose(which: Element, then: Operand, otherwise: Operand) -> Element:
    """By an element that is 0 or 1; where that is known, or known at each index, by the index."""
    if isinstance(which, Number):
        return lift(then) if which.value else lift(otherwise)
    if isinstance(which, Select) and _is_known(which):
        return Select(which.condition, choose(which.then, then, otherwise), choose(which.otherwise, then, otherwise))
    return Choose(which, lift(then), lift(otherwise))


def _is_known(e: Element) -> bool:
    """Numbers, whatever the index."""
    return isinstance(e, Number) or (isinstance(e, Select) and _is_known(e.then) and _is_known(e.otherwise))


PI = call("pi")

_counter = itertools.count()


def fresh(prefix: str) -> Symbol:
    return Symbol(f"{prefix}!{next(_counter)}")


def reduce_over(
    kind: str, extent: Index, body: Callable[[Index], Element], guard: Callable[[Index], Condition | bool] | None = None
) -> Element:
    variable = fresh("r")
    index = Poly({(variable,): 1})
    return Reduce(kind, variable, extent, True if guard is None else guard(index), lift(body(index)))


def sum_over(extent: Index, body: Callable[[Index], Element]) -> Element:
    return reduce_over("sum", extent, body)


def max_over(
    extent: Index, body: Callable[[Index], Element], where: Callable[[Index], Condition | bool] | None = None
) -> Element:
    """The largest element of the range, of those where the condition holds."""
    return reduce_over("max", extent, body, where)


def min_over(extent: Index, body: Callable[[Index], Element]) -> Element:
    return reduce_over("min", extent, body)


def product_over(extent: Index, body: Callable[[Index], Element]) -> Element:
    return reduce_over("product", extent, body)
