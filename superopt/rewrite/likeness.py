"""Which graphs do the same work at run time, however their weights come about."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.ir.graph import Node, Value
from superopt.rewrite.constants import Constants
from superopt.rewrite.reading import Reader


class Likeness:
    """Numbers values so that those with equal structure have equal numbers; weights count by their type alone.

    Two graphs that rules led to from one start compute the same function. If they also do the same work, either will
    do; so attributes count as rules read them, not as a file happens to spell them.
    """

    def __init__(self, constants: Constants, reader: Reader) -> None:
        self._constants, self._reader = constants, reader
        self._numbers: dict[tuple[object, ...], int] = {}
        self._nodes: dict[Node, int] = {}

    def of(self, results: Sequence[Value]) -> tuple[int, ...]:
        return tuple(self._value(v) for v in results)

    def _value(self, value: Value | None) -> int:
        if value is None:
            return -1
        while value.node is not None and value.node.op == "Identity" and not value.node.domain:
            (value,) = value.node.operands
        producer = value.producer
        if self._constants.is_weight(value):
            fill = self._constants.fill(value)
            return self._number(("weight", value.type, fill))
        if isinstance(producer, Node):
            return self._number((self._node(producer), value.index))
        return self._number((producer,))

    def _node(self, node: Node) -> int:
        found = self._nodes.get(node)
        if found is not None:
            return found
        stack = [node]
        while stack:
            top = stack[-1]
            below = [v.producer for v in top.operands if isinstance(v.producer, Node) and v.producer not in self._nodes]
            waiting = [n for n in below if not self._constants.is_weight(Value(n))]
            if waiting:
                stack += waiting
                continue
            self._nodes[top] = self._number((top.domain, top.op, top.types, *self._spelled(top)))
            stack.pop()
        return self._nodes[node]

    def _spelled(self, node: Node) -> tuple[object, ...]:
        reading = self._reader.read(node)
        if isinstance(reading, str):
            return (node.attributes, *(self._value(v) for v in node.inputs))
        arguments = tuple(f"{name}={value}" for name, value in sorted(reading.arguments.items()))
        operands = [self._value(v) for v in reading.operands]
        return (arguments, *(sorted(operands) if reading.operator.commutative else operands))

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
