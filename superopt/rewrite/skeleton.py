"""The bare operators of a pattern: what a node must be, and the nodes that it reads, before sizes and attributes are
worth a look.

Many rules share one skeleton, and most nodes fit few: asking for the skeleton first, once for all its rules, is what
makes thousands of rules affordable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from superopt.ir.graph import Node, Value
from superopt.rewrite.constants import Constants
from superopt.rewrite.pattern import Input, Pattern, Result, Scalar
from superopt.rewrite.reading import Reader
from superopt.rewrite.synonyms import stands_for


@dataclass(frozen=True)
class Bone:
    """An operator and what it reads; `output` is the one that is read of it."""

    op: str
    domain: str
    output: int
    commutative: bool
    operands: tuple[Part, ...]
    repeats: bool = False
    """Whether a constant may hold what it gives."""

    @property
    def depth(self) -> int:
        """Operators on the longest way down."""
        return 1 + max((part.depth for part in self.operands if isinstance(part, Bone)), default=0)


@dataclass(frozen=True)
class Number:
    """A constant that holds one number."""


Part: TypeAlias = "Bone | Number | int | None"
"""An `int` is an input: equal ones stand for one value. None is an operand that is not there."""
Bound: TypeAlias = "dict[int, Value]"


def skeleton_of(pattern: Pattern) -> Bone:
    """Of the pattern's first root."""
    numbers: dict[str, int] = {}

    def bone(index: int, output: int) -> Bone:
        node = pattern.nodes[index]
        operands: list[Part] = []
        for operand in node.operands:
            if isinstance(operand, Result):
                operands.append(bone(operand.node, operand.output))
            elif isinstance(operand, Input):
                operands.append(numbers.setdefault(operand.name, len(numbers)))
            else:
                operands.append(Number() if isinstance(operand, Scalar) else None)
        call, repeats = node.call, node.repeats is not None
        return Bone(call.op, call.domain, output, node.operator.commutative, tuple(operands), repeats)

    return bone(pattern.roots[0], 0)


@dataclass(frozen=True)
class Skeletons:
    """Looks for them in one model."""

    reader: Reader
    constants: Constants

    def fits(self, bone: Bone, node: Node) -> bool:
        return next(self._node(bone, node, {}), None) is not None

    def _node(self, bone: Bone, node: Node, bound: Bound) -> Iterator[Bound]:
        if not stands_for(node, bone.op, bone.domain):
            return
        reading = self.reader.read(node)
        if isinstance(reading, str) or len(reading.operands) > len(bone.operands):
            return
        operands = (*reading.operands, *(None for _ in range(len(bone.operands) - len(reading.operands))))
        yield from self._operands(bone.operands, operands, bound)
        if bone.commutative and len(operands) == 2 and operands[0] != operands[1]:
            yield from self._operands(bone.operands, operands[::-1], bound)

    def _operands(self, parts: tuple[Part, ...], values: tuple[Value | None, ...], bound: Bound) -> Iterator[Bound]:
        if not parts:
            yield bound
            return
        for further in self._operand(parts[0], values[0], bound):
            yield from self._operands(parts[1:], values[1:], further)

    def _operand(self, part: Part, value: Value | None, bound: Bound) -> Iterator[Bound]:
        if part is None or value is None:
            if part is None and value is None:
                yield bound
        elif isinstance(part, Bone):
            if part.repeats and value.constant is not None:
                yield bound
            elif value.node is not None and value.index == part.output:
                yield from self._node(part, value.node, bound)
        elif isinstance(part, Number):
            if self.constants.fill(value) is not None:
                yield bound
        elif part not in bound:
            yield {**bound, part: value}
        elif bound[part] == value:
            yield bound
