"""Which values an input may take, from what the graph does with them and how large its dims are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from superopt.check.consumers import HARD, Kind, Use
from superopt.ir.types import Dim, DType

Form: TypeAlias = Literal["real", "whole", "flag", "length", "distinct", "reshape", "parts", "text", "steps"]

_SMALL: dict[Kind, tuple[int, int]] = {
    "count": (0, 4),
    "extent": (1, 3),
    "stretch": (1, 1),
    "begin": (0, 1),
    "end": (1, 4),
    "step": (1, 2),
    "axis": (0, 0),
    "pad": (0, 2),
    "divisor": (1, 9),
}
_NUMBERS: dict[DType, tuple[int, int]] = {
    DType.UINT8: (0, 255),
    DType.INT8: (-128, 127),
    DType.UINT16: (0, 1000),
    DType.UINT4: (0, 15),
    DType.INT4: (-8, 7),
    DType.UINT2: (0, 3),
    DType.INT2: (-2, 1),
    DType.UINT32: (0, 100),
    DType.UINT64: (0, 100),
}
_SIGNED = (-100, 100)
# What a name suggests, asked only when the graph says nothing.
_HINTS: tuple[tuple[str, Kind], ...] = (
    ("mask", "flag"),
    ("len", "length"),
    ("ids", "index"),
    ("index", "index"),
    ("indices", "index"),
)
_HINTED_INDEX = 8


@dataclass(frozen=True)
class Domain:
    form: Form
    low: float = -math.inf
    high: float = math.inf
    picks: tuple[int | float | str, ...] = ()
    """Values that matter to the graph: constants it compares with, labels it knows."""
    only_picks: bool = False
    counts_back: bool = False
    """Negative values count from the end: legal, and rare enough to come second."""


def domain_of(
    name: str, dtype: DType, uses: tuple[Use, ...], shape: tuple[int, ...], sizes: Mapping[str, int]
) -> Domain:
    """`sizes` are those of the named dims, for indices and lengths that a dynamic dim bounds."""
    labels = tuple(v for use in uses if use.kind in ("label", "compared") for v in use.values)
    if dtype is DType.STRING:
        words = tuple(v for v in labels if isinstance(v, str))
        numeric = any(use.kind == "number text" for use in uses)
        return Domain("text", picks=words or (("1", "-2.5", "0") if numeric else ()))
    if dtype is DType.BOOL:
        return Domain("flag", 0, 1)
    if dtype.is_integer:
        return _whole(name, dtype, uses, shape, sizes, labels)
    uses = tuple(use for use in uses if use.exact)
    if any(use.kind in HARD for use in uses):
        return _whole(name, dtype, uses, shape, sizes, labels)
    kinds = {use.kind for use in uses}
    if "scale" in kinds:
        return Domain("steps", 1, 2, picks=(1.0, 2.0))
    if "fraction" in kinds:
        return Domain("real", 0, 1)
    return Domain("real", 0.05 if "positive" in kinds else -math.inf)


def _whole(
    name: str,
    dtype: DType,
    uses: tuple[Use, ...],
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    labels: tuple[int | float | str, ...],
) -> Domain:
    picks = _near(labels)
    if any(use.kind == "reshape" and use.exact and not use.shift for use in uses) and len(shape) == 1:
        return Domain("reshape")
    kinds = {use.kind for use in uses}
    if kinds == {"axis"}:
        return Domain("distinct", 0, max(math.prod(shape) - 1, 0))
    parts = next((_size(use.size, sizes) for use in uses if use.kind == "parts"), None)
    if parts is not None:
        return Domain("parts", high=parts)
    bounds = [_bounds(use, sizes) for use in uses if use.kind in HARD or use.kind == "divisor"]
    if bounds:
        low = max(low for low, _ in bounds)
        high = max(low, min(high for _, high in bounds))
        form: Form = "length" if "length" in kinds else "distinct" if "place" in kinds else "whole"
        return Domain(form, low, high, tuple(p for p in picks if low <= p <= high), counts_back="index" in kinds)
    if "flag" in kinds or (picks and set(labels) <= {0, 1}):
        return Domain("flag", 0, 1)
    if picks:
        return Domain("whole", min(picks), max(picks), picks, only_picks=True)
    hint = next((kind for word, kind in _HINTS if word in name.lower()), None) if not dtype.is_float else None
    if hint == "flag":
        return Domain("flag", 0, 1)
    if hint == "length":
        return Domain("length", 1, max(sizes.values(), default=4))
    if hint == "index":
        return Domain("whole", 0, _HINTED_INDEX - 1)
    low, high = _NUMBERS.get(dtype, _SIGNED)
    return Domain("whole", low, high)


def _bounds(use: Use, sizes: Mapping[str, int]) -> tuple[int, int]:
    size = _size(use.size, sizes)
    if use.kind in ("index", "place"):
        most = size - 1 if size is not None else 0
        low = 0 if use.table or use.kind == "place" or size is None else -size
        return (low - use.shift, most - use.shift) if use.exact else (0, min(most, 1))
    if use.kind == "length":
        return (1 - use.shift, (size or 1) - use.shift) if use.exact else (1, 1)
    if use.kind == "take":
        return (1, min(size or 1, 5))
    low, high = _SMALL.get(use.kind, (1, 2))
    return (low, high) if use.exact else (1, 2)


def _size(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    found = sizes.get(dim) if isinstance(dim, str) else dim
    return max(found, 1) if found is not None else None


def _near(values: tuple[int | float | str, ...]) -> tuple[int, ...]:
    """Each constant first, then its neighbours on both sides."""
    whole = [int(v) for v in values if not isinstance(v, str) and math.isfinite(v)]
    return tuple(dict.fromkeys([*whole, *(v - 1 for v in whole), *(v + 1 for v in whole)]))
