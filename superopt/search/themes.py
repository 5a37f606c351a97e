"""What candidates have in common that are variations on one theme: of those the clock tells little.

Views cost nothing, and it matters little by which operator a product is spelled; but the same product of other sizes is
another theme, as after a change of the order in which three matrices are multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from superopt.cost.kinds import KINDS
from superopt.ir.graph import Node

Theme: TypeAlias = frozenset[tuple[tuple[str, int], int]]

_ALIKE = {"product": "product", "einsum": "product"}


def theme(members: Iterable[Node]) -> Theme:
    """Operators and about how much each gives, with how many there are of each."""
    working = (node for node in members if KINDS.get(node.op) != "view")
    return frozenset(Counter((_ALIKE.get(KINDS.get(n.op, ""), n.kind), _size(n)) for n in working).items())


def _size(node: Node) -> int:
    """Of the first result, as a power of two; 0 where it is not known."""
    known = node.outputs[0].tensor_type if node.types else None
    shape = None if known is None else known.shape
    if shape is None or not all(isinstance(n, int) for n in shape):
        return 0
    return prod(n for n in shape if isinstance(n, int)).bit_length()
