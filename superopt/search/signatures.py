"""The regions of a model as the clock sees them: equal ones together, with what they cost by prediction."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.cost.regions import RegionSubject
from superopt.rewrite.whole import piece_of
from superopt.search.bodies import graphs
from superopt.search.regions import Region, cut, is_open
from superopt.search.scales import Scales
from superopt.search.workshop import Workshop


@dataclass(frozen=True)
class Signature:
    """A kind of region: operators, wiring, types and sizes."""

    key: str
    region: Region
    """The first of its kind."""
    scales: Scales
    price: float
    """Predicted seconds of one of them."""
    count: int

    @property
    def value(self) -> float:
        """Predicted seconds of all of them: the part of a run that knowing its time explains."""
        return self.price * self.count

    def subject(self) -> RegionSubject:
        """Ready to be timed; its inputs are made now."""
        return self.scales.subject(self.region.piece, self.region)


@dataclass(frozen=True)
class Signed:
    """A model's signatures, and what the nodes cost by prediction that are in no region."""

    signatures: tuple[Signature, ...]
    besides: float

    @property
    def total(self) -> float:
        return self.besides + sum(s.value for s in self.signatures)


def signed(workshop: Workshop, scales: Scales) -> Signed:
    """Of all graphs of the model, bodies included, as the first round of a search cuts them."""
    rewriter = workshop.rewriter()
    kinds: dict[str, list[Region]] = {}
    total = 0.0
    for graph, where in graphs(workshop.tidied):
        total += scales.learner.predictor.region(graph, graph.outputs)
        for region in cut(piece_of(graph, rewriter.constants), is_open(rewriter), 0, where):
            kinds.setdefault(scales.key(region), []).append(region)
    found = tuple(_signature(key, group, scales) for key, group in kinds.items())
    return Signed(found, max(0.0, total - sum(s.value for s in found)))


def _signature(key: str, group: list[Region], scales: Scales) -> Signature:
    first = group[0]
    return Signature(key, first, scales, scales.price(first.piece, first), len(group))
