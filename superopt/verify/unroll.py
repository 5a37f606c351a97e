"""Sums over a few points written out, and output positions told apart by their remainder.

A sum over a small constant range is the sum of its points: once a point is a number, a table of constants read there is
a number too, and what is multiplied by zero is gone. A quotient ⌊i/d⌋ of an output position by a small number has no
term of its own once i is written as d·q + r, with a proof for each r.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.element import (
    ZERO,
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
    add,
    lift,
    multiply,
    select,
)
from superopt.ops.index import (
    Index,
    Poly,
    Quotient,
    Symbol,
    atoms_of,
    substitute,
    substitute_condition,
)

LONGEST = 64
"""Points of the longest sum that is written out."""
LARGEST_DIVISOR = 8
"""The most remainders by which positions on one axis are told apart."""
MOST_CASES = 64

Points = Mapping[Symbol, int]
"""Variables of sums by the points they stand at. Those of sums that stay keep their names in every copy: terms that
come of one sum are then alike as text, and where copies are multiplied, `terms.multiply` gives them other names."""


def unrolled(e: Element, at: Points | None = None) -> Element:
    """The same element with short sums written out, where the variables around it stand `at` these points."""
    at = at or {}
    if isinstance(e, Access):
        return Access(e.tensor, tuple(substitute(i, at) for i in e.indices))
    if isinstance(e, Number):
        return e
    if isinstance(e, Size):
        return lift(substitute(e.index, at))
    if isinstance(e, Add):
        return add(unrolled(e.left, at), unrolled(e.right, at))
    if isinstance(e, Multiply):
        left = unrolled(e.left, at)
        return left if left == ZERO else _times(left, unrolled(e.right, at))
    if isinstance(e, Call):
        return Call(e.function, tuple(unrolled(a, at) for a in e.arguments))
    if isinstance(e, Choose):
        return Choose(unrolled(e.which, at), unrolled(e.then, at), unrolled(e.otherwise, at))
    if isinstance(e, Select):
        holds = substitute_condition(e.condition, at)
        if isinstance(holds, bool):
            return unrolled(e.then if holds else e.otherwise, at)
        return select(holds, unrolled(e.then, at), unrolled(e.otherwise, at))
    assert isinstance(e, Reduce)
    return _reduced(e, at)


def _times(a: Element, b: Element) -> Element:
    return b if b == ZERO else multiply(a, b)


def _reduced(e: Reduce, at: Points) -> Element:
    extent = substitute(e.extent, at)
    if e.kind != "sum" or not isinstance(extent, int) or extent > LONGEST:
        return Reduce(e.kind, e.variable, extent, substitute_condition(e.guard, at), unrolled(e.body, at))
    total: Element = ZERO
    for k in range(extent):
        here = {**at, e.variable: k}
        guard = substitute_condition(e.guard, here)
        if guard is not False:
            total = add(total, select(guard, unrolled(e.body, here), 0))
    return total


def places(place: tuple[Poly, ...], *elements: Element) -> list[tuple[Index, ...]]:
    """The position in cases that together are all of it: i as d·q + r where ⌊i/d⌋ is read; alone, where none is."""
    divisors = [1] * len(place)
    axes = {atom: k for k, index in enumerate(place) for atom in atoms_of(index)}
    for quotient in {q for e in elements for i in _indices(e) for q in atoms_of(i) if isinstance(q, Quotient)}:
        read = [a for a in atoms_of(quotient.number) if a in axes]
        if isinstance(quotient.divisor, int) and len(read) == 1:
            axis = axes[read[0]]
            both = math.lcm(divisors[axis], quotient.divisor)
            divisors[axis] = both if both <= LARGEST_DIVISOR else divisors[axis]
    if math.prod(divisors) > MOST_CASES:
        return [place]
    ways = [
        [Poly({(Symbol(f"{i}/{d}"),): d}) + r for r in range(d)] if d > 1 else [i]
        for i, d in zip(place, divisors, strict=True)
    ]
    return list(product(*ways))


def _indices(e: Element) -> Iterator[Index]:
    """Every index that an element mentions."""
    if isinstance(e, Access):
        yield from e.indices
    elif isinstance(e, Size):
        yield e.index
    elif isinstance(e, Add | Multiply):
        yield from _indices(e.left)
        yield from _indices(e.right)
    elif isinstance(e, Call):
        for argument in e.arguments:
            yield from _indices(argument)
    elif isinstance(e, Choose):
        yield from (i for part in (e.which, e.then, e.otherwise) for i in _indices(part))
    elif isinstance(e, Select):
        yield from _compared(e.condition)
        yield from (i for part in (e.then, e.otherwise) for i in _indices(part))
    elif isinstance(e, Reduce):
        yield e.extent
        yield from _compared(e.guard)
        yield from _indices(e.body)


def _compared(condition: Condition | bool) -> Iterator[Index]:
    if isinstance(condition, AtLeastZero | Zero):
        yield condition.index
    elif isinstance(condition, Not):
        yield from _compared(condition.of)
    elif isinstance(condition, Both):
        yield from (i for part in condition.parts for i in _compared(part))


def term_count(e: Element) -> int:
    """How many terms the element has when it is multiplied out."""
    if isinstance(e, Number):
        return int(e != ZERO)
    if isinstance(e, Add):
        return term_count(e.left) + term_count(e.right)
    if isinstance(e, Multiply):
        return term_count(e.left) * term_count(e.right)
    if isinstance(e, Select):
        return term_count(e.then) + term_count(e.otherwise)
    if isinstance(e, Choose):
        return term_count(e.then) + 2 * term_count(e.otherwise)
    return term_count(e.body) if isinstance(e, Reduce) and e.kind == "sum" else 1
