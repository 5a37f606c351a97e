"""A scene at its worlds: what each operator gives for operands of each shape, worked out once and kept."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from superopt.errors import BadInput
from superopt.generate.batch import Plan, at_place, evaluate, parts_needed
from superopt.generate.recipe import Scene, World
from superopt.generate.residues import Array, Parts, Residues, Value
from superopt.generate.term import Template
from superopt.ops.element import Access, Element, lift
from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.expression import evaluate as evaluate_size
from superopt.rewrite.program import find, numbers
from superopt.rewrite.rule import Block, Call, Given, Number

Shape: TypeAlias = tuple[int, ...]
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
        return tuple(int(n) for n in self.results[output].shape)  # pyright: ignore[reportArgumentType]


class Stage:
    """Evaluates the scene's templates in its worlds."""

    def __init__(self, scene: Scene, registry: Registry, seed: int) -> None:
        self.scene, self.registry, self.seed = scene, registry, seed
        self._operators = [find(t.call, registry) for t in scene.templates]
        self._names = [_names(world) for world in scene.worlds]
        self._arguments = [[self._filled(t, names) for names in self._names] for t in scene.templates]
        self._applied: dict[tuple[int, tuple[Signature, ...]], list[Applied] | None] = {}
        self._weights: dict[tuple[int, Shape, int], Array] = {}
        self.leaves: dict[str, Signature] = {g.name: self._signature(g) for g in scene.given}
        self.parts = self._parts()
        self.domain = Residues(self.parts, seed)

    def _filled(self, template: Template, names: dict[str, Any]) -> dict[str, Any] | None:
        """The attributes in one world; None where they make no sense there."""
        try:
            return {name: evaluate_size(value, names) for name, value in template.call.arguments}
        except KeyError as name:
            raise BadInput(f"scene {self.scene.name}: `{template.text}`: no world says what {name} is") from None
        except ZeroDivisionError:
            return None

    def _signature(self, given: Given) -> Signature:
        return tuple(self._leaf_shape(given, names) for names in self._names)

    def _leaf_shape(self, given: Given, names: dict[str, Any]) -> Shape:
        shape: list[int] = []
        for dim in given.dims:
            if isinstance(dim, Block):
                shape += names[dim.name]
            else:
                try:
                    shape.append(int(evaluate_size(dim, names)))
                except KeyError as name:
                    raise BadInput(f"scene {self.scene.name}: {given}: no world says what {name} is") from None
        if any(n < 1 for n in shape) or math.prod(shape) > MOST_ELEMENTS:
            told = f"sizes start at 1, and an input has at most {MOST_ELEMENTS} elements"
            raise BadInput(f"scene {self.scene.name}: {given} is {shape} in a world: {told}")
        return tuple(shape)

    def apply(self, template: int, operands: tuple[Signature, ...]) -> list[Applied] | None:
        """The formulas' results in every world; None where the operands do not fit in some world."""
        key = (template, operands)
        if key not in self._applied:
            self._applied[key] = self._apply(template, operands)
        return self._applied[key]

    def _apply(self, template: int, operands: tuple[Signature, ...]) -> list[Applied] | None:
        found: list[Applied] = []
        for world in range(len(self._names)):
            results = self._in_world(template, tuple(s[world] for s in operands), world)
            if results is None:
                return None
            found.append(Applied(results))
        return found

    def _in_world(self, template: int, shapes: tuple[Shape, ...], world: int) -> tuple[Tensor, ...] | None:
        spelled = self.scene.templates[template]
        arguments = self._arguments[template][world]
        if arguments is None:
            return None
        given = iter(range(len(shapes)))
        tensors = [self._operand(o, shapes, given, world) for o in spelled.call.operands]
        try:
            results = self._operators[template].apply(tensors, arguments, spelled.outputs)
            sizes = [np.prod([int(n) for n in r.shape], dtype=np.int64) for r in results]  # pyright: ignore[reportArgumentType]
        except (Illegal, NotCovered, ZeroDivisionError, Unsupported):
            return None
        return results if all(0 < n <= MOST_ELEMENTS for n in sizes) else None

    def _operand(
        self, operand: str | Number | Call | None, shapes: tuple[Shape, ...], given: Any, world: int
    ) -> Tensor | None:
        if operand is None:
            return None
        if isinstance(operand, Number):
            return numbers(operand, self._names[world])
        if isinstance(operand, Call):
            raise BadInput(f"scene {self.scene.name}: operators are not nested in a recipe: `{operand}`")
        k = next(given)
        return Tensor(shapes[k], lambda *i: Access(f"s{k}", i))

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
        place = self._start(name) + world / len(self._names)
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
        tries = itertools.product(shapes + _squares(len(self._names)), repeat=slots)
        for operands in tries:
            applied = self.apply(template, operands)
            if applied is not None:
                return [r[tuple(0 for _ in r.shape)] for r in applied[0].results]
        return []


def _squares(worlds: int) -> list[Signature]:
    """Shapes that many operators take, for asking what they compute."""
    return [((2,) * rank,) * worlds for rank in range(5)]


def _names(world: World) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for name, value in world.items():
        names[name] = list(value) if isinstance(value, tuple) else value
        if isinstance(value, tuple):
            names[f"|{name}|"] = len(value)
    return names
