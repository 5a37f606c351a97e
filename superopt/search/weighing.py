"""Weights of a result held against those made again: bit for bit, or nearly so where they were computed.

What comes from the original's file must be there bit for bit, and so must the numbers that rules write. What was
computed, by combining weights or by folding, may differ by one unit in the last place: another processor adds the same
float64 numbers up in another order, and rounding may then fall to the other side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from superopt.ir.tensor import Array, Tensor, numpy_dtype
from superopt.ir.types import DType
from superopt.report import AuditedWeights

Origin = Literal["original", "folded", "combined", "written"]

_WORDS: dict[Origin, str] = {
    "original": "and what is the original's own must be there bit for bit",
    "written": "and a number that a rule writes must be there bit for bit",
    "folded": "and what a pass computed may differ by one unit in the last place",
    "combined": "and a combined weight may differ by one unit in the last place",
}
_COMPUTED = frozenset({"folded", "combined"})
_SIGNED = {DType.FLOAT16: np.int16, DType.BFLOAT16: np.int16, DType.FLOAT32: np.int32, DType.FLOAT64: np.int64}
_BLOCK = 1 << 20
"""Elements looked at together."""
_NEVER = np.uint64(2**64 - 1)
"""The distance between NaN or an infinity and anything else."""


@dataclass
class Weighing:
    """Judges tensors by where they come from, and counts what it saw."""

    origin: Callable[[Tensor], Origin]
    exact: Counter[str] = field(default_factory=Counter[str])
    near: Counter[str] = field(default_factory=Counter[str])

    def judge(self, expected: Tensor, found: Tensor) -> str:
        """Why the found tensor may not stand for the expected one of the same type; empty where it may."""
        origin = self.origin(expected)
        if expected.digest == found.digest:
            self.exact[origin] += 1
            return ""
        if not expected.readable or expected.dtype not in _SIGNED:
            return f"the content differs, {_WORDS[origin]}"
        worst = farthest(expected.numpy(), found.numpy(), expected.dtype)
        if origin in _COMPUTED and worst.apart <= 1:
            self.near[origin] += 1
            return ""
        return f"{worst}, {_WORDS[origin]}"

    @property
    def report(self) -> AuditedWeights:
        return AuditedWeights(
            original=self.exact["original"], written=self.exact["written"], folded=self.exact["folded"],
            folded_near=self.near["folded"], combined=self.exact["combined"], combined_near=self.near["combined"],
        )  # fmt: skip


@dataclass(frozen=True)
class Farthest:
    """The element that differs most, and by how many units in the last place."""

    index: tuple[int, ...]
    expected: float
    found: float
    apart: int

    def __str__(self) -> str:
        place = f"element {list(self.index)}" if self.index else "the number"
        units = "beyond counting" if self.apart == _NEVER else f"{self.apart} units in the last place"
        return f"{place}: expected {self.expected!r}, found {self.found!r} ({units} apart)"


def farthest(expected: Array, found: Array, dtype: DType) -> Farthest:
    """The largest distance, counted in numbers of the type that lie between; −0 and 0 are neighbours."""
    ours, theirs = (np.ascontiguousarray(a, dtype=numpy_dtype(dtype)).reshape(-1) for a in (expected, found))
    worst, where = -1, 0
    for start in range(0, len(ours), _BLOCK):
        distances = _distances(ours[start : start + _BLOCK], theirs[start : start + _BLOCK], dtype)
        k = int(np.argmax(distances))
        if int(distances[k]) > worst:
            worst, where = int(distances[k]), start + k
    index = tuple(int(i) for i in np.unravel_index(where, expected.shape))
    return Farthest(index, float(ours[where]), float(theirs[where]), worst)


def _distances(a: Array, b: Array, dtype: DType) -> Array:
    kind = _SIGNED[dtype]
    most = np.iinfo(kind).max
    ordered = [np.where(bits >= 0, bits, bits ^ most).astype(np.int64) for bits in (a.view(kind), b.view(kind))]
    apart = np.maximum(*ordered).view(np.uint64) - np.minimum(*ordered).view(np.uint64)
    finite = np.isfinite(a.astype(np.float64)) & np.isfinite(b.astype(np.float64))
    return np.where(finite | (apart == 0), apart, _NEVER)
