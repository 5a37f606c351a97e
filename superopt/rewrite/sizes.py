"""Sizes of a model's values as numbers and symbols, and what can be told about them.

Within one lifted graph equal symbols are equal sizes. A dim of which nothing is known gets a symbol of its own.
"""

from __future__ import annotations

from superopt.ir.graph import Value
from superopt.ir.types import Dim, DType, TensorType
from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.index import Index, Poly, Symbol, symbol, terms_of

UNKNOWN = "⟨?⟩"
"""Starts the name of a symbol for a dim of which nothing is known; files have `?` for a name of their own."""


class Sizes:
    """Shapes by value; made once for each optimization."""

    def __init__(self) -> None:
        self._shapes: dict[Value, tuple[Index, ...] | None] = {}
        self._sums: dict[str, Index] = {}
        self._unknown = 0

    def shape(self, value: Value) -> tuple[Index, ...] | None:
        """None where the rank is not known."""
        if value not in self._shapes:
            self._shapes[value] = self._read(value)
        return self._shapes[value]

    def _read(self, value: Value) -> tuple[Index, ...] | None:
        type_ = value.tensor_type
        if type_ is None or type_.shape is None:
            return None
        return tuple(self._index(dim) for dim in type_.shape)

    def _index(self, dim: Dim) -> Index:
        if isinstance(dim, int):
            return dim
        if dim is not None:
            return self._sums[dim] if dim in self._sums else symbol(dim)
        self._unknown += 1
        return symbol(f"{UNKNOWN}{self._unknown}")

    def dim(self, index: Index) -> Dim:
        """An index as a dim of a type: a number, a symbol's name, or a name for a polynomial that no file has given;
        None where it has unknown parts. Read again, a sum is a sum of at least 1, like the sizes it is made of."""
        if isinstance(index, int):
            return index
        text = str(index)
        if UNKNOWN in text:
            return None
        [*terms] = index.terms.items()
        if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and isinstance(terms[0][0][0], Symbol):
            return text
        name = f"⟨{text}⟩"
        if all(c > 0 and all(isinstance(atom, Symbol) for atom in monomial) for monomial, c in terms):
            self._sums[name] = index
        return name

    def type(self, dtype: DType | None, shape: tuple[Index, ...]) -> TensorType:
        return TensorType(dtype, tuple(self.dim(n) for n in shape))


def dtype_of(value: Value) -> DType | None:
    type_ = value.tensor_type
    return None if type_ is None else type_.dtype


def decide(condition: Condition | bool) -> bool | None:
    """Whether a condition holds for all sizes (of 1 or more), or for none; None where that is open."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, Not):
        inner = decide(condition.of)
        return None if inner is None else not inner
    if isinstance(condition, Both):
        parts = [decide(part) for part in condition.parts]
        if False in parts:
            return False
        return None if None in parts else True
    assert isinstance(condition, AtLeastZero | Zero)
    low, high = _bounds(condition.index)
    if isinstance(condition, AtLeastZero):
        if low is not None and low >= 0:
            return True
        return False if high is not None and high < 0 else None
    outside = (low is not None and low > 0) or (high is not None and high < 0)
    return False if outside else None


def _bounds(index: Poly) -> tuple[int | None, int | None]:
    """The least and the greatest value for symbols of at least 1, where there is one."""
    low: int | None = 0
    high: int | None = 0
    for monomial, c in terms_of(index).items():
        if not all(isinstance(atom, Symbol) for atom in monomial):
            return None, None
        low = None if low is None or (monomial and c < 0) else low + c
        high = None if high is None or (monomial and c > 0) else high + c
    return low, high
