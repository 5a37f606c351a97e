"""A graph that the search found in a region."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from superopt.ir.graph import Node
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Taken
from superopt.search.themes import Theme, theme


@dataclass(frozen=True, eq=False)
class Candidate:
    """A graph that computes the same, what it is predicted to cost, and how to get there."""

    piece: Piece
    cost: float
    steps: tuple[Taken, ...]
    fresh: frozenset[Node] = frozenset()
    """Nodes that the last steps made without paying; empty when the last step paid."""
    climb: int = 0

    @cached_property
    def theme(self) -> Theme:
        return theme(self.piece.members)
