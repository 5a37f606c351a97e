"""A scene's operators applied to operands of given shapes, world by world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from superopt.errors import BadInput
from superopt.generate.recipe import Scene, World
from superopt.generate.term import Template
from superopt.ops.evaluate import Unsupported, sized
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.expression import evaluate
from superopt.rewrite.program import find, numbers
from superopt.rewrite.rule import Block, Call, Given, Number, Operand

Shape: TypeAlias = tuple[int, ...]


class Application:
    def __init__(self, scene: Scene, registry: Registry) -> None:
        self.scene = scene
        self.worlds = [_names(world) for world in scene.worlds]
        self._registry = registry
        for template in scene.templates:
            for names in self.worlds:
                self._refuse_unnamed(template, names)

    def _refuse_unnamed(self, template: Template, names: Mapping[str, Any]) -> None:
        if unknown := template.mentions - {name.strip("|") for name in names}:
            told = f"no world says what {min(unknown)!r} is"
            raise BadInput(f"scene {self.scene.name}: `{template.text}`: {told}")

    def results(self, template: int, operands: tuple[Shape, ...], world: int) -> tuple[Tensor, ...] | None:
        """Over inputs called s0, s1, …; None where the operator does not take such operands."""
        spelled = self.scene.templates[template]
        tensors = iter([sized(shape, f"s{k}") for k, shape in enumerate(operands)])
        try:
            return self._call(spelled.call, tensors, world, spelled.outputs)
        except (Illegal, NotCovered, ZeroDivisionError, Unsupported):
            return None

    def _call(self, call: Call, given: Iterator[Tensor], world: int, outputs: int = 1) -> tuple[Tensor, ...]:
        """With the tensors given at its slots, in order."""
        operands = [self._tensor(o, given, world) for o in call.operands]
        arguments = {name: evaluate(value, self.worlds[world]) for name, value in call.arguments}
        return find(call, self._registry).apply(operands, arguments, outputs)

    def _tensor(self, operand: Operand, given: Iterator[Tensor], world: int) -> Tensor | None:
        if operand is None:
            return None
        if isinstance(operand, Number):
            return numbers(operand, self.worlds[world])
        return self._call(operand, given, world)[0] if isinstance(operand, Call) else next(given)


def shape_of(given: Given, names: Mapping[str, Any]) -> Shape:
    """An input's shape where its sizes are these."""
    shape: list[int] = []
    for dim in given.dims:
        shape += names[dim.name] if isinstance(dim, Block) else [int(evaluate(dim, names))]
    return tuple(shape)


def sizes(tensor: Tensor) -> Shape:
    return tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]


def _names(world: World) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for name, value in world.items():
        names[name] = list(value) if isinstance(value, tuple) else value
        if isinstance(value, tuple):
            names[f"|{name}|"] = len(value)
    return names
