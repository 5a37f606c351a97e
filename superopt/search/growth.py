"""How many bytes the model's weights grow by, each weight counted once, however many regions read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from superopt.ir.graph import Constant, Value, replace_inputs
from superopt.ir.onnx import Model
from superopt.ir.onnx.stats import total_bytes
from superopt.options import Options
from superopt.rewrite.piece import Piece
from superopt.rewrite.weights import CannotCombine, combined_bytes
from superopt.rewrite.whole import weights_read
from superopt.search.regions import Region, weight_nodes

LEAST, SHARE = 1 << 20, 1.0
"""Bytes, and parts of a model, that its weights may grow by where nobody says otherwise."""
ROOM = 1
"""Times its own weights that a region may take besides, whatever its share: bytes that one kind of region takes for
little, another may miss."""


def allowed_growth(model: Model, options: Options) -> int:
    """Bytes."""
    return options.growth if options.growth >= 0 else max(LEAST, int(SHARE * total_bytes(model)))


@dataclass(frozen=True)
class Change:
    """Of the weights, when all regions of a kind are rewritten."""

    made: frozenset[Value]
    """That were not there."""
    dropped: frozenset[Value]
    bytes: int


class Growth:
    """Within a round of choices what some regions drop counts as gone, in hope that others which read it will drop it
    too; the next survey knows."""

    def __init__(self, allowed: int) -> None:
        self._allowed, self._chosen = allowed, 0
        self._first: dict[str, int] = {}
        self._now: dict[str, int] = {}
        self._there: set[Value] = set()
        self._dropped: set[Value] = set()
        self._own: dict[tuple[Value, ...], _Own] = {}
        """By the results of the first of a kind."""

    def survey(self, piece: Piece, where: str = "") -> None:
        """This is the graph, as it is now."""
        self._there = set(weights_read(piece))
        self._now[where] = bytes_of(self._there)
        self._first.setdefault(where, self._now[where])
        self._chosen = 0
        self._dropped.clear()
        self._own.clear()

    @property
    def left(self) -> int:
        """Bytes that the model may still grow by."""
        return self._allowed - sum(self._now[where] - first for where, first in self._first.items()) - self._chosen

    def fits(self, group: Sequence[Region], piece: Piece, share: float) -> bool:
        """Whether the model may grow by what it takes to compute these regions, which are alike, as `piece` does the
        first; and that is their share of what is left, or no more than `ROOM` times their weights."""
        own = self._own_of(group)
        after = weights_read(piece)
        made = bytes_of(v for v in after if v not in self._there)
        dropped = bytes_of(v for v in own.weights if v not in after and v not in self._dropped)
        added = own.copies * (made - dropped)
        return added <= 0 or added <= min(self.left, max(share * self.left, ROOM * own.copies * own.bytes))

    def change(self, group: Sequence[Region], piece: Piece) -> Change:
        first = group[0].piece
        before, after = weights_read(first), weights_read(piece)
        made: set[Value] = set()
        dropped: set[Value] = set()
        for region in group:
            there = _corresponding(first, region.piece, piece)
            made.update(there.get(v, v) for v in after)
            dropped.update(there.get(v, v) for v in before if v not in after)
        made -= self._there
        dropped -= self._dropped
        return Change(frozenset(made), frozenset(dropped), bytes_of(made) - bytes_of(dropped))

    def allows(self, change: Change) -> bool:
        return change.bytes <= max(0, self.left)

    def take(self, change: Change) -> None:
        self._chosen += change.bytes
        self._there |= change.made
        self._dropped |= change.dropped

    def _own_of(self, group: Sequence[Region]) -> _Own:
        first = group[0].piece
        if first.results not in self._own:
            weights = frozenset(weights_read(first))
            copies = len({frozenset(weights_read(region.piece)) for region in group})
            self._own[first.results] = _Own(weights, copies, bytes_of(weights))
        return self._own[first.results]


@dataclass(frozen=True)
class _Own:
    """Of a kind of region as it is."""

    weights: frozenset[Value]
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


def bytes_of(weights: Iterable[Value]) -> int:
    return sum(_size(value) for value in weights)


def _size(value: Value) -> int:
    if isinstance(value.producer, Constant):
        return value.producer.tensor.nbytes
    try:
        return combined_bytes([value])
    except CannotCombine:
        return 0  # then no model will be made of it
