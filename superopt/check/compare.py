"""One output of one run against its reference: how far apart, and where no number can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from superopt.check.blocks import blocks, on_each
from superopt.check.leaves import kind_of, leaves
from superopt.check.tolerance import Rule, magnitude, scales
from superopt.ir.tensor import Array
from superopt.runtime.values import Value


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
    pieces = [block for a in leaves(value).values() if _is_real(a) for block in blocks(a)]
    return max(on_each(lambda block: magnitude(_real(block)), pieces), default=0.0)


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


def _gaps(path: str, a: Array, b: Array, rule: Rule) -> list[Gap]:
    left, right = blocks(a), blocks(b)
    names = [f"{path}@{i}" for i in range(len(left))]
    return on_each(lambda name, x, y: _leaf(name, x, y, rule), names, left, right)


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
    x, y = (a, b) if finite.all() else (np.where(finite, a, 0.0), np.where(finite, b, 0.0))
    error, size, (whole, local) = np.abs(x - y), np.abs(x), scales(a)
    allowed = rule.absolute + rule.relative * (size + local)
    tiny = np.finfo(np.float64).tiny
    telling = finite & ((error == 0) | (np.maximum(size, np.abs(y)) > rule.absolute))
    return Gap(
        ratio=float(np.max(error / np.maximum(allowed, tiny))),
        absolute=float(error.max()),
        coarse=float(np.max(error / np.maximum(size + whole, tiny))),
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
