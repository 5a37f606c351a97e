"""Where in a graph mutants may stand: rules that began as mutants, at the places of the programs they are about.

Such a program may reach over the whole graph, as a head that several levels of a pyramid share does, so its nodes are a
region of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Sequence

from superopt.errors import CannotReplay
from superopt.ir.graph import Node
from superopt.partial.lift import Place, places
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.search.candidate import Candidate
from superopt.search.regions import Region, extract
from superopt.search.scales import Scales
from superopt.search.trace import refuse_detours

Offer = tuple[Region, Sequence[Candidate]]
"""A region with what mutants make of it, itself first."""


def mutated_in_turns(
    piece: Piece, where: str, rules: Rules, rewriter: Rewriter, scales: Scales, is_kept: Callable[[str], bool]
) -> Iterator[list[Offer]]:
    """Regions that mutants may stand in, turn by turn. `is_kept` tells of a kind of region, when the turn is over,
    whether a mutant stands there now; where none does, the nodes are free again for smaller programs."""
    taken: set[Node] = set()
    refused: set[str] = set()
    while found := list(mutated_regions(piece, where, rules, rewriter, scales, taken=taken, refused=refused)):
        yield found
        kinds = [scales.structure(region) for region, _ in found]
        refused_now = {kind for kind in kinds if not is_kept(kind)}
        if not refused_now:
            break
        refused |= refused_now
        for (region, _), kind in zip(found, kinds, strict=True):
            taken.update(region.members if kind not in refused else ())


def mutated_regions(
    piece: Piece,
    where: str,
    rules: Rules,
    rewriter: Rewriter,
    scales: Scales,
    *,
    taken: Collection[Node] = (),
    refused: Container[str] = (),
) -> Iterator[Offer]:
    """Regions that have no node in common; those that differ in their weights alone with what mutants make of the first
    of them. None has a node that is `taken`, or is of a kind of region that was `refused`."""
    partial = [rules.patterns[name] for name, rule in rules.patterns.rules.items() if rule.is_partial]
    patterns = [pattern for pattern in partial if pattern.roots]
    inside = set(taken)
    known: dict[str, Sequence[Candidate]] = {}
    for place in places(piece, rewriter) if patterns else ():
        if not inside.isdisjoint(place.around) or not is_region(piece, place.around):
            continue
        region = extract(piece, place.around, where)
        kind = scales.structure(region)
        if kind in refused:
            continue
        if kind not in known:
            known[kind] = [c for c in candidates_of(region, patterns, rewriter, scales) if _is_about(c, place)]
        if known[kind]:
            inside.update(place.around)
            yield region, [Candidate(region.piece, scales.price(region.piece, region), ()), *known[kind]]


def _is_about(candidate: Candidate, place: Place) -> bool:
    """Whether the mutant is one of the whole program, and not of an operator of it: that has a place of its own."""
    (step,) = candidate.steps
    return len(step.match.nodes) == len(place.nodes)


def candidates_of(
    region: Region, patterns: Sequence[Pattern], rewriter: Rewriter, scales: Scales
) -> Iterator[Candidate]:
    for pattern in patterns:
        for node in region.piece.nodes:
            for match in rewriter.matches(pattern, node, region.piece):
                taken = rewriter.take(region.piece, *match)
                yield Candidate(taken.after, scales.price(taken.after, region), (taken,))


def is_region(piece: Piece, nodes: Sequence[Node]) -> bool:
    """Whether no path leaves the nodes and comes back."""
    try:
        refuse_detours(piece, nodes)
    except CannotReplay:
        return False
    return True
