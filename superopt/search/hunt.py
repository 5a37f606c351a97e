"""Search a whole graph: region by region, equal ones once; predict, time the promising, learn, and keep what pays.

Rounds cut the graph in different places. A round's gains are stitched in before the next one cuts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from superopt.search.ending import Ending
from superopt.search.explore import Candidate
from superopt.search.follow import follow
from superopt.search.learning import Learner
from superopt.search.parallel import Task, explore_all
from superopt.search.regions import Region, cut, extract, graph_of_region, stitch, weight_nodes
from superopt.search.trace import Traced, traced

ROUNDS = 4
MEASURED = 6
"""Candidates of a region that are timed, at most, in a first look; half as many in a second."""
PROMISING = 1.02
"""Predicted cost, over the region's own, up to which a candidate is timed."""
WORTH = 0.985
"""Measured time, over the region's own, from which on a candidate is used: regions are timed to a percent or two."""
HOPEFUL = 0.995
"""Predicted cost, over the region's own, from which on a candidate that was timed no slower is used in hope: what a
region is too small to tell, the whole model may."""
ALIKE = 1.01
"""Measured times that are no different; among those the fewest steps win."""
TRIMMED = 1.005
"""Predicted cost, over a candidate's, up to which the beginning of its steps is as good as all of them."""
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
    sure: bool = True
    """False where the clock only says that it is no slower."""

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

    def saving(self, trace: Sequence[Traced]) -> float:
        """Seconds that a run of the model should take less with this part of the trace, as regions were timed."""
        kinds = {record.kind for record in trace}
        return sum(gain.seconds for gain in self.gains if gain.kind in kinds)


@dataclass(frozen=True)
class _Choice:
    """The better graph of a kind of region; no steps where there is none."""

    kind: int
    piece: Piece
    steps: tuple[Taken, ...] = ()


@dataclass
class _Look:
    """A kind of region while it is decided: what the search found, and what the clock said of it."""

    region: Region
    count: int
    share: float
    kind: int
    candidates: Sequence[Candidate]
    times: dict[Candidate, float | None] = field(default_factory=dict[Candidate, "float | None"])
    cores: dict[tuple[Value, ...], Candidate] = field(default_factory=dict[tuple[Value, ...], Candidate])


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
        ending: Ending,
    ) -> None:
        self.model, self.rules, self.rewriter, self.timer = model, rules, rewriter, timer
        self.sizes, self.budget, self.tell, self.ending = sizes, budget, tell, ending
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
        if not number:
            self.found.regions += len(regions)
        self._choose_all({key: group for key, group in kinds.items() if key not in self._choices}, kinds)
        changed = False
        moved: dict[Value, Value] = {}
        for region, key in self._in_order(kinds, piece):
            choice = self._choices[key]
            if choice.steps:
                piece, done = self._apply(piece, region, choice, moved, where)
                changed = changed or done
        return piece, changed

    def _choose_all(self, new: Mapping[str, list[Region]], kinds: Mapping[str, list[Region]]) -> None:
        """A choice for every new kind of region; the costliest are timed first."""
        costs = {key: len(group) * self._price(group[0].piece, group[0]) for key, group in kinds.items()}
        total = sum(costs.values()) or 1.0
        ordered = sorted(new, key=lambda key: -costs[key])
        for key in ordered:
            self.found.distinct += 1
            self._choices[key] = _Choice(self.found.distinct, new[key][0].piece)
        worth = [key for key in ordered if costs[key] >= LEAST_SHARE * total]
        explored = self._explore([new[key][0] for key in worth])
        looks: list[_Look] = []
        for key, found in zip(worth, explored, strict=True):
            group = new[key]
            look = _Look(group[0], len(group), costs[key] / total, self._choices[key].kind, found)
            self._time(look, self._promising(look), MEASURED)
            looks.append(look)
        self.learner.refit()
        for key, look in zip(worth, looks, strict=True):
            self._time(look, self._promising(look), MEASURED // 2)
            self._choices[key] = self._decided(look)

    def _in_order(self, kinds: Mapping[str, Sequence[Region]], piece: Piece) -> list[tuple[Region, str]]:
        found = [(region, key) for key, group in kinds.items() for region in group]
        return sorted(found, key=lambda pair: piece.position(pair[0].members[0]))

    def _is_open(self, node: Node) -> bool:
        return not node.bodies and not isinstance(self.rewriter.reader.read(node), str)

    def _explore(self, regions: Sequence[Region]) -> list[Sequence[Candidate]]:
        left = 0.0 if self.ending.is_asked() else self.budget.search - self.found.thinking
        if left <= 0 or not regions:
            self._stop = self._stop or bool(regions)
            self.found.exhausted = self.found.exhausted and not regions
            return [() for _ in regions]
        nodes = sum(len(region.members) for region in regions)
        self.tell("searching", f"{len(regions)} regions of different structure, {nodes} nodes")
        started = time.monotonic()
        share = max(1.0, left / len(regions))
        tasks = [Task(r.piece, lambda p, r=r: self._price(p, r), share) for r in regions]
        asked = self.ending.is_asked
        found = explore_all(tasks, self.rules, self.rewriter, self.budget.alpha, self.budget.candidates, asked)
        self.found.thinking += time.monotonic() - started
        self.found.candidates += sum(explored.seen for explored in found)
        self.found.exhausted = self.found.exhausted and all(explored.exhausted for explored in found)
        return [explored.candidates for explored in found]

    def _promising(self, look: _Look) -> list[Candidate]:
        """The cheapest by prediction that were not timed yet, one for each way of getting there before a second."""
        if not look.candidates:
            return []
        start, *others = look.candidates
        prices = {c: self._price(c.piece, look.region) for c in (start, *others)}
        bound = PROMISING * prices[start]
        near = sorted((c for c in others if prices[c] <= bound and c not in look.times), key=lambda c: prices[c])
        first: dict[frozenset[str], Candidate] = {}
        for candidate in near:
            first.setdefault(frozenset(s.rule.name for s in candidate.steps), candidate)
        chosen = list(first.values())
        ordered = [*chosen, *(c for c in near if c not in chosen)]
        return list(dict.fromkeys(c for candidate in ordered for c in self._with_core(candidate, look)))

    def _with_core(self, candidate: Candidate, look: _Look) -> list[Candidate]:
        """The candidate, and before it what is left of it without last steps that hardly pay."""
        bound = self._price(candidate.piece, look.region) * TRIMMED
        for number, step in enumerate(candidate.steps[:-1]):
            cost = self._price(step.after, look.region)
            if cost <= bound:
                core = look.cores.setdefault(
                    step.after.results, Candidate(step.after, cost, candidate.steps[: number + 1])
                )
                return [candidate] if core in look.times else [core, candidate]
        return [candidate]

    def _time(self, look: _Look, promising: Sequence[Candidate], most: int) -> None:
        """Times the start and the most promising against each other."""
        left = 0.0 if self.ending.is_asked() else self.budget.measure - self.found.measuring
        if not promising:
            return
        if left <= 0:
            self.found.exhausted = False
            return
        subjects = [look.candidates[0], *promising[:most]]
        size = len(look.region.members)
        self.tell("timing regions", f"{len(subjects)} graphs of {size} nodes, {look.count} of its kind")
        started = time.monotonic()
        seconds = min(left, max(0.5, look.share * self.budget.measure * most / MEASURED))
        graphs = [self._subject(c.piece, look.region) for c in subjects]
        times = self.timer.time(graphs, seconds, hurried=self.ending.is_asked)
        self.found.measuring += time.monotonic() - started
        for candidate, taken in zip(subjects, times, strict=True):
            if candidate not in look.times and taken is not None:
                self.found.measured += 1
                self.learner.observe(self._graph(candidate.piece, look.region), candidate.cost, taken)
            look.times[candidate] = taken

    def _decided(self, look: _Look) -> _Choice:
        """The fastest graph, if it is worth it or may be; among equals, the one with the fewest steps."""
        nothing = _Choice(look.kind, look.region.piece)
        own = look.times.get(look.candidates[0]) if look.candidates else None
        timed = {c: t for c, t in look.times.items() if t is not None and c.steps}
        if own is None or not timed:
            return nothing
        sure = min(timed.values()) <= WORTH * own
        timed = timed if sure else self._hopeful(look, timed, own)
        if not timed:
            return nothing
        alike = [c for c, t in timed.items() if t <= ALIKE * min(timed.values())]
        chosen = min(alike, key=lambda c: (len(c.steps), timed[c]))
        worth = WORTH if sure else 1.0
        if timed[chosen] > worth * own or not self._affordable(look.region, chosen, look.count):
            return nothing
        own, taken = self._again(look, chosen)
        if own is None or taken is None or taken > worth * own:
            return nothing
        for number, step in enumerate(chosen.steps):
            before, after = self._price(step.before, look.region), self._price(step.after, look.region)
            self.found.costs[look.kind, number] = (before, after)
        predicted, measured = (look.candidates[0].cost, chosen.cost), (own, taken)
        rules = tuple(s.rule.name for s in chosen.steps)
        self.found.gains.append(Gain(look.kind, look.count, predicted, measured, rules, sure))
        self.ending.is_worthwhile()
        return _Choice(look.kind, look.region.piece, chosen.steps)

    def _hopeful(self, look: _Look, timed: Mapping[Candidate, float], own: float) -> dict[Candidate, float]:
        """Those that should pay by prediction, and are no slower by the clock."""
        bound = HOPEFUL * self._price(look.candidates[0].piece, look.region)
        return {c: t for c, t in timed.items() if t <= own and self._price(c.piece, look.region) <= bound}

    def _again(self, look: _Look, chosen: Candidate) -> tuple[float | None, float | None]:
        """Both timed afresh: the best of many looks better than it is."""
        left = max(0.5, 0.0 if self.ending.is_asked() else self.budget.measure - self.found.measuring)
        started = time.monotonic()
        subjects = [self._subject(c.piece, look.region) for c in (look.candidates[0], chosen)]
        fresh = [replace(subject, key=f"{subject.key} again") for subject in subjects]
        before, after = self.timer.time(fresh, min(left, max(0.5, look.share * self.budget.measure / 2)))
        self.found.measuring += time.monotonic() - started
        return before, after

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
