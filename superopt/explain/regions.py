"""Changed nodes that hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from superopt.explain.matching import Matching
from superopt.explain.view import attribute_key
from superopt.ir.graph import Node, Value

Reason = Literal["attributes", "operands", "constants", "body"]


@dataclass(frozen=True)
class Change:
    """A node that is in both graphs, but not as it was."""

    before: Node
    after: Node
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Region:
    """Changed nodes that hang together, in the order of their graphs."""

    number: int
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    removed: int
    added: int
    changed: tuple[Change, ...]
    like: int | None
    """The first region of the same shape, where this is not it: names and weights may differ."""


def find_regions(matching: Matching, changes: Mapping[Node, Change]) -> tuple[Region, ...]:
    """Nodes hang together along lines that exist in one graph only, and where one took over a value's name."""
    groups = _Groups()
    before = [n for n in matching.before.nodes if n not in matching.forth or n in changes]
    altered = {c.after: c for c in changes.values()}
    after = [n for n in matching.after.nodes if n not in matching.back or n in altered]
    for change in changes.values():
        groups.join((0, change.before), (1, change.after))
    for side, nodes, partners in ((0, before, matching.forth), (1, after, matching.back)):
        lit = set(nodes)
        for node in nodes:
            groups.find((side, node))
            for slot, value in enumerate((*node.inputs, *node.captured)):
                source = value.node if value is not None else None
                if source in lit and not _remains(matching, side, node, slot, partners):
                    groups.join((side, node), (side, source))
    old, new = set(before), set(after)
    makers = {name: v.node for v, name in matching.before.own_names.items() if v.node in old}
    for value, name in matching.after.own_names.items():
        maker = makers.get(name)
        if maker is not None and value.node is not None and value.node in new:
            groups.join((0, maker), (1, value.node))
    return _numbered(matching, changes, groups, before, after)


def _remains(matching: Matching, side: int, node: Node, slot: int, partners: Mapping[Node, Node]) -> bool:
    """Whether the line into this slot is in both graphs."""
    other = partners.get(node)
    if other is None:
        return False
    mine, theirs = (*node.inputs, *node.captured), (*other.inputs, *other.captured)
    if slot >= len(theirs):
        return False
    pair = (mine[slot], theirs[slot])
    return matching.same(*(pair if side == 0 else pair[::-1]))


def _numbered(
    matching: Matching, changes: Mapping[Node, Change], groups: _Groups, before: Sequence[Node], after: Sequence[Node]
) -> tuple[Region, ...]:
    members: dict[object, tuple[list[Node], list[Node]]] = {}
    for side, nodes in ((0, before), (1, after)):
        for node in nodes:
            members.setdefault(groups.find((side, node)), ([], []))[side].append(node)
    shapes: dict[object, int] = {}
    found: list[Region] = []
    for number, (left, right) in enumerate(members.values(), 1):
        first = shapes.setdefault((_shape(left), _shape(right)), number)
        found.append(
            Region(
                number,
                tuple(left),
                tuple(right),
                sum(node not in matching.forth for node in left),
                sum(node not in matching.back for node in right),
                tuple(changes[node] for node in left if node in changes),
                None if first == number else first,
            )
        )
    return tuple(found)


def _shape(nodes: Sequence[Node]) -> object:
    """Operators, attributes and wiring; what comes from outside counts by the order in which it is first read."""
    numbers: dict[Value, int] = {}
    described: list[object] = []
    for node in nodes:
        operands = [None if v is None else numbers.setdefault(v, len(numbers)) for v in (*node.inputs, *node.captured)]
        described.append((node.kind, attribute_key(node), tuple(operands), tuple(b.digest for b in node.bodies)))
        for value in node.outputs:
            numbers.setdefault(value, len(numbers))
    return tuple(described)


class _Groups:
    """Disjoint sets."""

    def __init__(self) -> None:
        self._parents: dict[tuple[int, Node], tuple[int, Node]] = {}

    def find(self, item: tuple[int, Node]) -> tuple[int, Node]:
        root = item
        while (above := self._parents.setdefault(root, root)) != root:
            root = above
        while item != root:
            item, self._parents[item] = self._parents[item], root
        return root

    def join(self, a: tuple[int, Node], b: tuple[int, Node]) -> None:
        self._parents[self.find(b)] = self.find(a)
