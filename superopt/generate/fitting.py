"""Shapes of terms in all of a scene's worlds, and which shapes the leaves of a proved pair may have.

A pair is proved for the shapes of its scene's inputs with any sizes for their names; so a leaf stands for any term
whose shape its declared one fits, with one size for each name, in every world. Names that an operator of the pair
mentions, as in Split(…, split=[n, p]), keep the size that the world gives them: the operator is that one operator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from superopt.generate.application import Application, shape_of, sizes
from superopt.generate.recipe import Scene
from superopt.generate.term import Term, operators
from superopt.ops.registry import Registry
from superopt.rewrite.expression import Name, names_in
from superopt.rewrite.rule import Block, Given

Shape: TypeAlias = "tuple[tuple[int, ...], ...]"
"""In each world."""

MOST_UNKNOWNS = 2
"""Sizes that no dim gives by itself; pairs with more of them fit nothing."""


class Shapes:
    """Shapes by number, so that they are quick to compare."""

    def __init__(self, scene: Scene, registry: Registry) -> None:
        self._scene = scene
        self._application = Application(scene, registry)
        self._names = self._application.worlds
        self._numbers: dict[Shape, int] = {}
        self._shapes: list[Shape] = []
        self._leaves = {g.name: self._declared(g) for g in scene.given}
        self._results: dict[tuple[int, tuple[int, ...]], tuple[int, ...] | None] = {}

    def widen(self, scene: Scene) -> None:
        """The scene has got further inputs."""
        self._scene = scene
        self._leaves.update((g.name, self._declared(g)) for g in scene.given if g.name not in self._leaves)

    def __call__(self, what: str | int, output: int, operands: tuple[int | None, ...]) -> int | None:
        """The shape of a leaf, or of an operator's result; None if the operator does not take such operands."""
        if isinstance(what, str):
            return self._leaves[what]
        known = tuple(o for o in operands if o is not None)
        if len(known) < len(operands):
            return None
        if (what, known) not in self._results:
            self._results[what, known] = self._infer(what, known)
        results = self._results[what, known]
        return None if results is None or output >= len(results) else results[output]

    def _number(self, shape: Shape) -> int:
        if shape not in self._numbers:
            self._numbers[shape] = len(self._shapes)
            self._shapes.append(shape)
        return self._numbers[shape]

    def _declared(self, given: Given) -> int | None:
        if not given.is_tensor:
            return None
        return self._number(tuple(shape_of(given, names) for names in self._names))

    def _infer(self, template: int, operands: tuple[int, ...]) -> tuple[int, ...] | None:
        each: list[list[tuple[int, ...]]] = []
        for world in range(len(self._names)):
            shapes = tuple(self._shapes[o][world] for o in operands)
            results = self._application.results(template, shapes, world)
            if results is None:
                return None
            each.append([sizes(r) for r in results])
        return tuple(self._number(shape) for shape in zip(*each, strict=True))

    def fit(self, names: Iterable[str], terms: Iterable[Term]) -> Callable[[tuple[int | None, ...]], bool]:
        """Whether terms of these shapes may stand for these leaves of a pair."""
        templates = {t for t, _ in operators(*terms)}
        fixed = {n for t in templates for n in self._scene.templates[t].mentions}
        leaves = [self._scene.leaf(name) for name in names]
        known: dict[tuple[int | None, ...], bool] = {}

        def fits(shapes: tuple[int | None, ...]) -> bool:
            if shapes not in known:
                known[shapes] = None not in shapes and all(
                    _fits(leaves, [self._shapes[s][world] for s in shapes if s is not None], names, fixed)
                    for world, names in enumerate(self._names)
                )
            return known[shapes]

        return fits


def _fits(leaves: list[Given], shapes: list[tuple[int, ...]], world: Mapping[str, Any], fixed: set[str]) -> bool:
    names = {name: value for name, value in world.items() if name.strip("|") in fixed}
    for leaf, shape in zip(leaves, shapes, strict=True):
        spare = len(shape) - sum(not isinstance(d, Block) for d in leaf.dims)
        blocks = len(leaf.dims) - (len(shape) - spare)
        if spare < 0 or blocks > 1 or (spare and not blocks):
            return False
        at = 0
        for dim in leaf.dims:
            taken = spare if isinstance(dim, Block) else 1
            found: Any = list(shape[at : at + taken]) if isinstance(dim, Block) else shape[at]
            at += taken
            if isinstance(dim, Block | Name) and names.setdefault(dim.name, found) != found:
                return False
            if isinstance(dim, Block):
                names[f"|{dim.name}|"] = spare
    return _solvable(leaves, shapes, names)


def _solvable(leaves: list[Given], shapes: list[tuple[int, ...]], names: dict[str, Any]) -> bool:
    """Whether sizes that are left, of which dims such as 2*n and n + p speak, can be chosen so that all dims fit."""
    dims = [d for leaf in leaves for d in leaf.dims if not isinstance(d, Block)]
    left = sorted({n for d in dims for n in names_in(d)} - set(names))
    if len(left) > MOST_UNKNOWNS:
        return False
    largest = max((n for shape in shapes for n in shape), default=0)
    for values in itertools.product(range(1, largest + 1), repeat=len(left)):
        chosen = {**names, **dict(zip(left, values, strict=True))}
        if all(shape_of(leaf, chosen) == shape for leaf, shape in zip(leaves, shapes, strict=True)):
            return True
    return False
