"""Stretches of a graph that are searched one by one.

A region is a run of nodes, in the graph's order, between narrow places: where few values cross, a transformer's layers
and a CNN's blocks begin and end. A run also ends where it begins to repeat itself, so that equal blocks give equal
regions. It never reaches over a barrier. Cutting again from another place, and every other time one node later, puts
neighbours together that the first cut kept apart; and as where a run repeats itself it ends at the same place again,
the last cuts go through the middle of the runs before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from superopt.ir.graph import Graph, Node, Parameter, Value, make_node, make_parameter, replace_inputs
from superopt.rewrite.piece import Piece, Rewritten, Tag, rewritten
from superopt.rewrite.rewriter import Rewriter

CAP = 48
"""Nodes of a region, at most."""
ENOUGH = 16
"""Nodes from which on a region takes in no further segments."""
WIDER = 2
"""Cuts from which on it takes in twice as many: two long segments then stand together, one way or the other."""
ACROSS = 4
"""Cuts from which on it is made of the second half of one region, as the cut two before makes them, and the first half
of the next."""
LEAST = 6
"""Nodes of a region that ends because it would repeat."""
NEAR = 10
"""How far around a narrow place nothing may be narrower."""


@dataclass(frozen=True)
class Region:
    """A run of nodes as a piece of its own: what it reads from outside are parameters."""

    piece: Piece
    members: tuple[Node, ...]
    """The graph's own nodes, in order."""
    outside: Mapping[Parameter, Value]
    results: tuple[Value, ...]
    """The graph's values that others need, in the order of the piece's results."""
    where: str = ""
    """The way through bodies to the graph."""
    final: tuple[int, ...] = ()
    """Which of the results are results of the graph."""

    @property
    def graph(self) -> Graph:
        return graph_of_region(self.piece, tuple(self.outside))


def graph_of_region(piece: Piece, inputs: tuple[Parameter, ...], nodes: tuple[Node, ...] = ()) -> Graph:
    """A piece as a graph to be priced; with the nodes behind its weights, also to be timed or named by structure."""
    return Graph(
        inputs, piece.results, (*nodes, *piece.members),
        tuple(f"in{k}" for k in range(len(inputs))), tuple(f"out{k}" for k in range(len(piece.results))),
    )  # fmt: skip


def weight_nodes(piece: Piece) -> tuple[Node, ...]:
    """The nodes that compute the piece's weights, each after what it reads."""
    found: dict[Node, None] = {}
    read = [v.producer for node in piece.members for v in node.operands]
    stack = [n for n in read if isinstance(n, Node) and piece.constants.is_weight(Value(n))]
    while stack:
        node = stack[-1]
        below = [v.producer for v in node.operands if isinstance(v.producer, Node) and v.producer not in found]
        if node in found or not below:
            found.setdefault(node)
            stack.pop()
        else:
            stack += below
    return tuple(found)


def cut(piece: Piece, is_open: Callable[[Node], bool], offset: int = 0, where: str = "") -> list[Region]:
    """Regions of at least two nodes; rules may touch the nodes that are open."""
    regions: list[Region] = []
    for level in levels(piece.nodes, is_open):
        segments = _segments(level)
        for members in _grouped(_later(segments) if offset % 2 else segments, offset):
            if len(members) > 1:
                regions.append(extract(piece, members, where))
    return regions


def is_open(rewriter: Rewriter) -> Callable[[Node], bool]:
    """Whether rules may touch a node."""
    return lambda node: not node.bodies and not isinstance(rewriter.reader.read(node), str)


def levels(nodes: Sequence[Node], is_open: Callable[[Node], bool]) -> list[list[Node]]:
    """Open nodes by how many barriers lie behind them: no path within a level leads through one.

    Counted from the end, what is read late stays with its readers: the projections of a first layer, or of an encoder's
    result, with the attention that also reads a mask made behind barriers.
    """
    behind: dict[Node, int] = {}
    levels: dict[int, list[Node]] = {}
    for node in reversed(nodes):
        behind.setdefault(node, 0)
        if is_open(node):
            levels.setdefault(behind[node], []).append(node)
        depth = behind[node] + (not is_open(node))
        for value in node.operands:
            if isinstance(value.producer, Node):
                behind[value.producer] = max(behind.get(value.producer, 0), depth)
    return [levels[k][::-1] for k in sorted(levels, reverse=True)]


def _segments(nodes: list[Node]) -> list[list[Node]]:
    """Runs that end where as few values as possible are alive. What lives longer than a region, such as the mask that
    every layer reads, leaves any of them and tells none from another."""
    first = {node: k for k, node in enumerate(nodes)}
    last: dict[Value, int] = {}
    for k, node in enumerate(nodes):
        for value in node.operands:
            if isinstance(value.producer, Node) and value.producer in first:
                last[value] = k
    last = {v: k for v, k in last.items() if k - first[v.producer] <= CAP}  # pyright: ignore[reportArgumentType]
    ends: dict[int, int] = {}
    for k in last.values():
        ends[k] = ends.get(k, 0) + 1
    alive, widths = 0, list[int]()
    for k, node in enumerate(nodes):
        alive += sum(1 for v in node.outputs if v in last)
        alive -= ends.get(k, 0)
        widths.append(alive)
    segments: list[list[Node]] = [[]]
    for k, node in enumerate(nodes):
        segments[-1].append(node)
        near = widths[max(0, k - NEAR) : k + NEAR + 1]
        if widths[k] == min(near) or len(segments[-1]) >= CAP:
            segments.append([])
    return _with_tails([s for s in segments if s])


def _with_tails(segments: list[list[Node]]) -> list[list[Node]]:
    """A node alone behind a longer run ends that run: a normalization or an activation behind a sum."""
    found: list[list[Node]] = []
    lone = True
    for segment in segments:
        lone = not lone and len(segment) == 1 and LEAST <= len(found[-1]) < CAP
        if lone:
            found[-1] = [*found[-1], *segment]
        else:
            found.append(segment)
    return found


def _later(segments: list[list[Node]]) -> list[list[Node]]:
    """The same runs, each one node later: a normalization that the next run begins with stands behind its sum."""
    nodes = [node for segment in segments for node in segment]
    ends = [min(end + 1, len(nodes)) for end in accumulate(map(len, segments))]
    return [nodes[start:end] for start, end in pairwise([0, *ends]) if start < end]


def _grouped(segments: list[list[Node]], offset: int) -> list[list[Node]]:
    groups = _across(_groups(segments, offset - 2)) if offset >= ACROSS else _groups(segments, offset)
    return [[node for segment in group for node in segment] for group in groups]


def _groups(segments: list[list[Node]], offset: int) -> list[list[list[Node]]]:
    """Neighbouring segments together, up to the cap, or until they repeat; an offset cuts off the first few."""
    enough = ENOUGH if offset < WIDER else 2 * ENOUGH
    groups: list[list[list[Node]]] = [segments[:offset], []]
    first: object = None
    for segment in segments[offset:]:
        kind = tuple((node.kind, node.types) for node in segment)
        size = sum(map(len, groups[-1]))
        if size and (size + len(segment) > CAP or size >= enough or (kind == first and size >= LEAST)):
            groups.append([])
        if not groups[-1]:
            first = kind
        groups[-1].append(segment)
    return [g for g in groups if g]


def _across(groups: list[list[list[Node]]]) -> list[list[list[Node]]]:
    """The same segments, those on both sides of an end together, up to the cap."""
    found: list[list[list[Node]]] = [[]]
    for first, second in map(_halves, groups):
        if sum(map(len, (*found[-1], *first))) > CAP:
            found.append([])
        found[-1] += first
        found.append(second)
    return [group for group in found if group]


def _halves(group: list[list[Node]]) -> tuple[list[list[Node]], list[list[Node]]]:
    """Cut where a segment ends, as near to the middle as may be."""
    ends = list(accumulate(map(len, group)))
    middle = min(range(len(group)), key=lambda k: abs(2 * ends[k] - ends[-1]))
    return group[: middle + 1], group[middle + 1 :]


def extract(piece: Piece, members: Iterable[Node], where: str = "") -> Region:
    """The members as a region; weight-only nodes that they read come along."""
    members = tuple(members)
    inside = set(members)
    wanted = set(piece.results)
    outside: dict[Parameter, Value] = {}
    moved: dict[Value, Value] = {}
    tags: dict[Node, Tag] = {}
    names: dict[str, Value] = {}

    def name(old: Value, new: Value) -> None:
        if old in piece.called:
            names[piece.called[old]] = new

    def seen(value: Value) -> Value:
        if value in moved:
            return moved[value]
        if piece.constants.is_weight(value):
            moved[value] = value
        else:
            parameter = make_parameter(len(outside), value.type)
            outside[parameter] = value
            moved[value] = Value(parameter)
        name(value, moved[value])
        return moved[value]

    results: list[Value] = []
    for node in members:
        inputs = [None if v is None else seen(v) for v in node.inputs]
        new = make_node(node.op, inputs, node.attributes, node.types, domain=node.domain, instance=node.instance)
        if node in piece.tags:
            tags[new] = piece.tags[node]
        for old, value in zip(node.outputs, new.outputs, strict=True):
            moved[old] = value
            name(old, value)
            if old in wanted or any(reader not in inside for reader in piece.reading(old)):
                results.append(old)
    inner = Piece(tuple(moved[v] for v in results), tags, names, piece.constants, piece.own)
    final = tuple(k for k, value in enumerate(results) if value in wanted)
    return Region(inner, members, outside, tuple(results), where, final)


def stitch(piece: Piece, region: Region, inner: Piece, taken: Container[str] = frozenset()) -> Rewritten:
    """The piece with the region's results computed as `inner` says."""
    moved: dict[Value, Value] = {Value(parameter): value for parameter, value in region.outside.items()}
    tags: dict[Node, Tag] = dict(piece.tags)
    names = dict(piece.names)
    for node in inner.nodes:
        new = replace_inputs(node, (v and moved.get(v, v) for v in node.inputs), ())
        if node in inner.tags:
            tags.setdefault(new, inner.tags[node])
        for before, after in zip(node.outputs, new.outputs, strict=True):
            moved[before] = after
            if before in inner.called:
                names[inner.called[before]] = after
    whole = replace(piece, tags=tags, names=names)
    replaced = {old: moved.get(v, v) for old, v in zip(region.results, inner.results, strict=True)}
    return rewritten(whole, replaced, "", taken)
