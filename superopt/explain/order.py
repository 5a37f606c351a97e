"""A difference as a sequence to read: changed regions where they belong, unchanged stretches between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from superopt.explain.difference import Difference
from superopt.explain.regions import Region
from superopt.ir.graph import Node


@dataclass(frozen=True)
class Stretch:
    """Nodes that are in both graphs, in the order of the first; given as they are there."""

    nodes: tuple[Node, ...]


def in_order(difference: Difference) -> Iterator[Region | Stretch]:
    """Each region once, at its first node; one that is new stands after what it reads."""
    positions = {node: i for i, node in enumerate(difference.before.nodes, 1)}
    places: dict[int, list[Region]] = {}
    for region in difference.regions:
        places.setdefault(_place(difference, region, positions), []).append(region)
    quiet: list[Node] = []
    for i, node in enumerate((None, *difference.before.nodes)):
        if node is not None and difference.statuses[0][node] == "kept":
            quiet.append(node)
        if i in places:
            if quiet:
                yield Stretch(tuple(quiet))
                quiet = []
            yield from places[i]
    if quiet:
        yield Stretch(tuple(quiet))


def _place(difference: Difference, region: Region, positions: Mapping[Node, int]) -> int:
    """Position of the node after which it is told, counted from 1; 0 is the start."""
    if region.before:
        return min(positions[node] for node in region.before)
    back = difference.matching.back
    read = (value.node for node in region.after for value in node.operands if value.node is not None)
    return max((positions[back[node]] for node in read if node in back), default=0)
