"""The graphs of a model for looking at: its own, and the bodies of its nodes with the constants they read outside."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.ir.graph import Graph, Value
from superopt.normalize.builder import substitute


def graphs(graph: Graph) -> Iterator[Graph]:
    """The graph and all bodies in it, outer first. In a body, a constant of the graph around it is one of its own."""
    yield graph
    for node in graph.nodes:
        for body in node.bodies:
            seen = {Value(p): node.captured[p.position] for p in body.captures}
            known = {inner: outer for inner, outer in seen.items() if outer.constant is not None}
            yield from graphs(substitute(body, known)[0] if known else body)
