"""Wrong boxes mended: recomputed by the original program, and put in the place of what the mutant has wrong.

Written back in two ways, and the clock may choose:

- joined: the result is cut at the corners of the boxes, along one axis after the other, into as few parts as that
  takes; parts that are right are slices of the mutant, wrong ones are recomputed;
- chosen: what is recomputed gets zeros around it, up to the size of the result, and a constant mask tells which of the
  two an element is taken from. (Scattering would want a list of all indices, and batch and channels, which come first,
  are symbols.)

What is recomputed reads slices of the inputs, with their halo. A little more than what is wrong is recomputed where
that makes strips of boxes: every cut copies the result once more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from superopt.ops.registry import Registry
from superopt.partial.differ import Wrong
from superopt.partial.program import GivenUp, Mutant, Original, Shape, needed, renamed, shapes
from superopt.partial.restrict import Restriction
from superopt.partial.writing import BOOL, Ranges, Writer, replaced
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Call, Rule
from superopt.verify.agree import Box

WIDER, SLIVER = 2.0, 0.02
"""How much more of a result may be recomputed so that it falls into fewer parts: times as much, and a share of it."""

Part = tuple[tuple[int, int], ...]
"""A range of each axis, at sample sizes."""


def mendings(mutant: Mutant, wrong: Wrong, registry: Registry) -> Iterator[Rule]:
    """The rule with its right side mended, in one way after the other; not yet proved."""
    for spelling in (_Joined, _Chosen):
        yield _mended(mutant, wrong, registry, spelling)


def _mended(mutant: Mutant, wrong: Wrong, registry: Registry, spelling: type[_Mending]) -> Rule:
    original, rule = mutant.original, mutant.rule
    targets = {t for step in rule.right for t in step.targets}
    writer = Writer(original.names | targets)
    again = {name: writer.fresh() for name, found in wrong.boxes.items() if found}
    real = shapes(original, registry)
    for step in rule.right:
        names = [again.get(t, t) for t in step.targets]
        value = renamed(step.value, again)
        writer.lines.append(f"{', '.join(names)} = {value}")
        if step.targets[0] in again and isinstance(value, Call) and value.op == "Slice":
            _note_cut(writer, names[0], value, len(real[step.targets[0]]))
    restriction = Restriction(original, real, registry, writer)
    _refuse_symbols(original, wrong, registry)
    for name, made in again.items():
        mending = spelling(name, made, wrong, restriction, writer)
        writer.lines.append(f"{name} = {mending.written()}")
    whole = original.rule(writer.lines, rule.doc)
    return replace(whole, right=tuple(needed(whole.right, whole.results)))


def _refuse_symbols(original: Original, wrong: Wrong, registry: Registry) -> None:
    """What is wrong in a part of an axis whose size is a symbol is wrong elsewhere when that is another number."""
    larger = {name: n + 1 for name, n in wrong.sizes.items()}
    one, other = (shapes(replace(original, sizes=sizes), registry) for sizes in (wrong.sizes, larger))
    for name, boxes in wrong.boxes.items():
        for axis, (n, m) in enumerate(zip(one[name], other[name], strict=True)):
            if n != m and any((box.start[axis], box.stop[axis]) != (0, n) for box in boxes):
                raise GivenUp(f"{name} is wrong in a part that depends on the size of an axis")


def _note_cut(writer: Writer, name: str, call: Call, rank: int) -> None:
    written = {key: evaluate(value, {}) for key, value in call.arguments}
    if set(written) == {"starts", "ends", "axes"} and isinstance(call.operands[0], str):
        ranges: list[tuple[int, int] | None] = [None] * rank
        for axis, start, end in zip(written["axes"], written["starts"], written["ends"], strict=True):
            ranges[axis] = (start, end)
        writer.known_cut(name, call.operands[0], tuple(ranges))


def strips(boxes: Sequence[Box], shape: Shape) -> tuple[Box, ...]:
    """Each box as wide as the result on all axes but the one on which it is thinnest."""
    found: dict[Box, None] = {}
    for box in boxes:
        part = [(b - a) / n for a, b, n in zip(box.start, box.stop, shape, strict=True)]
        thin = part.index(min(part))
        start = tuple(a if k == thin else 0 for k, a in enumerate(box.start))
        found[Box(start, tuple(b if k == thin else shape[k] for k, b in enumerate(box.stop)))] = None
    return tuple(found)


def _covered(boxes: Sequence[Box], shape: Shape) -> float:
    mask = np.zeros(shape, bool)
    for box in boxes:
        mask[box.slices] = True
    return float(mask.mean())


class _Mending(ABC):
    """One result."""

    def __init__(self, name: str, made: str, wrong: Wrong, restriction: Restriction, writer: Writer) -> None:
        self.name, self.made = name, made
        self.shape = wrong.shapes[name]
        exact, wide = wrong.boxes[name], strips(wrong.boxes[name], wrong.shapes[name])
        plain = _covered(wide, self.shape) <= WIDER * _covered(exact, self.shape) + SLIVER
        self.boxes = wide if plain else exact
        self.restriction, self.writer = restriction, writer
        self.whole = tuple((0, n) for n in self.shape)

    @abstractmethod
    def written(self) -> str:
        """The name of the mended result."""

    def is_right(self, part: Part) -> bool:
        return not any(_overlap(box, part) for box in self.boxes)

    def cut(self, part: Part) -> tuple[int, list[Part]]:
        """Parts of a part along an axis; none where it is wrong everywhere."""
        axis, cuts = _cuts([box for box in self.boxes if _overlap(box, part)], part)
        edges = [part[axis][0], *cuts, part[axis][1]] if cuts else []
        return axis, [replaced(part, axis, edge) for edge in pairwise(edges)]

    def recomputed(self, part: Part) -> str:
        return self.restriction.part(self.name, self.ranges(part))

    def ranges(self, part: Part) -> Ranges:
        return tuple(None if r == (0, n) else r for r, n in zip(part, self.shape, strict=True))


class _Joined(_Mending):
    """Right and wrong parts side by side."""

    def written(self) -> str:
        return self._assembled(self.whole)

    def _assembled(self, part: Part) -> str:
        if self.is_right(part):
            return self.writer.cut(self.made, self.ranges(part))
        axis, parts = self.cut(part)
        if not parts:
            return self.recomputed(part)
        return self.writer.joined([self._assembled(p) for p in parts], axis)


@dataclass
class _Bordered:
    """A value with zeros that are still to be put around it."""

    value: str
    before: list[int]
    after: list[int]


class _Chosen(_Mending):
    """An element of the mutant, or one that was recomputed: a mask tells which."""

    def written(self) -> str:
        again = self._padded(self._filled(self.whole))
        return self.writer.put(f"Where({self._mask(self.whole)}, {again}, {self.made})")

    def _padded(self, found: _Bordered) -> str:
        return self.writer.padded(found.value, found.before, found.after, first=0)

    def _filled(self, part: Part) -> _Bordered:
        """What was recomputed of a part that has something wrong."""
        zeros = [0] * len(part)
        axis, parts = self.cut(part)
        if not parts:
            return _Bordered(self.recomputed(part), list(zeros), list(zeros))
        cells: list[_Bordered] = []
        before = 0
        for inner in parts:
            length = inner[axis][1] - inner[axis][0]
            if not self.is_right(inner):
                cells.append(self._filled(inner))
                cells[-1].before[axis], before = before, 0
            elif cells:
                cells[-1].after[axis] += length
            else:
                before = length
        if len(cells) == 1:
            return cells[0]
        return _Bordered(self.writer.joined([self._padded(cell) for cell in cells], axis), list(zeros), list(zeros))

    def _mask(self, part: Part) -> str:
        """True where something was recomputed; of size 1 on axes of which all boxes take all."""
        axis, parts = self.cut(part) if not self.is_right(part) else (0, [])
        if parts:
            return self.writer.joined([self._mask(p) for p in parts], axis)
        sizes = [1 if self._takes_all(k) else b - a for k, (a, b) in enumerate(part)]
        filled = self.writer.put(f"ConstantOfShape(input={sizes}, value={0 if self.is_right(part) else 1})")
        return self.writer.put(f"Cast({filled}, to={BOOL})")

    def _takes_all(self, axis: int) -> bool:
        return all((box.start[axis], box.stop[axis]) == self.whole[axis] for box in self.boxes)


def _overlap(box: Box, part: Part) -> bool:
    return all(a < stop and start < b for (a, b), start, stop in zip(part, box.start, box.stop, strict=True))


def _cuts(boxes: Sequence[Box], part: Part) -> tuple[int, list[int]]:
    """The axis along which a part is cut, and where: the one with the fewest cuts, neighbours with the same boxes kept
    together. No cuts where the part is wrong everywhere."""
    best: tuple[int, int, list[int]] | None = None
    for axis, (a, b) in enumerate(part):
        edges = sorted({e for box in boxes for e in (box.start[axis], box.stop[axis]) if a < e < b})
        cuts = [e for e in edges if _across(boxes, part, axis, e - 1) != _across(boxes, part, axis, e)]
        if cuts and (best is None or len(cuts) < best[0]):
            best = (len(cuts), axis, cuts)
    return (0, []) if best is None else best[1:]


def _across(boxes: Sequence[Box], part: Part, axis: int, place: int) -> frozenset[Part]:
    """What is wrong in the slice of a part at one place of an axis."""
    found: set[Part] = set()
    for box in boxes:
        if box.start[axis] <= place < box.stop[axis] and _overlap(box, part):
            clipped = [
                (max(a, start), min(b, stop)) for (a, b), start, stop in zip(part, box.start, box.stop, strict=True)
            ]
            found.add((*clipped[:axis], (place, place + 1), *clipped[axis + 1 :]))
    return frozenset((*f[:axis], (0, 1), *f[axis + 1 :]) for f in found)
