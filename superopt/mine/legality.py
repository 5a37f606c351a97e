"""Which ways to fill in a call are legal, and give results of the right shape: by shapes alone, before any number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from superopt.ir.lexer import Reader
from superopt.mine.essence import Essences
from superopt.mine.shaping import Known, Shaper, Shapes
from superopt.mine.targets import Filler, Filling, Ranks, Target
from superopt.ops.element import Access
from superopt.ops.registry import Registry
from superopt.rewrite.expression import Expression, Listing, evaluate, parse_expression
from superopt.rewrite.rule import Call, Step, calls_of

SIZES = (3, 5, 2, 7, 4, 11, 6, 13, 9, 8, 17, 10, 19, 12, 23, 14)
"""Different for different symbols, so that nothing fits by chance."""


@dataclass
class Legality:
    """Parts with the same shapes share the answers."""

    registry: Registry
    essences: Essences
    _known: dict[tuple[object, ...], list[Mapping[str, Filling]]] = field(
        default_factory=dict[tuple[object, ...], "list[Mapping[str, Filling]]"]
    )
    _told: dict[str, list[Ranks]] = field(default_factory=dict[str, "list[Ranks]"])
    _shapes: Known = field(default_factory=dict[tuple[object, ...], "Shapes | None"])

    def ways(self, filler: Filler) -> list[Mapping[str, Filling]]:
        part = filler.part
        shapes = tuple(sorted(part.shapes.items()))
        key = filler.target.text, shapes, part.sizes, part.results, len(part.reals), part.numbers
        if key not in self._known:
            numbers = filler.numbers()
            first = numbers[0] if numbers else None
            self._known[key] = [] if first is None else self._legal(filler, first)
        return self._known[key]

    def _legal(self, filler: Filler, numbers: Mapping[str, Filling]) -> list[Mapping[str, Filling]]:
        part = filler.part
        names: dict[str, Any] = dict(zip(part.values, SIZES, strict=False))
        if len(names) < len(part.values):
            return []
        shapes = {name: tuple(_size(d, names) for d in dims) for name, dims in part.shapes.items()}
        names |= {name: Access(name, ()) for name in part.reals}
        shaper = Shaper(
            self.registry, {name: shapes[name] for name in (*part.data, *part.weights)}, names, self._shapes
        )
        outputs = filler.target.outputs.split()
        named = {"1": shapes[part.results[0]], "2": shapes[part.results[-1]]}
        wanted = [(k, named[output]) for k, output in enumerate(outputs) if output in named]
        found: list[Mapping[str, Filling]] = []
        for filling in filler.legal(self._ranks(filler.target)):
            given = shaper.shapes_of(filler.target.call, {**filling, **numbers}, len(outputs))
            if given is not None and all(given[k] == shape for k, shape in wanted):
                found.append(filling)
        return found

    def _ranks(self, target: Target) -> list[Ranks]:
        if target.text not in self._told:
            self._told[target.text] = self._found(target)
        return self._told[target.text]

    def _found(self, target: Target) -> list[Ranks]:
        calls = calls_of((Step(("y",), target.call),))
        found = [self.essences.ranks(call) for call in calls]
        return [*(ranks for ranks in found if ranks is not None), *filter(None, map(_turned, calls))]


def _turned(call: Call) -> Ranks | None:
    """A Transpose says how many axes its operand has."""
    (operand,) = call.operands if len(call.operands) == 1 else (None,)
    axes = dict(call.arguments).get("perm")
    if call.op != "Transpose" or not isinstance(operand, str) or not isinstance(axes, Listing):
        return None
    return (operand,), frozenset({(len(axes.items),)})


def _size(text: str, names: Mapping[str, int]) -> int:
    return evaluate(_parsed(text), names)


@lru_cache(4096)
def _parsed(text: str) -> Expression:
    return parse_expression(Reader(text))
