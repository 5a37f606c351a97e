"""How many bytes the model's weights grow by, each weight counted once, however many regions read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from superopt.ir.graph import Constant, Value, replace_inputs
from superopt.rewrite.piece import Piece
from superopt.rewrite.weights import CannotCombine, combined_bytes
from superopt.rewrite.whole import weights_read
from superopt.search.regions import Region, weight_nodes

ROOM = 2
"""Times its own weights that a region may take besides while it is searched: halfway, old and new weights are there."""


@dataclass(frozen=True)
class Change:
    """Of the weights, when all regions of a kind are rewritten."""

    made: frozenset[Value]
    """That were not there."""
    left: Counter[Value]
    """By how many nodes fewer they are read."""
    bytes: int


class Growth:
    def __init__(self, allowed: int) -> None:
        self._allowed, self._grown = allowed, 0
        self._made: set[Value] = set()
        self._read: Counter[Value] = Counter()
        self._own: dict[tuple[Value, ...], _Own] = {}
        """By the results of the first of a kind."""

    def survey(self, piece: Piece) -> None:
        """This is the graph, as it is now."""
        self._read = weights_read(piece)
        self._own.clear()

    def fits(self, group: Sequence[Region], piece: Piece, share: float) -> bool:
        """Whether the model may grow by what it takes to compute these regions, which are alike, as `piece` does the
        first; and that is their share of what is left, or no more than `ROOM` times their weights: bytes that one kind
        of region takes for little, another may miss."""
        own = self._own_of(group)
        after = weights_read(piece)
        made = _bytes(v for v in after if v not in own.weights and v not in self._made)
        freed = _bytes(v for v in own.alone if v not in after)
        added = own.copies * (made - freed)
        return added <= 0 or added <= min(self._left, max(share * self._left, ROOM * own.copies * own.bytes))

    def change(self, group: Sequence[Region], piece: Piece) -> Change:
        first = group[0].piece
        before, after = weights_read(first), weights_read(piece)
        made: set[Value] = set()
        left: Counter[Value] = Counter()
        for region in group:
            there = _corresponding(first, region.piece, piece)
            made.update(there.get(v, v) for v in after)
            left.update({there.get(v, v): times for v, times in before.items() if v not in after})
        made -= self._made
        made -= self._read.keys()
        freed = [v for v, times in left.items() if times >= self._read[v]]
        return Change(frozenset(made), left, _bytes(made) - _bytes(freed))

    def allows(self, change: Change) -> bool:
        return change.bytes <= max(0, self._left)

    def take(self, change: Change) -> None:
        self._grown += max(change.bytes, 0)
        self._made |= change.made
        self._read -= change.left
        self._own.clear()

    @property
    def _left(self) -> int:
        return self._allowed - self._grown

    def _own_of(self, group: Sequence[Region]) -> _Own:
        first = group[0].piece
        if first.results not in self._own:
            weights = weights_read(first)
            copies = len({frozenset(weights_read(region.piece)) for region in group})
            alone = [v for v, times in weights.items() if self._read[v] * copies <= times * len(group)]
            self._own[first.results] = _Own(frozenset(weights), tuple(alone), copies, _bytes(weights))
        return self._own[first.results]


@dataclass(frozen=True)
class _Own:
    """Of a kind of region as it is."""

    weights: frozenset[Value]
    alone: tuple[Value, ...]
    """Those that no other kind reads."""
    copies: int
    """Regions of the kind whose weights differ."""
    bytes: int


def _corresponding(first: Piece, other: Piece, rewritten: Piece) -> dict[Value, Value]:
    """The weights of the first region, rewritten, as the same steps make them of the other's."""
    moved: dict[Value, Value] = {}
    for here, there in zip(first.members, other.members, strict=True):
        for a, b in zip(here.operands, there.operands, strict=True):
            if a != b and first.constants.is_weight(a):
                moved[a] = b
    for node in weight_nodes(rewritten) if moved else ():
        new = replace_inputs(node, (v and moved.get(v, v) for v in node.inputs), node.captured)
        moved.update((a, b) for a, b in zip(node.outputs, new.outputs, strict=True) if a != b and a not in moved)
    return moved


def _bytes(weights: Iterable[Value]) -> int:
    return sum(_size(value) for value in weights)


def _size(value: Value) -> int:
    if isinstance(value.producer, Constant):
        return value.producer.tensor.nbytes
    try:
        return combined_bytes([value])
    except CannotCombine:
        return 0  # then no model will be made of it
