"""What candidates have in common that are variations on one theme: of those the clock tells little.

Views cost nothing, and it matters little by which operator a product or a function of elements is spelled; but the same
product of other sizes is another theme, as after a change of the order in which three matrices are multiplied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from superopt.cost.kinds import KINDS
from superopt.ir.graph import Node

Theme: TypeAlias = frozenset[tuple[tuple[str, int], int]]

SMALL = 5
"""Powers of two below the largest result from which on what an element-wise operator gives is too small to matter."""


def theme(members: Iterable[Node]) -> Theme:
    """Operators and about how much each gives, with how many there are of each."""
    working = [(_kind(node), _size(node)) for node in members if KINDS.get(node.op) != "view"]
    least = max((size for _, size in working), default=0) - SMALL
    return frozenset(Counter((kind, n) for kind, n in working if kind != _ELEMENTS or n >= least).items())


def _kind(node: Node) -> str:
    """By what an operator is like: a Relu that is spelled as Max, or a mean as a sum, is no other idea."""
    kind = KINDS.get(node.op, "function")
    if kind in ("product", "einsum"):
        return "product"
    if kind == "function":
        return _ELEMENTS
    return "reduction" if node.op.startswith("Reduce") else node.kind


_ELEMENTS = "element-wise"


def _size(node: Node) -> int:
    """Of the first result, as a power of two; 0 where it is not known."""
    known = node.outputs[0].tensor_type if node.types else None
    shape = None if known is None else known.shape
    if shape is None or not all(isinstance(n, int) for n in shape):
        return 0
    return prod(n for n in shape if isinstance(n, int)).bit_length()
