"""Places for boxes and the lines between them: layers from top to bottom, few crossings, straight lines.

Layers by longest path; a line that passes layers has a place in each of them, shared with all lines from the same
source, so that a value read a hundred times runs down once. Order in a layer by the mean place of the neighbours, from
above and from below in turn; places by the same means, kept apart as far as the widths want (least squares under order,
which pooling neighbours that are in each other's way solves exactly). No chance anywhere: equal input, equal picture.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GAP = 22.0
"""Between neighbours in a layer."""

LANE = 10.0
"""Width of a line that passes."""

REACH = 40
"""Layers that a line may pass; beyond that it tells the eye nothing."""

SWEEPS = 4
SHY = 0.05
"""How little a box heeds a passing line, against a box."""

YIELDING = 0.1
"""How little a passing line insists on its place, against a box."""

NOTHING = 1e-6

HOMESICK = 0.02
"""How much everything is drawn to the middle, so that a long graph does not wander off to one side."""


@dataclass(frozen=True)
class Box:
    width: float
    height: float


@dataclass(frozen=True)
class Placed:
    """Centres of the boxes, lines as points from source to reader, and the size of it all.

    A line that would pass more than `REACH` layers has no points.
    """

    centres: tuple[tuple[float, float], ...]
    lines: Mapping[tuple[int, int], tuple[tuple[float, float], ...]]
    width: float
    height: float


def lay_out(boxes: Sequence[Box], lines: Sequence[tuple[int, int]], *, step: float = 30.0) -> Placed:
    """Lines lead from box to box, by position; they form no cycle, and each source comes before its readers.

    `step` is the room between layers.
    """
    if not boxes:
        return Placed((), {}, 0.0, 0.0)
    lines = sorted({(a, b) for a, b in lines})
    layers_of = _layers(len(boxes), lines)
    cells, links, routes = _with_lanes(boxes, lines, layers_of)
    layers: list[list[int]] = [[] for _ in range(max(layers_of) + 1)]
    for cell in range(len(cells)):
        layers[cells[cell].layer].append(cell)
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for a, b in links:
        below[a].append(b)
        above[b].append(a)
    _order(layers, above, below)
    xs = _places(layers, cells, above, below)
    tops, y = [0.0] * len(layers), 0.0
    for i, layer in enumerate(layers):
        height = max((cells[c].height for c in layer), default=0.0)
        tops[i] = y + height / 2
        y += height + step
    left = min(xs[c] - cells[c].width / 2 for c in range(len(cells)))
    right = max(xs[c] + cells[c].width / 2 for c in range(len(cells)))
    points = [(xs[c] - left, tops[cells[c].layer]) for c in range(len(cells))]
    return Placed(
        tuple(points[: len(boxes)]),
        {line: tuple(points[c] for c in route) for line, route in routes.items()},
        right - left,
        y - step,
    )


@dataclass(frozen=True)
class _Cell:
    """A box, or a line where it passes a layer."""

    width: float
    height: float
    layer: int
    lane: bool


def _layers(count: int, lines: Sequence[tuple[int, int]]) -> list[int]:
    """By longest path; but what hangs on no chain that is tight from its source on stands as low as its readers let it.

    So the work on a weight stands beside the node that reads the result, not at the top of the graph.
    """
    layers = [0] * count
    down = sorted(lines, key=lambda line: line[1])
    up = sorted(lines, key=lambda line: -line[0])
    for a, b in down:
        layers[b] = max(layers[b], layers[a] + 1)
    sources = {a for a, _ in lines}
    latest = [count if i in sources else layers[i] for i in range(count)]
    for a, b in up:
        latest[a] = min(latest[a], latest[b] - 1)
    anchored = [late == early for early, late in zip(layers, latest, strict=True)]
    for a, b in down:
        anchored[b] = anchored[b] or anchored[a]
    lowest = [count] * count
    for a, b in up:
        lowest[a] = min(lowest[a], layers[b] - 1)
        if not anchored[a]:
            layers[a] = lowest[a]
    return layers


def _with_lanes(
    boxes: Sequence[Box], lines: Sequence[tuple[int, int]], layers: Sequence[int]
) -> tuple[list[_Cell], list[tuple[int, int]], dict[tuple[int, int], list[int]]]:
    """Boxes and passing lines as cells, links between neighbouring layers, and each line's way over cells."""
    cells = [_Cell(box.width, box.height, layer, False) for box, layer in zip(boxes, layers, strict=True)]
    links: dict[tuple[int, int], None] = {}
    routes: dict[tuple[int, int], list[int]] = {}
    lanes: dict[tuple[int, int], int] = {}
    for a, b in lines:
        if layers[b] - layers[a] > REACH:
            routes[a, b] = []
            continue
        route = [a]
        for layer in range(layers[a] + 1, layers[b]):
            if (a, layer) not in lanes:
                lanes[a, layer] = len(cells)
                cells.append(_Cell(LANE, 0.0, layer, True))
            route.append(lanes[a, layer])
        route.append(b)
        routes[a, b] = route
        links |= dict.fromkeys(itertools.pairwise(route))
    return cells, list(links), routes


def _order(layers: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]) -> None:
    rank = {cell: float(i) for layer in layers for i, cell in enumerate(layer)}

    def arrange(layer: list[int], neighbours: Mapping[int, list[int]]) -> None:
        def mean(cell: int) -> float:
            near = neighbours.get(cell)
            return sum(rank[n] for n in near) / len(near) if near else rank[cell]

        layer.sort(key=lambda cell: (mean(cell), rank[cell]))
        rank.update({cell: float(i) for i, cell in enumerate(layer)})

    best, fewest = [list(layer) for layer in layers], _crossings(layers, below)
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            arrange(layer, above if down else below)
        _swap(layers, rank, above, below)
        found = _crossings(layers, below)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    layers[:] = best


def _swap(
    layers: Sequence[list[int]], rank: dict[int, float], above: Mapping[int, list[int]], below: Mapping[int, list[int]]
) -> None:
    """Exchange neighbours as long as fewer lines cross for it."""

    def between(left: int, right: int) -> int:
        return sum(
            rank[a] > rank[b] for side in (above, below) for a in side.get(left, ()) for b in side.get(right, ())
        )

    for _ in range(SWEEPS):
        moved = False
        for layer in layers:
            for i in range(len(layer) - 1):
                a, b = layer[i], layer[i + 1]
                if between(b, a) < between(a, b):
                    layer[i], layer[i + 1], moved = b, a, True
                    rank[a], rank[b] = float(i + 1), float(i)
        if not moved:
            return


def _crossings(layers: Sequence[Sequence[int]], below: Mapping[int, list[int]]) -> int:
    """Pairs of lines that cross, counted with a tree of sums."""
    total = 0
    for upper, lower in itertools.pairwise(layers):
        rank = {cell: i for i, cell in enumerate(lower)}
        ends = [rank[b] for a in upper for b in sorted(below.get(a, ()), key=rank.__getitem__)]
        tree = [0] * (len(lower) + 1)
        for seen, end in enumerate(ends):
            i, before = end + 1, 0
            while i > 0:
                before += tree[i]
                i -= i & -i
            total += seen - before
            i = end + 1
            while i <= len(lower):
                tree[i] += 1
                i += i & -i
    return total


def _places(
    layers: Sequence[Sequence[int]],
    cells: Sequence[_Cell],
    above: Mapping[int, list[int]],
    below: Mapping[int, list[int]],
) -> list[float]:
    xs = [0.0] * len(cells)
    for layer in layers:
        _settle(layer, cells, xs, [0.0] * len(layer), YIELDING)
    both = {cell: [*above.get(cell, ()), *below.get(cell, ())] for cell in range(len(cells))}
    for sweep in range(3 * SWEEPS):
        down = sweep % 2 == 0
        near = both if sweep >= SWEEPS else above if down else below
        home = HOMESICK if sweep < 2 * SWEEPS else 0.0
        for layer in layers if down else reversed(layers):
            wishes = [_wish(cell, near.get(cell, ()), cells, xs, home) for cell in layer]
            _settle(layer, cells, xs, wishes, YIELDING)
    for sweep in range(SWEEPS):  # lines straighten between boxes that stay where they are
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wishes = [_wish(c, both[c], cells, xs, 0.0) if cells[c].lane else xs[c] for c in layer]
            _settle(layer, cells, xs, wishes, NOTHING)
    return xs


def _wish(cell: int, near: Sequence[int], cells: Sequence[_Cell], xs: Sequence[float], home: float) -> float:
    """The mean of the neighbours. A box heeds boxes more than lines from far: so a trunk runs straight down."""
    weights = [SHY if cells[n].lane and not cells[cell].lane else 1.0 for n in near]
    pulls = sum(w * xs[n] for w, n in zip(weights, near, strict=True))
    return pulls / (sum(weights) + home) if near else xs[cell]


def _settle(
    layer: Sequence[int], cells: Sequence[_Cell], xs: list[float], wishes: Sequence[float], lane: float
) -> None:
    """Each as near to its wish as the others let it; a group that is in its own way moves as one.

    `lane` is the say of a line against that of a box.
    """
    offset, shift = 0.0, [0.0] * len(layer)
    for i in range(1, len(layer)):
        a, b = cells[layer[i - 1]], cells[layer[i]]
        offset += (a.width + b.width) / 2 + (LANE if a.lane and b.lane else GAP)
        shift[i] = offset
    groups: list[tuple[float, float, int]] = []
    for i, cell in enumerate(layer):
        weight = lane if cells[cell].lane else 1.0
        total, size = (wishes[i] - shift[i]) * weight, 1
        while groups and groups[-1][0] / groups[-1][1] > total / weight:
            other = groups.pop()
            total, weight, size = total + other[0], weight + other[1], size + other[2]
        groups.append((total, weight, size))
    i = 0
    for total, weight, size in groups:
        for _ in range(size):
            xs[layer[i]] = total / weight + shift[i]
            i += 1
