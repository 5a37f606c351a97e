"""Evaluate one operator on thousands of operands at once. Batches are the last axis of every array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from superopt.generate.residues import EXPONENTIAL, ORDERED, Array, Parts, Residues, Value
from superopt.ops.condition import Condition
from superopt.ops.element import Access, Add, Call, Choose, Element, Multiply, Number, Reduce, Select, Size
from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Tensor
from superopt.ops.index import Index, Poly, Symbol, symbol
from superopt.ops.places import Places


def at_place(tensor: Tensor) -> Element:
    """The element at i0, i1, …"""
    return tensor[tuple(symbol(f"i{k}") for k in range(tensor.rank))]


@dataclass
class Plan:
    """What indices and conditions of one formula come to, by the identity of their expressions."""

    def __reduce__(self) -> tuple[type[Plan], tuple[()]]:
        """In another process objects have other identities: there a plan starts empty."""
        return (Plan, ())

    numbers: dict[int, Array] = field(default_factory=dict[int, Array])
    places: dict[int, tuple[Array, ...]] = field(default_factory=dict[int, tuple[Array, ...]])


def evaluate(
    element: Element, shape: tuple[int, ...], inputs: Mapping[str, Value], domain: Residues, count: int, plan: Plan
) -> Value:
    """All elements of a tensor of this shape, from the formula of the one at i0, i1, …: shape (*shape, count).

    The plan belongs to the formula and lives as long: the first evaluation fills it, the others read it.
    """
    run = _Run(inputs, domain, len(shape), plan)
    for k, axis in enumerate(np.indices(shape, sparse=True) if shape else ()):
        run.variables[Symbol(f"i{k}")] = axis
    value = run.element(element)
    return value.map(lambda part: np.ascontiguousarray(np.broadcast_to(part, (*shape, count))))


class _Run(Places):
    """Every bound variable adds an axis in front. A condition on indices has no batch axis; values do."""

    def __init__(self, inputs: Mapping[str, Value], domain: Residues, rank: int, plan: Plan) -> None:
        super().__init__()
        self.inputs, self.domain, self.rank, self.plan = inputs, domain, rank, plan
        self.depth = 0

    def element(self, e: Element) -> Value:
        domain = self.domain
        if isinstance(e, Access):
            return self._access(e)
        if isinstance(e, Number):
            return domain.number(e.value)
        if isinstance(e, Size):
            return domain.whole(self.index(e.index)[..., None])
        if isinstance(e, Add):
            return domain.add(self.element(e.left), self.element(e.right))
        if isinstance(e, Multiply):
            return domain.multiply(self.element(e.left), self.element(e.right))
        if isinstance(e, Call):
            return domain.call(e.function, [self.element(a) for a in e.arguments])
        if isinstance(e, Select):
            holds = np.asarray(self.condition(e.condition))[..., None]
            if holds.all():
                return self.element(e.then)
            return domain.choose(holds, self.element(e.then), self.element(e.otherwise))
        if isinstance(e, Choose):
            which = self.element(e.which).p != 0
            return domain.choose(which, self.element(e.then), self.element(e.otherwise))
        assert isinstance(e, Reduce)
        return self._reduce(e)

    def _access(self, e: Access) -> Value:
        source = self.inputs[e.tensor]
        if not e.indices:
            return source
        if id(e) not in self.plan.places:
            sizes = source.p.shape
            place = (np.clip(self.index(index), 0, sizes[k] - 1) for k, index in enumerate(e.indices))
            self.plan.places[id(e)] = tuple(place)
        place = self.plan.places[id(e)]
        return source.map(lambda part: part[place])

    def _reduce(self, e: Reduce) -> Value:
        extent = self.index(e.extent)
        if extent.ndim:
            raise Unsupported("a range whose length depends on the element")
        n, outer = int(extent), self.depth + self.rank
        self.depth += 1
        self.variables[e.variable] = np.arange(n).reshape((n,) + (1,) * outer)
        guard = np.asarray(True if isinstance(e.guard, bool) else self.condition(e.guard))[..., None]
        body = self.element(e.body)
        self.depth -= 1
        full = np.broadcast_shapes(body.p.shape, guard.shape, (n,) + (1,) * (outer + 1))
        whole = body.map(lambda part: np.broadcast_to(part, full))
        return self.domain.reduce(e.kind, whole, np.broadcast_to(guard, full))

    def index(self, index: Index) -> Array:
        if not isinstance(index, Poly):
            return np.asarray(index)
        if id(index) not in self.plan.numbers:
            self.plan.numbers[id(index)] = super().index(index)
        return self.plan.numbers[id(index)]

    def condition(self, condition: Condition) -> Array:
        if id(condition) not in self.plan.numbers:
            self.plan.numbers[id(condition)] = super().condition(condition)
        return self.plan.numbers[id(condition)]


def parts_needed(element: Element) -> Parts:
    """Which parts of numbers an expression reads."""
    q = r = False
    waiting: list[Element] = [element]
    while waiting:
        e = waiting.pop()
        if isinstance(e, Call):
            q, r = q or e.function in EXPONENTIAL, r or e.function in ORDERED
            waiting += e.arguments
        elif isinstance(e, Add | Multiply):
            waiting += (e.left, e.right)
        elif isinstance(e, Select):
            waiting += (e.then, e.otherwise)
        elif isinstance(e, Choose):
            waiting += (e.which, e.then, e.otherwise)
        elif isinstance(e, Reduce):
            r = r or e.kind in ("max", "min")
            waiting.append(e.body)
    return Parts(q, r)
