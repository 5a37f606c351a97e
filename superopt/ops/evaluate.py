"""Evaluate a formula at concrete sizes: all output elements at once, in the arithmetic of a domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

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
from superopt.ops.index import Index, Symbol, symbol
from superopt.ops.places import Array, Places


class Unsupported(Exception):
    """The domain does not know this function."""


class Domain(Protocol):
    """Arithmetic on arrays."""

    def number(self, value: Any) -> Array: ...
    def add(self, a: Array, b: Array) -> Array: ...
    def multiply(self, a: Array, b: Array) -> Array: ...
    def call(self, function: str, arguments: list[Array]) -> Array: ...
    def reduce(self, kind: str, values: Array, guard: Array) -> Array:
        """Over the first axis, where the guard holds."""
        ...


def sized(shape: tuple[Index, ...], name: str) -> Tensor:
    """An input tensor of a formula, known by name."""
    return Tensor(shape, lambda *i: Access(name, i))


def evaluate(result: Tensor, inputs: Mapping[str, Array], domain: Domain) -> Array:
    """The elements of a tensor with concrete sizes."""
    shape = tuple(int(n) for n in result.shape)  # pyright: ignore[reportArgumentType]
    variables = [symbol(f"i{k}") for k in range(len(shape))]
    grid = np.indices(shape, sparse=True) if shape else ()
    run = _Run(inputs, domain, len(shape))
    for k, axis in enumerate(grid):
        run.variables[Symbol(f"i{k}")] = axis
    if 0 in shape:
        return np.zeros(shape, run.domain.number(0).dtype)
    value = run.element(result[tuple(variables)], np.array(True))
    return np.array(np.broadcast_to(value, shape))


class _Run(Places):
    """One evaluation. Every bound variable adds an axis in front, so that broadcasting lines everything up."""

    def __init__(self, inputs: Mapping[str, Array], domain: Domain, rank: int) -> None:
        super().__init__()
        self.inputs, self.domain, self.rank = inputs, domain, rank
        self.depth = 0

    def element(self, e: Element, mask: Array) -> Array:
        if isinstance(e, Access):
            return self._access(e, mask)
        if isinstance(e, Number):
            return self.domain.number(e.value)
        if isinstance(e, Size):
            return self.domain.number(self.index(e.index))
        if isinstance(e, Add):
            return self.domain.add(self.element(e.left, mask), self.element(e.right, mask))
        if isinstance(e, Multiply):
            return self.domain.multiply(self.element(e.left, mask), self.element(e.right, mask))
        if isinstance(e, Call):
            return self.domain.call(e.function, [self.element(a, mask) for a in e.arguments])
        if isinstance(e, Select):
            holds = self.condition(e.condition)
            then = self.element(e.then, mask & holds)
            return np.where(holds, then, self.element(e.otherwise, mask & ~holds))
        if isinstance(e, Choose):
            which = self.element(e.which, mask) != 0
            return np.where(which, self.element(e.then, mask), self.element(e.otherwise, mask))
        assert isinstance(e, Reduce)
        return self._reduce(e, mask)

    def _access(self, e: Access, mask: Array) -> Array:
        source = self.inputs[e.tensor]
        place: list[Array] = []
        for k, index in enumerate(e.indices):
            at, size = self.index(index), source.shape[k]
            outside = (at < 0) | (at >= size)
            if outside.any():
                if (mask & outside).any():
                    raise IndexError(f"{e.tensor} is read outside its axis {k} of size {size}: {index}")
                at = np.clip(at, 0, max(size - 1, 0))
            place.append(at)
        if source.size == 0:
            return self.domain.number(0)
        return source[tuple(place)] if place else source

    def _reduce(self, e: Reduce, mask: Array) -> Array:
        extent = self.index(e.extent)
        if extent.ndim:
            raise Unsupported("a range whose length depends on the element")
        n, outer = int(extent), self.depth + self.rank
        self.depth += 1
        self.variables[e.variable] = np.arange(n).reshape((n,) + (1,) * outer)
        guard = np.array(True) if isinstance(e.guard, bool) else self.condition(e.guard)
        if n == 0:
            body = self.domain.number(0)
        else:
            body = self.element(e.body, mask & guard)
        self.depth -= 1
        full = np.broadcast_shapes(body.shape, guard.shape, (n,) + (1,) * outer)
        return self.domain.reduce(e.kind, np.broadcast_to(body, full), np.broadcast_to(guard, full))
