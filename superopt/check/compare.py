"""One output of one run against its reference: how far apart, and where no number can say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from superopt.check.leaves import kind_of, leaves
from superopt.check.tolerance import Rule, local_scale, magnitude
from superopt.ir.tensor import Array
from superopt.runtime.values import Value

BLOCK = 1 << 20
"""Elements compared at once; a larger output is compared, and has its scale taken, block by block."""


@dataclass(frozen=True)
class Gap:
    structure: str = ""
    """How types, shapes or lengths differ; nothing else was looked at then."""
    ratio: float = 0.0
    """The worst error over what is allowed there: at most 1 is equal."""
    absolute: float = 0.0
    coarse: float = 0.0
    """The worst error over |a| + the scale of the whole output."""
    wrong: Mapping[str, Array] = field(default_factory=dict[str, Array])
    """By leaf and block, where values differ that must be equal: integers, strings, a NaN against a number."""
    steps: int = 0
    """Codes one step off."""
    elements: int = 0
    telling: int = 0
    """Elements whose equality means something: not NaN, not infinite, not unequal below the absolute tolerance."""

    @property
    def wrong_count(self) -> int:
        return sum(int(mask.sum()) for mask in self.wrong.values())

    @property
    def within(self) -> bool:
        return not self.structure and not self.wrong and self.ratio <= 1


def compare(reference: Value, found: Value, rule: Rule) -> Gap:
    a, b = leaves(reference), leaves(found)
    structure = _structure(a, b)
    if structure:
        return Gap(structure)
    with np.errstate(all="ignore"):
        return _joined([gap for path, left in a.items() for gap in _gaps(path, left, b[path], rule)])


def _joined(gaps: list[Gap]) -> Gap:
    total = Gap()
    for gap in gaps:
        total = Gap(
            ratio=max(total.ratio, gap.ratio),
            absolute=max(total.absolute, gap.absolute),
            coarse=max(total.coarse, gap.coarse),
            wrong={**total.wrong, **gap.wrong},
            steps=total.steps + gap.steps,
            elements=total.elements + gap.elements,
            telling=total.telling + gap.telling,
        )
    return total


def scale_of(value: Value) -> float:
    """The magnitude of an output's numbers; 0 for what has none."""
    with np.errstate(all="ignore"):
        arrays = [a for a in leaves(value).values() if _is_real(a)]
        return max((magnitude(_real(block)) for a in arrays for block in _blocks(a)), default=0.0)


def is_finite(value: Value) -> bool:
    """Whether every number in it is one, and none infinite."""
    return all(np.isfinite(_real(a)).all() for a in leaves(value).values() if _is_real(a))


def _structure(a: Mapping[str, Array], b: Mapping[str, Array]) -> str:
    if list(a) != list(b):
        return f"{len(a)} elements against {len(b)}"
    for path, left in a.items():
        right, where = b[path], f"{path} " if path else ""
        if kind_of(left) != kind_of(right):
            return f"{where}{kind_of(left)} against {kind_of(right)}"
        if left.shape != right.shape:
            return f"{where}shape {list(left.shape)} against {list(right.shape)}"
    return ""


def _gaps(path: str, a: Array, b: Array, rule: Rule) -> Iterator[Gap]:
    for i, (left, right) in enumerate(zip(_blocks(a), _blocks(b), strict=True)):
        yield _leaf(f"{path}@{i}", left, right, rule)


def _blocks(array: Array) -> list[Array]:
    """Pieces that fit in memory many times over, cut along the longest axis."""
    if array.size <= BLOCK:
        return [array]
    return np.array_split(array, -(-array.size // BLOCK), axis=int(np.argmax(array.shape)))


def _leaf(path: str, a: Array, b: Array, rule: Rule) -> Gap:
    if _is_real(a):
        return _reals(path, _real(a), _real(b), rule)
    wrong = np.not_equal(a, b)
    steps = 0
    if rule.steps and wrong.any():
        off = np.abs(a.astype(np.int16) - b.astype(np.int16)) == 1
        steps, wrong = int(off.sum()), wrong & ~off
    distance = _distance(a, b) if wrong.any() else float(steps > 0)
    places = {path: wrong} if wrong.any() else {}
    return Gap(absolute=distance, wrong=places, steps=steps, elements=a.size, telling=a.size)


def _reals(path: str, a: Array, b: Array, rule: Rule) -> Gap:
    if a.size == 0:
        return Gap()
    finite = np.isfinite(a) & np.isfinite(b)
    wrong = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    x, y = np.where(finite, a, 0.0), np.where(finite, b, 0.0)
    error, size = np.abs(x - y), np.abs(x)
    allowed = rule.absolute + rule.relative * (size + local_scale(a))
    tiny = np.finfo(np.float64).tiny
    telling = finite & ((error == 0) | (np.maximum(size, np.abs(y)) > rule.absolute))
    return Gap(
        ratio=float(np.max(error / np.maximum(allowed, tiny))),
        absolute=float(error.max()),
        coarse=float(np.max(error / np.maximum(size + magnitude(a), tiny))),
        wrong={path: wrong} if wrong.any() else {},
        elements=a.size,
        telling=int(telling.sum()),
    )


def _is_real(array: Array) -> bool:
    return array.dtype.kind in "fc" or kind_of(array).startswith(("float", "bfloat"))


def _real(array: Array) -> Array:
    """As float64; a complex tensor as one with a trailing axis of two."""
    if array.dtype.kind == "c":
        return np.stack([np.real(array), np.imag(array)], axis=-1).astype(np.float64)
    return array.astype(np.float64)


def _distance(a: Array, b: Array) -> float:
    if a.dtype.kind not in "biu":
        return 1.0
    return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))
