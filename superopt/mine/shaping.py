"""Shapes that a call with places gives, for one way after another to fill it in.

An operator's result has a shape that follows from the shapes and attributes that go in, and thousands of ways differ
in few of these: each is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from superopt.generate.trial import NOT_A_RULE, Sizes
from superopt.mine.targets import Filling, filled_arguments
from superopt.ops.evaluate import Unsupported, sized
from superopt.ops.formula import Tensor, constant
from superopt.ops.index import Index
from superopt.ops.registry import Registry
from superopt.rewrite.expression import evaluate, names_in
from superopt.rewrite.program import Program, numbers
from superopt.rewrite.rule import Call, Number, Operand, Rule

Shapes: TypeAlias = "tuple[tuple[Index, ...], ...]"
"""Of all results of a call."""
Known: TypeAlias = "dict[tuple[object, ...], Shapes | None]"
"""By all that goes into one operator; None where that is not legal."""
_ANY = Rule("part", "", (), (), (), ())


class _NotLegal(Exception):
    """A call inside is not."""


@dataclass
class Shaper:
    """For one part: what its inputs' shapes and its names are."""

    registry: Registry
    shapes: Mapping[str, tuple[int, ...]]
    names: dict[str, Any]
    known: Known
    """Shared by all parts."""
    _arguments: dict[tuple[object, ...], tuple[str, dict[str, Any]] | None] = field(
        default_factory=dict[tuple[object, ...], "tuple[str, dict[str, Any]] | None"]
    )
    _mentioned: dict[int, list[str]] = field(default_factory=dict[int, "list[str]"])

    def shapes_of(self, call: Call, filling: Mapping[str, Filling], outputs: int = 1) -> Shapes | None:
        """None where the call is not legal, or one inside it."""
        assert call.bundle is None
        try:
            operands = [self._operand(operand, filling) for operand in call.operands]
        except (_NotLegal, Unsupported, *NOT_A_RULE):
            return None
        arguments = self._told(call, filling)
        if arguments is None:
            return None
        text, values = arguments
        key = call.domain, call.op, outputs, text, *operands
        if key not in self.known:
            self.known[key] = self._given(call, operands, values, outputs)
        return self.known[key]

    def _operand(self, operand: Operand, filling: Mapping[str, Filling]) -> _Operand:
        """What goes into an operator: nothing, a tensor of a shape, or a number."""
        if isinstance(operand, Call):
            inner = self.shapes_of(operand, filling)
            if inner is None:
                raise _NotLegal
            return inner[0]
        if isinstance(operand, str) and operand in filling:
            found = filling[operand]
            operand = found if isinstance(found, str) else Number(found)
        if isinstance(operand, str) and operand in self.shapes:
            return self.shapes[operand]
        return None if operand is None else self._number(operand)

    def _number(self, operand: str | Number) -> _Plain:
        value = self.names[operand] if isinstance(operand, str) else evaluate(operand.expression, self.names)
        return _Plain(repr(value), constant(value) if isinstance(operand, str) else numbers(operand, self.names))

    def _told(self, call: Call, filling: Mapping[str, Filling]) -> tuple[str, dict[str, Any]] | None:
        """The attributes as text that tells them apart, and their values."""
        if id(call) not in self._mentioned:
            self._mentioned[id(call)] = [n for _, e in call.arguments for n in names_in(e) if n in filling]
        key = id(call), *(filling[name] for name in self._mentioned[id(call)])
        if key not in self._arguments:
            self._arguments[key] = self._evaluated(call, filling)
        return self._arguments[key]

    def _evaluated(self, call: Call, filling: Mapping[str, Filling]) -> tuple[str, dict[str, Any]] | None:
        try:
            values = {name: evaluate(e, self.names) for name, e in filled_arguments(call, filling)}
        except (Unsupported, *NOT_A_RULE):
            return None
        return repr(values), values

    def _given(self, call: Call, operands: list[_Operand], values: dict[str, Any], outputs: int) -> Shapes | None:
        tensors = [
            o.tensor if isinstance(o, _Plain) else None if o is None else sized(o, f"x{k}")
            for k, o in enumerate(operands)
        ]
        program = Program(_ANY, self.registry, Sizes(Random(0), []))
        try:
            return tuple(tuple(result.shape) for result in program.applied(call, tensors, values, outputs))
        except (Unsupported, *NOT_A_RULE):
            return None


@dataclass(frozen=True)
class _Plain:
    """A number as an operand."""

    value: str
    tensor: Tensor = field(compare=False)


_Operand: TypeAlias = "tuple[Index, ...] | _Plain | None"
