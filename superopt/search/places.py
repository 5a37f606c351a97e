"""Nodes by the names that people know: their own, those of what they compute, with the way through bodies."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from superopt.errors import BadOption
from superopt.ir.graph import Graph, Label, Node
from superopt.normalize.journal import place_of
from superopt.search.bodies import bodies

NEAR = 5
"""Names to suggest."""


@dataclass(frozen=True)
class Place:
    graph: Graph
    node: Node
    label: Label
    where: str
    """The way through bodies to the graph, as the trace has it."""
    place: str
    """The node as passes have it."""

    @property
    def names(self) -> tuple[str, ...]:
        """How it may be asked for."""
        own = (self.label.name, *self.label.outputs)
        return (*(f"{self.where}{name}" for name in own if name), self.place)


def places(graph: Graph, where: str = "", passes_where: str = "") -> Iterator[Place]:
    """Every node of a graph and of its bodies."""
    for node in graph.nodes:
        label = graph.labels.get(node, Label())
        place = place_of(node, label, passes_where)
        yield Place(graph, node, label, where, place)
        for name, body, inner in bodies(graph, node, where):
            yield from places(body, inner, f"{place}/{name}/")


def find(graph: Graph, asked: str) -> list[Place]:
    """The nodes of that name; in bodies also without the way there, if no other node has it. Empty if there is none."""
    every = list(places(graph))
    whole = [p for p in every if asked in p.names]
    return whole or [p for p in every if asked in (p.label.name, *p.label.outputs)]


def refuse_unknown(graph: Graph, asked: str) -> None:
    names = dict.fromkeys(name for p in places(graph) for name in p.names)
    near = difflib.get_close_matches(asked, names, NEAR, cutoff=0.4)
    hint = f"; near it: {', '.join(near)}" if near else ""
    raise BadOption(f"--explain {asked}: no node has that name or computes a value of that name{hint}")
