"""Seconds of a region, predicted from its nodes: what ranks candidates before the clock decides among the best."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from itertools import chain

from superopt.cost import traffic
from superopt.cost.coefficients import PRIORS, Coefficients
from superopt.cost.columns import Amounts, Column
from superopt.cost.features import amounts
from superopt.cost.fit import OF_REGIONS, Observation, fit
from superopt.cost.fusions import ALONE, roles
from superopt.cost.kinds import is_view
from superopt.cost.layouts import movements
from superopt.cost.manner import ON_A_CPU, Manner
from superopt.cost.measures import Measures
from superopt.cost.weights import is_weight_only
from superopt.ir.graph import Graph, Node, Value


class Predictor:
    """Prices nodes at the given sizes of symbolic dims.

    Nodes are hash-consed, so a candidate that shares most of its nodes with those priced before costs little more than
    walking over it.
    """

    def __init__(
        self,
        sizes: Mapping[str, int] | None = None,
        coefficients: Coefficients = PRIORS,
        manner: Manner = ON_A_CPU,
    ) -> None:
        """`manner`: how the device runs them."""
        self._measures = Measures(dict(sizes or {}))
        self._start = self._coefficients = coefficients
        self._manner = manner
        self._counted: weakref.WeakKeyDictionary[Node, dict[str, Amounts]] = weakref.WeakKeyDictionary()
        self._priced: weakref.WeakKeyDictionary[Node, dict[str, float]] = weakref.WeakKeyDictionary()

    @property
    def coefficients(self) -> Coefficients:
        return self._coefficients

    def region(self, graph: Graph, given: Iterable[Value] = ()) -> float:
        """Seconds of the nodes that run; weight-only ones are free. What is `given` are results of a whole model."""
        running, played = self._running(graph)
        return sum(self.node(n, played.get(n, ALONE)) for n in running) + self._coefficients.price(self._copies(given))

    def exchanged(
        self, before: Graph, after: Graph, given_before: Iterable[Value] = (), given_after: Iterable[Value] = ()
    ) -> tuple[float, float]:
        """Seconds of the work that `after` no longer asks for, and of what it asks for besides: what both ask for is
        equally mispriced on both sides."""
        old, new = dict(self.amounts(before, given_before)), dict(self.amounts(after, given_after))
        changes = [self._coefficients.of(c) * (new.get(c, 0.0) - old.get(c, 0.0)) for c in sorted({*old, *new})]
        return -sum(c for c in changes if c < 0.0), sum(c for c in changes if c > 0.0)

    def node(self, node: Node, role: str = ALONE) -> float:
        """Seconds of one node, as the runtime executes it where it stands (see fusions.py)."""
        priced = self._priced.get(node)
        if priced is None:
            priced = self._priced[node] = {}
        seconds = priced.get(role)
        if seconds is None:
            seconds = priced[role] = self._coefficients.price(self._amounts(node, role))
        return seconds

    def amounts(self, graph: Graph, given: Iterable[Value] = ()) -> Amounts:
        """What the region's nodes ask of the device, added up."""
        running, played = self._running(graph)
        asked = [self._amounts(node, played.get(node, ALONE)) for node in running]
        total: dict[Column, float] = {}
        for column, amount in chain(*asked, self._copies(given)):
            total[column] = total.get(column, 0.0) + amount
        return tuple(sorted(total.items()))

    def _copies(self, given: Iterable[Value]) -> Amounts:
        return tuple(chain.from_iterable(traffic.copied(v, self._measures) for v in given if is_view(v)))

    def refit(self, observations: Iterable[tuple[Graph, float]]) -> None:
        """Learns from all measured regions so far, given with their seconds; it starts from the same point each time,
        so that the same measurements give the same prices however often they came in."""
        seen = [Observation(self.amounts(graph), seconds) for graph, seconds in observations]
        self._coefficients = fit(seen, self._start, OF_REGIONS)
        self._priced.clear()

    def _running(self, graph: Graph) -> tuple[list[Node], dict[Node, str]]:
        running, played = _running(graph, self._manner)
        added, dropped = movements(running, graph.outputs, self._manner.images)
        kept = [node for node in running if node not in dropped] if dropped else running
        return [*kept, *added], played

    def _amounts(self, node: Node, role: str) -> Amounts:
        counted = self._counted.get(node)
        if counted is None:
            counted = self._counted[node] = {}
        found = counted.get(role)
        if found is None:
            found = counted[role] = amounts(node, self._measures, role)
        return found


def _running(graph: Graph, manner: Manner) -> tuple[list[Node], dict[Node, str]]:
    """The nodes that run, and the roles of those that do not stand alone; what nobody reads is dropped anyway."""
    uses: dict[Value, int] = {}
    read: set[object] = set()
    for value in graph.outputs:
        uses[value] = uses.get(value, 0) + 1
        read.add(value.producer)
    running: list[Node] = []
    for node in reversed(graph.nodes):
        if node not in read or is_weight_only(node):
            continue
        running.append(node)
        for value in node.operands:
            uses[value] = uses.get(value, 0) + 1
            read.add(value.producer)
    running.reverse()
    return running, roles(running, uses, manner)
