"""The graphs of a model: its own and the bodies of its nodes, each with the way there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from superopt.ir.graph import Graph, Label, Node


def graphs(graph: Graph, where: str = "") -> Iterator[tuple[Graph, str]]:
    """The graph and all bodies in it, outer first."""
    yield graph, where
    for node in graph.nodes:
        for _, body, place in bodies(graph, node, where):
            yield from graphs(body, place)


def bodies(graph: Graph, node: Node, where: str) -> list[tuple[str, Graph, str]]:
    """A node's bodies by the names of their attributes, each with the way there: `outer/attribute/`."""
    found = [(name, value) for name, value in node.attributes if isinstance(value, Graph)]
    if not found:
        return []
    place = _place(graph, node)
    return [(name, body, f"{where}{place}/{name}/") for name, body in found]


def _place(graph: Graph, node: Node) -> str:
    """The node's name, if no other node with bodies has it; outputs have names of their own in any case."""
    label = graph.labels.get(node, Label())
    names = Counter(graph.labels[n].name for n in graph.nodes if n.bodies and n in graph.labels)
    if label.name and names[label.name] == 1:
        return label.name
    return next((name for name in label.outputs if name), node.op)
