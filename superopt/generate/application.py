"""A scene's operators applied to operands of given shapes, world by world."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._operators = [find(t.call, registry) for t in scene.templates]
        self._arguments = [[self._filled(t, names) for names in self.worlds] for t in scene.templates]

    def _filled(self, template: Template, names: Mapping[str, Any]) -> dict[str, Any] | None:
        """The attributes in one world; None where they make no sense there."""
        try:
            return {name: evaluate(value, names) for name, value in template.call.arguments}
        except KeyError as name:
            raise BadInput(f"scene {self.scene.name}: `{template.text}`: no world says what {name} is") from None
        except ZeroDivisionError:
            return None

    def results(self, template: int, operands: tuple[Shape, ...], world: int) -> tuple[Tensor, ...] | None:
        """Over inputs called s0, s1, …; None where the operator does not take such operands."""
        spelled, arguments = self.scene.templates[template], self._arguments[template][world]
        if arguments is None:
            return None
        given = iter(enumerate(operands))
        tensors = [self._tensor(o, given, world) for o in spelled.call.operands]
        try:
            return self._operators[template].apply(tensors, arguments, spelled.outputs)
        except (Illegal, NotCovered, ZeroDivisionError, Unsupported):
            return None

    def _tensor(self, operand: Operand, given: Any, world: int) -> Tensor | None:
        if operand is None:
            return None
        if isinstance(operand, Number):
            return numbers(operand, self.worlds[world])
        if isinstance(operand, Call):
            raise BadInput(f"scene {self.scene.name}: operators are not nested in a recipe: `{operand}`")
        k, shape = next(given)
        return sized(shape, f"s{k}")


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
