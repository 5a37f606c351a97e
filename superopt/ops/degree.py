"""In which inputs a formula is linear: the degrees of its terms in each input, read off the expression."""

from __future__ import annotations

from typing import TypeAlias

from superopt.ops.element import (
    Access,
    Add,
    Call,
    Choose,
    Element,
    Multiply,
    Number,
    Reduce,
    Select,
    Size,
)
from superopt.ops.formula import Tensor
from superopt.ops.index import symbol

Degrees: TypeAlias = frozenset[int] | None
"""Degrees of all terms; none at all for what is zero; None where it is no polynomial."""

ZERO_TERMS: frozenset[int] = frozenset()
FREE: frozenset[int] = frozenset({0})


def degrees(tensor: Tensor, name: str) -> Degrees:
    """The degrees of a tensor's element in the input called `name`."""
    return _degrees(tensor[tuple(symbol(f"@{k}") for k in range(tensor.rank))], name)


def is_linear(tensor: Tensor, name: str) -> bool:
    """Every term has the input once: f(a·x + b·y) = a·f(x) + b·f(y)."""
    return degrees(tensor, name) == frozenset({1})


def _degrees(e: Element, name: str) -> Degrees:
    if isinstance(e, Access):
        return frozenset({1}) if e.tensor == name else FREE
    if isinstance(e, Number):
        return FREE if e.value else ZERO_TERMS
    if isinstance(e, Size):
        return FREE
    if isinstance(e, Add):
        return _union(_degrees(e.left, name), _degrees(e.right, name))
    if isinstance(e, Select):
        return _union(_degrees(e.then, name), _degrees(e.otherwise, name))
    if isinstance(e, Multiply):
        return _sums(_degrees(e.left, name), _degrees(e.right, name))
    if isinstance(e, Choose):
        return _sums(_degrees(e.which, name), _union(_degrees(e.then, name), _degrees(e.otherwise, name)))
    if isinstance(e, Reduce) and e.kind == "sum":
        return _degrees(e.body, name)
    inside = [e.body] if isinstance(e, Reduce) else list(e.arguments) if isinstance(e, Call) else []
    mentions = any(_degrees(part, name) not in (FREE, ZERO_TERMS) for part in inside)
    return None if mentions else FREE


def _union(a: Degrees, b: Degrees) -> Degrees:
    return None if a is None or b is None else a | b


def _sums(a: Degrees, b: Degrees) -> Degrees:
    return None if a is None or b is None else frozenset(x + y for x in a for y in b)
