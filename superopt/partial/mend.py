"""Wrong boxes mended: recomputed by the original program, and put together with what the mutant has right.

The result is cut at the corners of the boxes, along one axis after the other, into as few parts as that takes: parts
that are right are slices of the mutant, wrong ones are recomputed from slices of the inputs with their halo. A little
more than what is wrong is recomputed where that makes strips of boxes: every cut copies the result once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from superopt.ops.registry import Registry
from superopt.partial.differ import Wrong
from superopt.partial.program import GivenUp, Mutant, Shape, needed, renamed, shapes
from superopt.partial.restrict import Restriction
from superopt.partial.writing import Ranges, Writer
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Call, Rule
from superopt.verify.agree import Box

WIDER, SLIVER = 2.0, 0.02
"""How much more of a result may be recomputed so that it falls into fewer parts: times as much, and a share of it."""

Part = tuple[tuple[int, int], ...]
"""A range of each axis, at sample sizes."""


def mended(mutant: Mutant, wrong: Wrong, registry: Registry) -> Rule:
    """The rule with its right side mended; not yet proved."""
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
    for name, made in again.items():
        _Mending(name, made, wrong, real, restriction, writer).run()
    whole = original.rule(writer.lines, rule.doc)
    return replace(whole, right=tuple(needed(whole.right, whole.results)))


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


class _Mending:
    """One result."""

    def __init__(
        self, name: str, made: str, wrong: Wrong, real: Mapping[str, Shape], restriction: Restriction, writer: Writer
    ) -> None:
        self.name, self.made = name, made
        self.shape, self.real = wrong.shapes[name], real[name]
        exact, wide = wrong.boxes[name], strips(wrong.boxes[name], wrong.shapes[name])
        plain = _covered(wide, self.shape) <= WIDER * _covered(exact, self.shape) + SLIVER
        self.boxes = wide if plain else exact
        self.restriction, self.writer = restriction, writer
        for box in self.boxes:
            for a, b, n, m in zip(box.start, box.stop, self.shape, self.real, strict=True):
                if n != m and (a, b) != (0, n):
                    raise GivenUp(f"{name} is wrong in a part that depends on the size of an axis")

    def run(self) -> None:
        whole = tuple((0, n) for n in self.shape)
        self.writer.lines.append(f"{self.name} = {self._assembled(whole)}")

    def _assembled(self, part: Part) -> str:
        inside = [box for box in self.boxes if _overlap(box, part)]
        if not inside:
            return self.writer.cut(self.made, self._ranges(part))
        axis, cuts = _cuts(inside, part)
        if not cuts:
            return self.restriction.part(self.name, self._ranges(part))
        edges = [part[axis][0], *cuts, part[axis][1]]
        pieces = [self._assembled((*part[:axis], (a, b), *part[axis + 1 :])) for a, b in pairwise(edges)]
        return self.writer.joined(pieces, axis)

    def _ranges(self, part: Part) -> Ranges:
        return tuple(None if r == (0, n) else r for r, n in zip(part, self.shape, strict=True))


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
