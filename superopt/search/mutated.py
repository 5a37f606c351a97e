"""Where in a graph mutants may stand: rules that began as mutants, at the places of the programs they are about.

Such a program may reach over the whole graph, as a head that several levels of a pyramid share does, so its nodes are a
region of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def mutated_regions(piece: Piece, where: str, rules: Rules, rewriter: Rewriter, scales: Scales) -> Iterator[Offer]:
    """Regions that have no node in common; those that differ in their weights alone with what mutants make of the first
    of them."""
    partial = [rules.patterns[name] for name, rule in rules.patterns.rules.items() if rule.is_partial]
    patterns = [pattern for pattern in partial if pattern.roots]
    inside: set[Node] = set()
    known: dict[str, Sequence[Candidate]] = {}
    for place in places(piece, rewriter) if patterns else ():
        if not inside.isdisjoint(place.around) or not is_region(piece, place.around):
            continue
        region = extract(piece, place.around, where)
        kind = scales.structure(region)
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
