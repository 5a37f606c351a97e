"""Ranges of bound variables, read off from a domain."""

from __future__ import annotations

from superopt.ops.condition import AtLeastZero, Condition
from superopt.ops.index import Index, Poly, Symbol, atoms_of, same


def extent_of(variable: Symbol, about: list[Condition]) -> Index | None:
    """E, where the conditions on the variable are 0 ≤ k and k ≤ E − 1 and no others."""
    k = Poly({(variable,): 1})
    if len(about) != 2 or not all(isinstance(c, AtLeastZero) for c in about):
        return None
    indices = [c.index for c in about if isinstance(c, AtLeastZero)]
    if not any(same(i, k) for i in indices):
        return None
    other = indices[1] if same(indices[0], k) else indices[0]
    extent = other + k + 1
    return None if variable in atoms_of(extent) else extent


def spans_of(variable: Symbol, about: list[Condition]) -> list[Index] | None:
    """How many numbers lie between each lower and each upper bound, where the conditions are such bounds and no others:
    the variable has a value just where all of these are 1 or more."""
    k = Poly({(variable,): 1})
    lowest: list[Index] = []
    highest: list[Index] = []
    for condition in about:
        if not isinstance(condition, AtLeastZero):
            return None
        above, below = condition.index - k, condition.index + k
        if variable not in atoms_of(above):
            lowest.append(above * -1)
        elif variable not in atoms_of(below):
            highest.append(below)
        else:
            return None
    return [high - low + 1 for low in lowest for high in highest] or None
