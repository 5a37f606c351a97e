"""A graph while it is rewritten: what it must compute, and how each value is called.

Nodes are hash-consed, so the results alone determine everything below them, and what nobody needs is gone. Names are
kept beside: a recomputed value keeps its name, new ones get names derived from it, so that a rewrite can be told, and
found again, in words.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from superopt.ir.graph import Node, Value, again, replace_inputs
from superopt.rewrite.constants import Constants


@dataclass(frozen=True)
class Tag:
    """Where a node came from: names of its outputs, its place in the order, and the rule that made it."""

    outputs: tuple[str, ...]
    order: int
    rule: str = ""
    origin: object = None
    """The node of the file that it stands for."""


@dataclass(frozen=True)
class Piece:
    results: tuple[Value, ...]
    tags: Mapping[Node, Tag]
    """Of the nodes that work at run time; what depends on constants alone is computed at export."""
    names: Mapping[str, Value]
    """Values by name; one value may have several."""
    constants: Constants
    own: frozenset[Node] = frozenset()
    """Nodes of the file that depend on constants alone."""

    @cached_property
    def members(self) -> tuple[Node, ...]:
        """What the results need at run time, each node after what it reads."""
        return tuple(_reachable(self.results, self.constants))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The members as near to the first order as their operands allow."""
        found = self.members
        position = {node: k for k, node in enumerate(found)}
        waiting: dict[Node, int] = {}
        users: dict[Node, list[Node]] = {}
        for node in found:
            below = {v.producer for v in node.operands if v.producer in position}
            waiting[node] = len(below)
            for n in below:
                users.setdefault(n, []).append(node)  # pyright: ignore[reportArgumentType]
        ready = [(self._order(n), position[n]) for n, count in waiting.items() if not count]
        heapq.heapify(ready)
        ordered: list[Node] = []
        while ready:
            _, k = heapq.heappop(ready)
            ordered.append(found[k])
            for user in users.get(found[k], ()):
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, (self._order(user), position[user]))
        return tuple(ordered)

    @cached_property
    def users(self) -> Mapping[Value, list[Node]]:
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.operands):
                found.setdefault(value, []).append(node)
        return found

    def reading(self, value: Value) -> list[Node]:
        """The nodes that read a value."""
        return self.users.get(value, [])

    @cached_property
    def _positions(self) -> Mapping[Node, int]:
        return {node: k for k, node in enumerate(self.nodes)}

    def position(self, node: Node) -> int:
        return self._positions[node]

    def turn(self, node: Node) -> tuple[tuple[int, ...], int]:
        """When it comes among nodes that are taken together: by the weights behind it first, so that steps of a
        recurrence, which read the same ones, all take them in one order and can share what is made of them."""
        return self.constants.behind(node), self._positions[node]

    @cached_property
    def called(self) -> Mapping[Value, str]:
        """The first name of each value."""
        found: dict[Value, str] = {}
        for name, value in self.names.items():
            found.setdefault(value, name)
        return found

    def _order(self, node: Node) -> int:
        tag = self.tags.get(node)
        return -1 if tag is None else tag.order


def new_nodes(values: Iterable[Value], piece: Piece) -> list[Node]:
    """What has to be added to the piece to compute these values."""
    return _reachable(list(values), piece.constants, piece.tags)


def _reachable(results: Sequence[Value], constants: Constants, known: Collection[Node] = ()) -> list[Node]:
    """Depth first, down to weights and known nodes, without recursion: chains of a hundred thousand nodes exist."""
    found: dict[Node, None] = {}
    is_weight = constants.is_weight
    stack: list[Node] = [v.producer for v in reversed(results) if isinstance(v.producer, Node) and not is_weight(v)]
    while stack:
        node = stack[-1]
        if node in found or node in known:
            stack.pop()
            continue
        below: list[Node] = []
        for value in (*node.inputs, *node.captured):
            producer = None if value is None else value.producer
            if isinstance(producer, Node) and producer not in found and producer not in known:
                assert value is not None
                if not is_weight(value):
                    below.append(producer)
        if below:
            stack += reversed(below)
            continue
        found[node] = None
        stack.pop()
    return list(found)


@dataclass(frozen=True)
class Rewritten:
    piece: Piece
    moved: Mapping[Value, Value]
    """What became of the values that are no longer the same."""


def rewritten(
    piece: Piece, replaced: Mapping[Value, Value], rule: str, taken: Container[str] = frozenset()
) -> Rewritten:
    """The piece with some values computed otherwise.

    New nodes are named after the first value replaced, by names that the piece does not have and that are not `taken`.
    """
    moved: dict[Value, Value] = {old: new for old, new in replaced.items() if old != new}
    tags = dict(piece.tags)
    names = dict(piece.names)
    _name_new(piece, moved, rule, tags, names, taken)
    present = set(piece.members)
    for node in piece.members:
        if not any(v in moved for v in node.operands):
            continue
        inputs = tuple(None if v is None else moved.get(v, v) for v in node.inputs)
        new = replace_inputs(node, inputs, (moved.get(v, v) for v in node.captured))
        if not piece.constants.is_function(node):
            while new in present:  # two random numbers stay two, even where they read the same now
                new = again(new)
            present.add(new)
        if node in tags and new not in tags:
            tags[new] = tags[node]
        for before, after in zip(node.outputs, new.outputs, strict=True):
            if before not in moved:
                moved[before] = after
    results = tuple(moved.get(v, v) for v in piece.results)
    after = Piece(results, tags, {}, piece.constants, piece.own)
    kept = {node: tags[node] for node in after.members if node in tags}
    current = ((name, moved.get(value, value)) for name, value in names.items())
    live = {name: v for name, v in current if v.producer in kept or v.producer not in tags}
    return Rewritten(replace(after, tags=kept, names=live), moved)


def _name_new(
    piece: Piece,
    moved: Mapping[Value, Value],
    rule: str,
    tags: dict[Node, Tag],
    names: dict[str, Value],
    taken: Container[str],
) -> None:
    first = next(iter(moved), None)
    if first is None:
        return
    base = piece.called.get(first, "value")
    order = max((tags[v.node].order for v in moved if v.node in tags), default=0)  # pyright: ignore[reportArgumentType]
    takes = {new: piece.called[old] for old, new in reversed(list(moved.items())) if old in piece.called}
    count = 0
    for node in _reachable(list(moved.values()), piece.constants, tags):
        outputs: list[str] = []
        for value in node.outputs:
            name = takes.get(value)
            while name is None:
                count += 1
                derived = f"{base}~{count}"
                name = derived if derived not in names and derived not in taken else None
            outputs.append(name)
            names[name] = value
        tags[node] = Tag(tuple(outputs), order, rule)
