"""Functions of single elements, as formulas tell: every element of the result reads its operands at its own place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from superopt.ops.domains import Reals
from superopt.ops.element import Access, Add, Choose, Element, Multiply, Reduce, Select
from superopt.ops.element import Call as Function
from superopt.ops.evaluate import evaluate, sized
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.index import same, symbol
from superopt.ops.registry import Operator, Registry

_SHAPES = ((2, 3, 4, 5), (1, 3, 1, 1))
"""On which axes cannot be mistaken for one another, and on which axes of size 1 might be left out."""
_NUMBERS = np.array([-30.0, -1.0, 0.0, 1.0, 30.0])
"""A function that is to fill gaps, where anything may lie, has a value at each of them."""


@cache
def element_functions(registry: Registry) -> frozenset[str]:
    """Operators of ONNX's own that need one tensor and nothing else, and are functions of its elements; those with
    poles, such as Log, are left out: what a mask takes for zero must be a number."""
    names = {operator.name for operator in registry if not operator.domain}
    found = ((name, registry.find(name)) for name in names)
    return frozenset(name for name, operator in found if operator is not None and _is_function(operator))


def _is_function(operator: Operator) -> bool:
    needed = [p for p in operator.parameters if p.required or p.variadic]
    if [p.kind for p in needed] != ["tensor"] or needed[0].variadic:
        return False
    return all(is_local(operator, [shape], {}) for shape in _SHAPES) and _is_total(operator)


def _is_total(operator: Operator) -> bool:
    (found,) = operator.apply([sized(_NUMBERS.shape, "x")], {})
    return bool(np.isfinite(evaluate(found, {"x": _NUMBERS}, Reals())).all())


def is_local(operator: Operator, operands: Sequence[tuple[int, ...]], arguments: Mapping[str, Any]) -> bool:
    """Whether an element of the result depends on its operands at its own place only, and on the place not at all;
    operands of these shapes may broadcast."""
    try:
        (found, *others) = operator.apply([sized(s, str(k)) for k, s in enumerate(operands)], arguments, 1)
    except (Illegal, NotCovered):
        return False
    if others or found.rank != max(map(len, operands)):
        return False
    place = tuple(symbol(f"i{k}") for k in range(found.rank))
    accesses = _accesses(found[place])
    if not accesses:
        return False
    for access in accesses:
        shape = operands[int(access.tensor)]
        wanted = place[found.rank - len(shape) :]
        for index, axis, n in zip(access.indices, wanted, shape, strict=True):
            if not (same(index, axis) or (n == 1 and same(index, 0))):
                return False
    return True


def _accesses(e: Element) -> list[Access]:
    """What an element reads; nothing where it looks at its place."""
    found: list[Access] = []
    waiting = [e]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Select):
            return []
        if isinstance(part, Access):
            found.append(part)
        elif isinstance(part, Add | Multiply):
            waiting += (part.left, part.right)
        elif isinstance(part, Function):
            waiting += part.arguments
        elif isinstance(part, Choose):
            waiting += (part.which, part.then, part.otherwise)
        elif isinstance(part, Reduce):
            waiting.append(part.body)
    return found
