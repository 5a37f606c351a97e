"""Parts of a graph that one operator may take the place of: grown upwards from their last node, around anchors.

A part is closed: whatever it computes is read inside it alone, except its results, of which there is the last node's
and at most one more. So it is convex, and may be replaced.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from superopt.ir.graph import Node, Value
from superopt.rewrite.piece import Piece
from superopt.rewrite.reading import Reading
from superopt.rewrite.rewriter import Rewriter

ANCHORS = frozenset(
    [
        "Softmax",
        "LogSoftmax",
        "Erf",
        "Tanh",
        "ReduceMean",
        "ReduceSum",
        "Sqrt",
        "Sigmoid",
        "MatMul",
        "Gemm",
        "Conv",
        "Transpose",
        "Exp",
        "Log",
        "Clip",
        "Pow",
        "Concat",
        "HardSigmoid",
        "Softplus",
        "Relu",
        "Reshape",
    ]
)
"""Operators that what is worth recognizing has at least one of."""
MOST_NODES = 24
MOST_INPUTS = 4
"""Values that a part reads, besides weights and numbers."""
MOST_OPEN = 7
"""Values that it may read while it grows."""
MOST_PARTS = 1_200
"""For one last node, those that read the least first."""
MOST_OUTPUTS = 2
DEPTH = 14
"""Nodes above the last one that agree where two of them are grown only once."""


@dataclass(frozen=True)
class Cut:
    nodes: tuple[Node, ...]
    """Each after what it reads."""
    inputs: tuple[Value, ...]
    """Values that are not known before the model runs."""
    outputs: tuple[Value, ...]


class Grower:
    """Grows the parts of one graph."""

    def __init__(self, piece: Piece, rewriter: Rewriter, anchors: frozenset[str] = ANCHORS) -> None:
        self.piece, self.rewriter, self.anchors = piece, rewriter, anchors
        self.members = frozenset(piece.nodes)
        self._signatures: dict[tuple[Value, int], str] = {}
        self._readable: dict[Node, bool] = {}

    def cuts(self) -> Iterator[Cut]:
        """Parts with an anchor; those of equal surroundings, such as the layers of a transformer, once."""
        seen: set[str] = set()
        for root in self.piece.nodes:
            if not self._is_readable(root) or len(root.types) != 1:
                continue
            signature = self._signature(root.outputs[0], DEPTH)
            if signature not in seen:
                seen.add(signature)
                yield from self._grown(root)

    def _grown(self, root: Node) -> Iterator[Cut]:
        start = frozenset([root])
        queue: list[tuple[int, int, int, frozenset[Node]]] = [(0, 1, 0, start)]
        seen = {start}
        count = 0
        while queue and count < MOST_PARTS:
            *_, nodes = heapq.heappop(queue)
            count += 1
            inputs = self._inputs(nodes)
            if len(inputs) <= MOST_INPUTS and len(nodes) > 1 and any(n.op in self.anchors for n in nodes):
                ordered = tuple(sorted(nodes, key=self.piece.position))
                yield Cut(ordered, tuple(inputs), self._outputs(nodes, root))
            if len(nodes) == MOST_NODES:
                continue
            for value in inputs:
                producer = value.producer
                if not isinstance(producer, Node) or not self._may_join(producer, nodes, root):
                    continue
                wider = nodes | {producer}
                reads = len(self._inputs(wider))
                if wider not in seen and reads <= MOST_OPEN:
                    seen.add(wider)
                    heapq.heappush(queue, (reads, len(wider), len(seen), wider))

    def _inputs(self, nodes: frozenset[Node]) -> dict[Value, None]:
        found: dict[Value, None] = {}
        for node in sorted(nodes, key=self.piece.position):
            for value in node.operands:
                if value.producer not in nodes and not self.piece.constants.is_weight(value):
                    found[value] = None
        return found

    def _outputs(self, nodes: frozenset[Node], root: Node) -> tuple[Value, ...]:
        further = [v for n in nodes if n is not root for v in n.outputs if self._leaves(v, nodes)]
        return (*root.outputs, *sorted(further, key=lambda v: self.piece.position(v.producer)))  # pyright: ignore[reportArgumentType]

    def _leaves(self, value: Value, nodes: frozenset[Node]) -> bool:
        return value in self.piece.results or any(n not in nodes for n in self.piece.reading(value))

    def _may_join(self, node: Node, nodes: frozenset[Node], root: Node) -> bool:
        if node not in self.members or not self._is_readable(node):
            return False
        outside = [v for v in node.outputs if self._leaves(v, nodes)]
        if not outside:
            return True
        if len(node.types) > 1 or len(self._outputs(nodes, root)) >= MOST_OUTPUTS:
            return False
        return not any(self._returns(reader, nodes) for reader in self.piece.reading(outside[0]) if reader not in nodes)

    def _returns(self, reader: Node, nodes: frozenset[Node]) -> bool:
        """Whether what a node outside computes is read inside, after however many steps."""
        last = max(map(self.piece.position, nodes))
        stack, seen = [reader], {reader}
        while stack:
            for value in stack.pop().outputs:
                for node in self.piece.reading(value):
                    if node in nodes:
                        return True
                    if node not in seen and self.piece.position(node) < last:
                        seen.add(node)
                        stack.append(node)
        return False

    def _is_readable(self, node: Node) -> bool:
        """Whether it has a formula, and reads no number that is none, such as the −∞ of a mask, which formulas lack."""
        if node not in self._readable:
            fills = [self.piece.constants.fill(v) for v in node.operands if self.piece.constants.is_weight(v)]
            self._readable[node] = isinstance(self.rewriter.reader.read(node), Reading) and all(
                fill is None or isfinite(fill) for fill in fills
            )
        return self._readable[node]

    def _signature(self, value: Value, depth: int) -> str:
        """The same for values that are computed, and read, in the same way so far up."""
        key = value, depth
        if key not in self._signatures:
            parts: list[object] = [self.rewriter.sizes.shape(value), len(self.piece.reading(value))]
            node = value.producer
            if isinstance(node, Node) and node in self.members and depth:
                parts += [node.kind, value.index, node.attributes]
                parts += [None if v is None else self._signature(v, depth - 1) for v in node.inputs]
            elif self.piece.constants.is_weight(value):
                parts += ["weight", self.piece.constants.fill(value), self.piece.constants.integers(value)]
            self._signatures[key] = hashlib.sha256(repr(parts).encode()).hexdigest()
        return self._signatures[key]
