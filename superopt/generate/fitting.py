"""Shapes of terms in all of a scene's worlds, and which shapes the leaves of a proved pair may have.

A pair is proved for the shapes of its scene's inputs with any sizes for their names; so a leaf stands for any term
whose shape its declared one fits, with one size for each name, in every world. Names that an operator of the pair
mentions, as in Split(…, split=[n, p]), keep the size that the world gives them: the operator is that one operator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from superopt.generate.recipe import Scene
from superopt.generate.term import Term, operators
from superopt.ops.evaluate import Unsupported, sized
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Registry
from superopt.rewrite.expression import Name, evaluate, names_in
from superopt.rewrite.program import find, numbers
from superopt.rewrite.rule import Block, Call, Given, Number

Shape: TypeAlias = "tuple[tuple[int, ...], ...]"
"""In each world."""

MOST_UNKNOWNS = 2
"""Sizes that no dim gives by itself; pairs with more of them fit nothing."""


class Shapes:
    """Shapes by number, so that they are quick to compare."""

    def __init__(self, scene: Scene, registry: Registry) -> None:
        self._scene, self._registry = scene, registry
        self._names = [_names(world) for world in scene.worlds]
        self._numbers: dict[Shape, int] = {}
        self._shapes: list[Shape] = []
        self._leaves = {g.name: self._declared(g) for g in scene.given}
        self._results: dict[tuple[int, tuple[int, ...]], tuple[int, ...] | None] = {}

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
        if given.kind not in ("tensor", "bool"):
            return None
        return self._number(tuple(_declared(given, names) for names in self._names))

    def _infer(self, template: int, operands: tuple[int, ...]) -> tuple[int, ...] | None:
        each: list[list[tuple[int, ...]]] = []
        wanted = self._scene.templates[template]
        for world, names in enumerate(self._names):
            given = iter([self._shapes[o][world] for o in operands])
            inputs: list[Any] = []
            for operand in wanted.call.operands:
                if isinstance(operand, Call):
                    return None
                if isinstance(operand, Number):
                    inputs.append(numbers(operand, names))
                else:
                    inputs.append(None if operand is None else sized(next(given), operand))
            try:
                arguments = {name: evaluate(value, names) for name, value in wanted.call.arguments}
                results = find(wanted.call, self._registry).apply(inputs, arguments, wanted.outputs)
            except (Illegal, NotCovered, Unsupported, ZeroDivisionError):
                return None
            each.append([tuple(int(n) for n in r.shape) for r in results])  # pyright: ignore[reportArgumentType]
        return tuple(self._number(shape) for shape in zip(*each, strict=True))

    def fit(self, names: Iterable[str], terms: Iterable[Term]) -> Callable[[tuple[int | None, ...]], bool]:
        """Whether terms of these shapes may stand for these leaves of a pair."""
        templates = {t for t, _ in operators(*terms)}
        fixed = {n for t in templates for n in _mentioned(self._scene.templates[t].call)}
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


def _names(world: Mapping[str, int | tuple[int, ...]]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for name, value in world.items():
        names[name] = list(value) if isinstance(value, tuple) else value
        if isinstance(value, tuple):
            names[f"|{name}|"] = len(value)
    return names


def _declared(given: Given, names: Mapping[str, Any]) -> tuple[int, ...]:
    shape: list[int] = []
    for dim in given.dims:
        shape += names[dim.name] if isinstance(dim, Block) else [int(evaluate(dim, names))]
    return tuple(shape)


def _mentioned(call: Call) -> set[str]:
    expressions = [value for _, value in call.arguments]
    expressions += [o.expression for o in call.operands if isinstance(o, Number)]
    return {name.strip("|") for e in expressions for name in names_in(e)}


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
        sizes = {**names, **dict(zip(left, values, strict=True))}
        if all(_declared(leaf, sizes) == shape for leaf, shape in zip(leaves, shapes, strict=True)):
            return True
    return False
