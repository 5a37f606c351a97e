"""A scene at its worlds: what each operator gives for operands of each shape, worked out once and kept."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from superopt.errors import BadInput
from superopt.generate.application import Application, Shape, shape_of, sizes
from superopt.generate.batch import Plan, at_place, evaluate, parts_needed
from superopt.generate.recipe import Scene
from superopt.generate.residues import Array, Parts, Residues, Value
from superopt.ops.element import Element, lift
from superopt.ops.formula import Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Given

Signature: TypeAlias = tuple[Shape, ...]
"""A value's shape in each world."""

MOST_ELEMENTS = 4096
"""Of one value: larger ones are not followed."""


@dataclass(frozen=True)
class Applied:
    """An operator on operands of known shapes, in one world."""

    results: tuple[Tensor, ...]
    _elements: dict[int, Element] = field(default_factory=dict[int, Element])
    plan: Plan = field(default_factory=Plan)

    def element(self, output: int) -> Element:
        """A result's formula at the place i0, i1, …: worked out once."""
        if output not in self._elements:
            self._elements[output] = at_place(self.results[output])
        return self._elements[output]

    def shape(self, output: int) -> Shape:
        return sizes(self.results[output])


class Stage:
    """Evaluates the scene's templates in its worlds."""

    def __init__(self, scene: Scene, registry: Registry, seed: int) -> None:
        self.scene, self.registry, self.seed = scene, registry, seed
        self._application = Application(scene, registry)
        self._applied: dict[tuple[int, tuple[Signature, ...]], list[Applied] | None] = {}
        self._weights: dict[tuple[int, Shape, int], Array] = {}
        self.leaves: dict[str, Signature] = {g.name: self._signature(g) for g in scene.given}
        self.parts = self._parts()
        self.domain = Residues(self.parts, seed)

    def _signature(self, given: Given) -> Signature:
        try:
            found = tuple(shape_of(given, names) for names in self._application.worlds)
        except KeyError as name:
            raise BadInput(f"scene {self.scene.name}: {given}: no world says what {name} is") from None
        for shape in found:
            if any(n < 1 for n in shape) or math.prod(shape) > MOST_ELEMENTS:
                told = f"sizes start at 1, and an input has at most {MOST_ELEMENTS} elements"
                raise BadInput(f"scene {self.scene.name}: {given} is {list(shape)} in a world: {told}")
        return found

    def apply(self, template: int, operands: tuple[Signature, ...]) -> list[Applied] | None:
        """The formulas' results in every world; None where the operands do not fit in some world."""
        key = (template, operands)
        if key not in self._applied:
            self._applied[key] = self._apply(template, operands)
        return self._applied[key]

    def _apply(self, template: int, operands: tuple[Signature, ...]) -> list[Applied] | None:
        found: list[Applied] = []
        for world in range(len(self.scene.worlds)):
            results = self._application.results(template, tuple(s[world] for s in operands), world)
            if results is None or not all(0 < math.prod(sizes(r)) <= MOST_ELEMENTS for r in results):
                return None
            found.append(Applied(results))
        return found

    def signature(self, applied: Sequence[Applied], output: int) -> Signature:
        return tuple(a.shape(output) for a in applied)

    def values(
        self, applied: Sequence[Applied], output: int, world: int, operands: Sequence[Value], count: int
    ) -> Value:
        inputs = {f"s{k}": value for k, value in enumerate(operands)}
        here = applied[world]
        return evaluate(here.element(output), here.shape(output), inputs, self.domain, count, here.plan)

    def number(self, value: Any) -> Value:
        """A number of a rule, such as 1/sqrt(2), where no input takes part."""
        return evaluate(lift(value), (), {}, self.domain, 1, Plan())

    def key(self, values: Iterable[tuple[int, Value]]) -> Array:
        """One fingerprint for each of the batch, over its values in several worlds."""
        key = np.zeros(1, np.uint64)
        with np.errstate(over="ignore"):
            for world, value in values:
                key = key * np.uint64(0x9E3779B97F4A7C15) + self.fingerprint(value, world)
        return key

    def fingerprint(self, value: Value, world: int) -> Array:
        """64 bits for each of the batch: a random sum of its elements' residues."""
        shape = value.p.shape[:-1]
        count = value.p.shape[-1]
        with np.errstate(over="ignore"):
            total = np.tensordot(self._weight(world, shape, 0), value.p.reshape(-1, count).astype(np.uint64), 1)
            if value.q is not None:
                total = total + np.tensordot(
                    self._weight(world, shape, 1), value.q.reshape(-1, count).astype(np.uint64), 1
                )
            total = total + self._weight(world, (*shape, 0, len(shape)), 2)[:1]  # zeros of different shapes differ
            return total ^ (total >> np.uint64(31))

    def _weight(self, world: int, shape: Shape, part: int) -> Array:
        key = (world, shape, part)
        if key not in self._weights:
            digest = hashlib.sha256(f"{self.seed}:{key}".encode()).digest()
            random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            count = max(1, int(np.prod(shape, dtype=np.int64)))
            self._weights[key] = random.integers(1, 1 << 63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        return self._weights[key]

    def draw(self, name: str, world: int) -> Value:
        """The values of an input: the same for a seed."""
        digest = hashlib.sha256(f"{self.seed}:{self.scene.name}:{name}:{world}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        shape = (*self.leaves[name][world], 1)
        place = self._start(name) + world / len(self.scene.worlds)
        return self.domain.draw(shape, random, place, truth=self.scene.leaf(name).kind == "bool")

    def _start(self, name: str) -> float:
        """Where the first world's real numbers begin; each further world begins somewhere else."""
        digest = hashlib.sha256(f"{self.seed}:{self.scene.name}:{name}:0".encode()).digest()
        return int.from_bytes(digest[8:12], "big") / (1 << 32)

    def _parts(self) -> Parts:
        """What any template may read, found with operands of any shapes that fit."""
        q = r = False
        shapes = list(dict.fromkeys(self.leaves.values()))
        for t, template in enumerate(self.scene.templates):
            for element in self._samples(t, template.slots, shapes):
                needed = parts_needed(element)
                q, r = q or needed.q, r or needed.r
        return Parts(q, r)

    def _samples(self, template: int, slots: int, shapes: list[Signature]) -> list[Element]:
        tries = itertools.product(shapes + _squares(len(self.scene.worlds)), repeat=slots)
        for operands in tries:
            applied = self.apply(template, operands)
            if applied is not None:
                return [r[tuple(0 for _ in r.shape)] for r in applied[0].results]
        return []


def _squares(worlds: int) -> list[Signature]:
    """Shapes that many operators take, for asking what they compute."""
    return [((2,) * rank,) * worlds for rank in range(5)]
