"""Search a whole graph: region by region, equal ones once; predict, time the promising, learn, and keep what pays.

Rounds cut the graph in different places. A round's gains are stitched in before the next one cuts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from superopt.cost.predict import Predictor
from superopt.cost.regions import region_subject
from superopt.cost.structure import structure
from superopt.cost.timer import RegionTimer
from superopt.ir.graph import Node, Value
from superopt.ir.onnx import Model
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.rewrite.weights import combined_bytes
from superopt.rewrite.whole import weight_bytes
from superopt.search.explore import Candidate, Limits, explore
from superopt.search.follow import follow
from superopt.search.learning import Learner
from superopt.search.regions import Region, cut, extract, graph_of_region, stitch, weight_nodes
from superopt.search.trace import Traced, traced

ROUNDS = 4
MEASURED = 6
"""Candidates of a region that are timed, at most, in a first look; half as many in a second."""
PROMISING = 1.02
"""Predicted cost, over the region's own, up to which a candidate is timed."""
WORTH = 0.985
"""Measured time, over the region's own, from which on a candidate is used: regions are timed to a percent or two."""
ALIKE = 1.01
"""Measured times that are no different; among those the fewest steps win."""
LEAST_SHARE = 0.002
"""Part of the model's predicted time under which a region is not looked at."""

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Budget:
    """Seconds for thinking and for timing, and graphs to look at in each region."""

    search: float
    measure: float
    candidates: int
    alpha: float
    growth: int


@dataclass(frozen=True)
class Gain:
    """What a kind of region costs before and after, in seconds."""

    kind: int
    count: int
    predicted: tuple[float, float]
    measured: tuple[float, float]
    rules: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return self.count * (self.measured[0] - self.measured[1])


@dataclass
class Hunted:
    """What was found: steps region by region, and what they are worth."""

    trace: list[Traced] = field(default_factory=list[Traced])
    gains: list[Gain] = field(default_factory=list[Gain])
    costs: dict[tuple[int, int], tuple[float, float]] = field(
        default_factory=dict[tuple[int, int], tuple[float, float]]
    )
    """Predicted seconds of the region before and after a step, by kind and number of the step."""
    regions: int = 0
    distinct: int = 0
    candidates: int = 0
    measured: int = 0
    thinking: float = 0.0
    measuring: float = 0.0
    exhausted: bool = True
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class _Choice:
    """The better graph of a kind of region; no steps where there is none."""

    kind: int
    piece: Piece
    steps: tuple[Taken, ...] = ()
    predicted: tuple[float, float] = (0.0, 0.0)
    measured: tuple[float, float] = (0.0, 0.0)


class Hunter:
    def __init__(
        self,
        model: Model,
        rules: Rules,
        rewriter: Rewriter,
        timer: RegionTimer,
        predictor: Predictor,
        sizes: Mapping[str, int],
        budget: Budget,
        tell: Tell,
    ) -> None:
        self.model, self.rules, self.rewriter, self.timer = model, rules, rewriter, timer
        self.sizes, self.budget, self.tell = sizes, budget, tell
        self.learner = Learner(predictor)
        self.found = Hunted()
        self._choices: dict[str, _Choice] = {}
        self._grown = 0
        self._stop = False

    def run(self, piece: Piece, where: str = "") -> Piece:
        """The graph with every region that could be made faster replaced; the trace grows along."""
        idle = 0
        for number in range(ROUNDS):
            piece, changed = self._round(piece, where, number)
            idle = 0 if changed else idle + 1
            if idle == 2 or self._stop:
                break
        return piece

    def _round(self, piece: Piece, where: str, number: int) -> tuple[Piece, bool]:
        regions = cut(piece, self._is_open, number, where)
        kinds: dict[str, list[Region]] = {}
        for region in regions:
            kinds.setdefault(structure(self._full(region.piece, region), self.sizes), []).append(region)
        costs = {key: len(group) * self._price(group[0].piece, group[0]) for key, group in kinds.items()}
        total = sum(costs.values()) or 1.0
        if not number:
            self.found.regions += len(regions)
        new = [key for key in kinds if key not in self._choices]
        for rank, key in enumerate(sorted(new, key=lambda key: -costs[key])):
            share = costs[key] / total
            self._choices[key] = self._choose(kinds[key][0], len(kinds[key]), share, rank, len(new))
        changed = False
        moved: dict[Value, Value] = {}
        for region, key in self._in_order(kinds, piece):
            choice = self._choices[key]
            if choice.steps:
                piece, done = self._apply(piece, region, choice, moved, where)
                changed = changed or done
        return piece, changed

    def _in_order(self, kinds: Mapping[str, Sequence[Region]], piece: Piece) -> list[tuple[Region, str]]:
        found = [(region, key) for key, group in kinds.items() for region in group]
        return sorted(found, key=lambda pair: piece.position(pair[0].members[0]))

    def _is_open(self, node: Node) -> bool:
        return not node.bodies and not isinstance(self.rewriter.reader.read(node), str)

    def _choose(self, region: Region, count: int, share: float, rank: int, kinds: int) -> _Choice:
        """Search one kind of region, and time what promises most."""
        self.found.distinct += 1
        kind = self.found.distinct
        nothing = _Choice(kind, region.piece)
        if self._stop or share < LEAST_SHARE:
            return nothing
        self.tell("searching", f"region {rank + 1} of {kinds}, {len(region.members)} nodes, {count} of its kind")
        explored = self._explore(region, kinds - rank)
        promising = self._promising(explored)
        if not promising:
            return nothing
        return self._measured(region, count, share, kind, explored[0], promising)

    def _explore(self, region: Region, kinds_left: int) -> Sequence[Candidate]:
        left = self.budget.search - self.found.thinking
        if left <= 0:
            self._stop, self.found.exhausted = True, False
            return ()
        started = time.monotonic()
        until = started + max(2.0, 2 * left / max(kinds_left, 1))
        limits = Limits(self.budget.alpha, self.budget.candidates, lambda: time.monotonic() > until)
        explored = explore(region.piece, self.rules, self.rewriter, lambda p: self._price(p, region), limits)
        self.found.thinking += time.monotonic() - started
        self.found.candidates += explored.seen
        self.found.exhausted = self.found.exhausted and explored.exhausted
        return explored.candidates

    def _promising(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The cheapest by prediction, one for each way of getting there before a second of the same way."""
        if not candidates:
            return []
        start, *others = candidates
        near = [c for c in others if c.cost <= PROMISING * start.cost]
        first: dict[frozenset[str], Candidate] = {}
        for candidate in near:
            first.setdefault(frozenset(s.rule.name for s in candidate.steps), candidate)
        chosen = list(first.values())
        return [*chosen, *(c for c in near if c not in chosen)][:MEASURED]

    def _measured(
        self, region: Region, count: int, share: float, kind: int, start: Candidate, promising: list[Candidate]
    ) -> _Choice:
        nothing = _Choice(kind, region.piece)
        left = self.budget.measure - self.found.measuring
        if left <= 0:
            self.found.exhausted = False
            return nothing
        seconds = min(left, max(1.0, 1.5 * share * self.budget.measure))
        self.tell("timing regions", f"{len(promising)} candidates for {len(region.members)} nodes, {count} of its kind")
        started = time.monotonic()
        subjects = [self._subject(c.piece, region) for c in (start, *promising)]
        times = self.timer.time(subjects, seconds)
        self.found.measuring += time.monotonic() - started
        self.found.measured += sum(1 for t in times if t is not None)
        for candidate, taken in zip((start, *promising), times, strict=True):
            if taken is not None:
                self.learner.observe(self._graph(candidate.piece, region), candidate.cost, taken)
        self.learner.refit()
        own = times[0]
        if own is None:
            return nothing
        timed = [(t, k) for k, t in enumerate(times[1:]) if t is not None]
        if not timed:
            return nothing
        fastest = min(timed)[0]
        best, k = min(((t, k) for t, k in timed if t <= ALIKE * fastest), key=lambda p: (len(promising[p[1]].steps), p))
        if best > WORTH * own or not self._affordable(region, promising[k], count):
            return nothing
        chosen = promising[k]
        for number, step in enumerate(chosen.steps):
            self.found.costs[kind, number] = (self._price(step.before, region), self._price(step.after, region))
        gain = Gain(kind, count, (start.cost, chosen.cost), (own, best), tuple(s.rule.name for s in chosen.steps))
        self.found.gains.append(gain)
        return _Choice(kind, region.piece, chosen.steps, gain.predicted, gain.measured)

    def _affordable(self, region: Region, candidate: Candidate, count: int) -> bool:
        """Whether the model may grow by what the candidate's weights take more."""
        before = weight_bytes(region.piece, combined_bytes)
        growth = count * (weight_bytes(candidate.piece, combined_bytes) - before)
        if growth > 0 and self._grown + growth > self.budget.growth:
            rules = ", ".join(dict.fromkeys(s.rule.name for s in candidate.steps))
            self.found.notes.append(f"{rules} would pay, but adds {growth} bytes of weights: more than --growth allows")
            return False
        self._grown += max(growth, 0)
        return True

    def _apply(
        self, piece: Piece, region: Region, choice: _Choice, moved: dict[Value, Value], where: str
    ) -> tuple[Piece, bool]:
        members = [_now(Value(node), moved).node for node in region.members]
        if any(node is None or node not in piece.tags for node in members):
            return piece, False
        current = extract(piece, [node for node in members if node is not None], where)
        steps = follow(choice.steps, choice.piece, current.piece, self.rewriter, piece.names)
        if not steps:
            return piece, False
        self.found.trace.append(traced(current, piece, [s.step for s in steps], choice.kind))
        stitched = stitch(piece, current, steps[-1].after, piece.names)
        for old, new in list(moved.items()):
            moved[old] = stitched.moved.get(new, new)
        for old, new in stitched.moved.items():
            moved.setdefault(old, new)
        return stitched.piece, True

    def _graph(self, piece: Piece, region: Region):
        return graph_of_region(piece, tuple(region.outside))

    def _full(self, piece: Piece, region: Region):
        return graph_of_region(piece, tuple(region.outside), weight_nodes(piece))

    def _price(self, piece: Piece, region: Region) -> float:
        return self.learner.predictor.region(self._graph(piece, region))

    def _subject(self, piece: Piece, region: Region):
        return region_subject(self.model, self._full(piece, region), self.sizes)


def _now(value: Value, moved: Mapping[Value, Value]) -> Value:
    return moved.get(value, value)
