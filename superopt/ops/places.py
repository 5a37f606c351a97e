"""Indices and conditions on them at concrete sizes: all places at once, as arrays over the axes of their variables."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.index import Index, Poly, Quotient, Symbol

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Places:
    """What indices come to, for the values that their variables run through."""

    def __init__(self) -> None:
        self.variables: dict[Symbol, Array] = {}

    def index(self, index: Index) -> Array:
        if not isinstance(index, Poly):
            return np.asarray(index)
        total: Any = None
        for monomial, c in index.terms.items():
            term: Any = c
            for atom in monomial:
                at = self.variables[atom] if isinstance(atom, Symbol) else self._quotient(atom)
                term = at if isinstance(term, int) and term == 1 else term * at
            total = term if total is None else total + term
        return np.asarray(total)

    def _quotient(self, quotient: Quotient) -> Array:
        return self.index(quotient.number) // self.index(quotient.divisor)

    def condition(self, condition: Condition) -> Array:
        if isinstance(condition, AtLeastZero):
            return self.index(condition.index) >= 0
        if isinstance(condition, Zero):
            return self.index(condition.index) == 0
        if isinstance(condition, Not):
            return ~self.condition(condition.of)
        assert isinstance(condition, Both)
        holds = self.condition(condition.parts[0])
        for part in condition.parts[1:]:
            holds = holds & self.condition(part)
        return holds
