"""What a node reads, and what that reads, down to a depth: all that a pattern of that depth sees at the node.

A rewrite makes new nodes of all that stands behind it, most of which a pattern cannot tell from those before: what they
read nearby is the same, at the same places, with the same weights.
"""

from __future__ import annotations

from superopt.ir.graph import Node, Parameter, Value, make_node
from superopt.rewrite.constants import Constants


class Below:
    """Keys that two nodes share only where no pattern of that depth can tell them apart."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._heads: dict[Node, Node] = {}

    def __call__(self, node: Node, depth: int) -> tuple[object, ...]:
        """Nodes level by level, values by the place at which their producer was met first, weights by themselves."""
        numbers: dict[object, int] = {node: 0}
        told: list[object] = []
        level = [node]
        for _ in range(depth):
            further: list[Node] = []
            for each in level:
                told.append(self._head(each))
                for value in each.inputs:
                    told.append(self._told(value, numbers, further))
            level = further
        told += [each.types for each in level]
        return tuple(told)

    def _told(self, value: Value | None, numbers: dict[object, int], further: list[Node]) -> object:
        if value is None or self._constants.is_weight(value):
            return value
        producer = value.producer
        number = numbers.get(producer)
        if number is not None:
            return number, value.index
        number = numbers[producer] = len(numbers)
        if isinstance(producer, Node):
            further.append(producer)
            return number, value.index
        assert isinstance(producer, Parameter)
        return number, value.index, producer.type

    def _head(self, node: Node) -> Node:
        """The node without what it reads; one with bodies is like no other."""
        if node.captured or node.bodies:
            return node
        found = self._heads.get(node)
        if found is None:
            nothing = (None,) * len(node.inputs)
            found = make_node(node.op, nothing, node.attributes, node.types, domain=node.domain, instance=node.instance)
            self._heads[node] = found
        return found
