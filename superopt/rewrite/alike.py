"""Whether two formulas are the same expression, names of reduction variables aside.

Weaker than a proof and far cheaper: enough to see that two spellings of one operator's attributes mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.element import Access, Add, Call, Choose, Element, Multiply, Number, Reduce, Select, Size
from superopt.ops.formula import Tensor
from superopt.ops.index import Index, Poly, Symbol, same, substitute, symbol

Renamed = Mapping[Symbol, Poly]


def alike(a: Tensor, b: Tensor) -> bool:
    if a.rank != b.rank or not all(same(n, m) for n, m in zip(a.shape, b.shape, strict=True)):
        return False
    place = tuple(symbol(f"⟨at {k}⟩") for k in range(a.rank))
    return _elements(a[place], b[place], {})


def _elements(a: Element, b: Element, names: Renamed) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, Access) and isinstance(b, Access):
        return a.tensor == b.tensor and _indices(a.indices, b.indices, names)
    if isinstance(a, Number) and isinstance(b, Number):
        return a.value == b.value
    if isinstance(a, Size) and isinstance(b, Size):
        return _index(a.index, b.index, names)
    if isinstance(a, Add | Multiply) and isinstance(b, Add | Multiply):
        return _elements(a.left, b.left, names) and _elements(a.right, b.right, names)
    if isinstance(a, Call) and isinstance(b, Call):
        return a.function == b.function and _all(a.arguments, b.arguments, names)
    if isinstance(a, Reduce) and isinstance(b, Reduce):
        inner = {**names, b.variable: Poly({(a.variable,): 1})}
        return (
            a.kind == b.kind
            and _index(a.extent, b.extent, names)
            and _conditions(a.guard, b.guard, inner)
            and _elements(a.body, b.body, inner)
        )
    if isinstance(a, Select) and isinstance(b, Select):
        return _conditions(a.condition, b.condition, names) and _all(
            (a.then, a.otherwise), (b.then, b.otherwise), names
        )
    if isinstance(a, Choose) and isinstance(b, Choose):
        return _all((a.which, a.then, a.otherwise), (b.which, b.then, b.otherwise), names)
    return False


def _all(a: tuple[Element, ...], b: tuple[Element, ...], names: Renamed) -> bool:
    return len(a) == len(b) and all(_elements(x, y, names) for x, y in zip(a, b, strict=True))


def _indices(a: tuple[Index, ...], b: tuple[Index, ...], names: Renamed) -> bool:
    return len(a) == len(b) and all(_index(x, y, names) for x, y in zip(a, b, strict=True))


def _index(a: Index, b: Index, names: Renamed) -> bool:
    return same(a, substitute(b, names))


def _conditions(a: Condition | bool, b: Condition | bool, names: Renamed) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, AtLeastZero | Zero) and isinstance(b, AtLeastZero | Zero):
        return type(a) is type(b) and _index(a.index, b.index, names)
    if isinstance(a, Not) and isinstance(b, Not):
        return _conditions(a.of, b.of, names)
    if isinstance(a, Both) and isinstance(b, Both):
        return len(a.parts) == len(b.parts) and all(
            _conditions(x, y, names) for x, y in zip(a.parts, b.parts, strict=True)
        )
    return False
