"""What was done to a model, told so that anybody can do it again: regions by the names of their nodes, steps by names.

A replay believes nothing: rules must be proved as they stand, and every step must match where it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from superopt.errors import CannotReplay
from superopt.ir.graph import Node
from superopt.report import OwnRule, TracedRegion, TracedStep
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Step, Taken
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import format_rule
from superopt.search.regions import Region, extract, stitch


@dataclass(frozen=True)
class Traced:
    """A region and the steps taken in it."""

    members: tuple[str, ...]
    """Each node by its first named output."""
    steps: tuple[Step, ...]
    where: str = ""
    kind: int = 0
    """Equal regions share one number."""


Watch = Callable[[Taken], None]


def _unwatched(_: Taken) -> None:
    """Most replays are for the result alone."""


def name_of(node: Node, piece: Piece) -> str:
    """The first named output of a node."""
    return next((name for name in piece.tags[node].outputs if name), "")


def traced(region: Region, piece: Piece, steps: Sequence[Step], kind: int) -> Traced:
    return Traced(tuple(name_of(node, piece) for node in region.members), tuple(steps), region.where, kind)


def replay_one(
    piece: Piece, record: Traced, rules: Rules, rewriter: Rewriter, strict: bool = False, watch: Watch = _unwatched
) -> Piece:
    """The steps of one region again; raises `CannotReplay` at the first that does not hold.

    `strict`: each step must also be told in the words in which it would be told now. `watch` sees each as it is taken.
    """
    members = _members(piece, record)
    if strict and {name_of(node, piece) for node in members} != set(record.members):
        raise CannotReplay(f"region {record.kind}: its nodes are not told by their first outputs")
    region = extract(piece, members, record.where)
    inner = region.piece
    for step in record.steps:
        place = f"{step.rule} at {record.where}{', '.join(step.results)}"
        pattern = rules.patterns.get(step.rule)
        if pattern is None:
            raise CannotReplay(f"{place}: no proved rule of this name")
        found = rewriter.find(inner, pattern, step)
        if isinstance(found, str):
            raise CannotReplay(f"{place}: {found}")
        taken = rewriter.take(inner, *found, piece.names)
        if strict and taken.step != step:
            raise CannotReplay(f"{place}: it is told with the inputs {_shown(step)}, they are {_shown(taken.step)}")
        watch(taken)
        inner = taken.after
    return stitch(piece, region, inner, piece.names).piece


def replay_some(piece: Piece, record: Traced, rules: Rules, rewriter: Rewriter) -> tuple[Piece, Traced]:
    """Those of the steps that still find their place, without those before them that do not; and which they are."""
    region = extract(piece, _members(piece, record), record.where)
    inner, done = region.piece, list[Step]()
    for step in record.steps:
        found = rewriter.find(inner, rules.patterns[step.rule], step)
        if not isinstance(found, str):
            taken = rewriter.take(inner, *found, piece.names)
            inner = taken.after
            done.append(taken.step)
    return stitch(piece, region, inner, piece.names).piece, replace(record, steps=tuple(done))


def _shown(step: Step) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(step.inputs.items()))


def _members(piece: Piece, record: Traced) -> list[Node]:
    """The region's nodes in the graph's order; together they must be a region that rules may touch."""
    wanted = set(record.members)
    found = [node for node in piece.nodes if not wanted.isdisjoint(piece.tags[node].outputs)]
    names = {name for node in found for name in piece.tags[node].outputs}
    if missing := wanted - names:
        raise CannotReplay(f"there is no node that computes {sorted(missing)[0]}")
    refuse_detours(piece, found)
    return found


def refuse_detours(piece: Piece, members: Sequence[Node]) -> None:
    """No path may leave the region and come back; one that does lies between its first node and its last."""
    inside = set(members)
    tainted: set[Node] = set()
    places = [piece.position(node) for node in inside]
    for node in piece.nodes[min(places, default=0) : max(places, default=-1) + 1]:
        below = [v.producer for v in node.operands if isinstance(v.producer, Node)]
        if node in inside:
            if any(n in tainted for n in below):
                raise CannotReplay("the nodes of a region are no region: a path leaves it and comes back")
        elif any(n in inside or n in tainted for n in below):
            tainted.add(node)


def told(record: Traced, digests: Mapping[str, str]) -> TracedRegion:
    """A region's record as the report has it."""
    steps = [
        TracedStep(rule=s.rule, digest=digests[s.rule], results=list(s.results), inputs=dict(s.inputs))
        for s in record.steps
    ]
    return TracedRegion(where=record.where, region=record.kind, members=list(record.members), steps=steps)


def own_rules_used(trace: Iterable[Traced], rules: Mapping[str, Rule], digests: Mapping[str, str]) -> list[OwnRule]:
    """The rules of a trace that no file has."""
    names = dict.fromkeys(step.rule for record in trace for step in record.steps)
    return [OwnRule(name=name, digest=digests[name], text=format_rule(rules[name])) for name in names if name in rules]


def heard(record: TracedRegion) -> Traced:
    """The inverse of `told`."""
    steps = tuple(Step(s.rule, tuple(s.results), s.inputs) for s in record.steps)
    return Traced(tuple(record.members), steps, record.where, record.region)
