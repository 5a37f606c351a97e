"""The steps found in one region, taken in another that is equal to it but for its weights."""

from __future__ import annotations

from collections.abc import Container, Sequence

from superopt.ir.graph import Node, Value
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken


def follow(
    steps: Sequence[Taken], source: Piece, target: Piece, rewriter: Rewriter, taken: Container[str]
) -> tuple[Taken, ...] | None:
    """The same steps from `target`; None where one of them does not fit there."""
    here: dict[Value, Value] = {}
    for a, b in zip(source.results, target.results, strict=True):
        if not _pair(a, b, here):
            return None
    found: list[Taken] = []
    for step in steps:
        nodes = tuple(_node(here, n) for n in step.match.nodes)
        root = nodes[step.match.pattern.roots[0]]
        if root is None:
            return None
        pattern, piece = step.match.pattern, found[-1].after if found else target
        wanted = {name: here[v] for name, v in step.match.inputs.items() if v in here}
        fitting = [m for m in rewriter.matches(pattern, root, piece) if m[0].nodes == nodes]
        match = next((m for m in fitting if wanted.items() <= dict(m[0].inputs).items()), None)
        if match is None:
            return None
        twin = rewriter.take(piece, *match, taken)
        for name, value in step.made.items():
            if not _pair(value, twin.made[name], here):
                return None
        moved = {step.moved.get(a, a): twin.moved.get(b, b) for a, b in here.items()}
        here.update(moved)
        found.append(twin)
    return tuple(found)


def _node(here: dict[Value, Value], node: Node) -> Node | None:
    found = here.get(Value(node))
    return None if found is None else found.node


def _pair(a: Value, b: Value, here: dict[Value, Value]) -> bool:
    """Pair two values and all that they are computed from, as long as both sides have one structure."""
    stack = [(a, b)]
    while stack:
        left, right = stack.pop()
        if left in here:
            continue
        if left.index != right.index:
            return False
        here[left] = right
        if isinstance(left.producer, Node):
            if not isinstance(right.producer, Node) or left.producer.op != right.producer.op:
                return False
            here.update(zip(left.producer.outputs, right.producer.outputs, strict=True))
            inputs = zip(left.producer.inputs, right.producer.inputs, strict=True)
            stack += [(x, y) for x, y in inputs if x is not None and y is not None]
    return True
