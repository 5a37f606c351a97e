"""What the clock says of a region's candidates, and which of them is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from superopt.cost.race import NO_TIME_LEFT
from superopt.cost.regions import RegionSubject
from superopt.ir.graph import Value
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Taken
from superopt.runtime.failure import is_of_memory
from superopt.search.candidate import Candidate
from superopt.search.ending import Ending
from superopt.search.forecast import Forecast
from superopt.search.growth import Change, Growth
from superopt.search.hunted import Budget, Gain, Hunted
from superopt.search.kernels import Kernels
from superopt.search.regions import Region
from superopt.search.repute import Repute
from superopt.search.scales import Scales
from superopt.search.stages import Tell

MEASURED = 6
"""Candidates of a region that are timed, at most, in a first look, and in a second after what the first taught."""
ATTEMPTS = 3
"""At finding candidates that run."""
PROMISING = 1.02
"""Predicted cost, over the region's own, up to which a candidate is timed."""
WORTH = 0.985
"""Measured time, over the region's own, from which on a candidate is used: regions are timed to a percent or two."""
HOPEFUL = 0.998
"""Predicted cost, over the region's own, from which on a candidate that was timed no slower is used in hope: what a
region is too small to tell, the whole model may."""
HOPED = 0.992
"""Measured time, over the region's own, from which on a candidate is used in hope whatever is predicted."""
ALIKE = 1.015
"""Measured times that are no different; among those the fewest steps win."""
CHANCES = 3
"""Candidates that are timed a second time, at most: the first of them may have been lucky, or the region unlucky."""
CLEAR = 0.9
"""Measured time, over the region's own, from which on a candidate is used in hope where no time is left for a second
look."""
GUESSED = 0.85
"""Predicted cost, over the region's own, from which on a candidate is used that nobody has timed."""
SURE = 0.97
"""The same of one that spares work and adds next to none: all prices would have to be off alike for it to be slower."""
ADDED = 0.4
"""Predicted seconds added, over those spared, up to which that is so: prices are off by a half, either way."""
TRIMMED = 1.005
"""Predicted cost, over a candidate's, up to which the beginning of its steps is as good as all of them."""


def again(key: str) -> str:
    """What a second time of a region is kept under."""
    return f"{key} again"


@dataclass
class Look:
    """A kind of region while it is decided: what the search found, and what the clock said of it."""

    regions: Sequence[Region]
    """All that are alike."""
    share: float
    kind: int
    part: float = 0.0
    """Of the graph's time, by prediction."""
    candidates: Sequence[Candidate] = ()
    late: bool = False
    """Whether there was no time for the clock."""
    curious: bool = False
    """Whether the clock is asked whatever is predicted."""
    second: bool = False
    """Whether all regions have had a first look."""
    guessed: set[Candidate] = field(default_factory=set[Candidate])
    """Those whose time is a prediction, where the device is not here to be asked."""
    first: Sequence[Candidate] = ()
    """That the clock is asked about before others: where fusing alone leads; later, what was fastest without one of its
    rules."""
    times: dict[Candidate, float | None] = field(default_factory=dict[Candidate, "float | None"])
    cores: dict[tuple[Value, ...], Candidate] = field(default_factory=dict[tuple[Value, ...], Candidate])

    @property
    def region(self) -> Region:
        """The one that stands for all."""
        return self.regions[0]

    @property
    def count(self) -> int:
        return len(self.regions)


class Judge:
    def __init__(
        self, scales: Scales, budget: Budget, found: Hunted, tell: Tell, ending: Ending, forecast: Forecast
    ) -> None:
        self.scales, self.budget, self.found, self.tell, self.ending = scales, budget, found, tell, ending
        self.forecast = forecast
        self._price = scales.price
        self.growth = Growth(budget.growth)
        self._kernels, self._repute = Kernels(), Repute()

    def time(self, look: Look) -> None:
        """Times the start and the most promising that were not timed yet, against each other; others in place of those
        that could not run."""
        for _ in range(ATTEMPTS):
            if not self._time_once(look):
                break

    def _time_once(self, look: Look) -> bool:
        """Whether any could not run, and others are worth a try."""
        promising = self.promising(look)
        left = 0.0 if self.ending.is_asked() else self.budget.measure - self.found.measuring
        if not promising:
            return False
        look.late = left <= 0 and not self.ending.is_asked()
        if left <= 0:
            self.found.exhausted = False
            return False
        candidates = [look.candidates[0], *promising[:MEASURED]]
        size = len(look.region.members)
        self.tell("timing regions", f"{len(candidates)} graphs of {size} nodes, {look.count} of its kind")
        seconds = min(left, max(0.5, look.share * self.budget.measure))
        subjects = [self.scales.subject(c.piece, look.region) for c in candidates]
        reasons: dict[int, str] = {}
        times = self._timed(subjects, seconds, reasons.__setitem__)
        for candidate, taken in zip(candidates, times, strict=True):
            if candidate not in look.times and taken is not None:
                self.found.measured += 1
                self.scales.learner.observe(self.scales.graph(candidate.piece, look.region), candidate.cost, taken)
            look.times[candidate] = taken
        look.late = reasons.get(0) == NO_TIME_LEFT
        failed = [candidates[i] for i, why in reasons.items() if why != NO_TIME_LEFT and not is_of_memory(why)]
        self._kernels.learn((c for c, taken in zip(candidates, times, strict=True) if taken is not None), failed)
        self._learn(look)
        return bool(failed) and candidates[0] not in failed

    def _learn(self, look: Look) -> None:
        """Where few graphs are timed; else there is time to look."""
        own = look.times.get(look.candidates[0])
        if own is not None and self.scales.opens_slowly:
            self._repute.learn(own, {c: t for c, t in look.times.items() if t is not None and c.steps})

    def blamed(self, candidate: Candidate) -> set[str]:
        """Its rules that the clock has made doubtful."""
        return self._repute.blamed(candidate)

    def decided(self, look: Look) -> tuple[Taken, ...]:
        """The steps to the fastest graph, if it is worth it or may be; among equals, the fewest steps."""
        own = look.times.get(look.candidates[0]) if look.candidates else None
        timed = {c: t for c, t in look.times.items() if t is not None and c.steps}
        if own is None and look.late and not self.ending.is_asked():
            return self._guessed(look)
        if own is None or not timed:
            return ()
        sure = min(timed.values()) <= WORTH * own
        worth = WORTH if sure else 1.0
        timed = timed if sure else self._hopeful(look, timed, own)
        timed = {c: t for c, t in timed.items() if t <= worth * own}
        if not timed:
            return ()
        for candidate in _in_turn(timed)[:CHANCES]:
            chosen = self._thrifty(look, candidate)
            change = self._change(look, chosen)
            if change is None:
                continue
            before, after, late = self._again(look, chosen)
            if before is not None and after is not None and after <= before:
                self.growth.take(change)
                self._keep(look, chosen, (before, after), sure and after <= WORTH * before)
                return chosen.steps
            if late and timed[candidate] <= CLEAR * own:
                self.growth.take(change)
                self._keep(look, chosen, (own, timed[candidate]), False, confirmed=False)
                return chosen.steps
        return ()

    def _thrifty(self, look: Look, chosen: Candidate) -> Candidate:
        """Of graphs that differ from the one chosen by the order of what is put together, the one that needs the fewest
        new weights: steps of a recurrence can share those of the first if all have its order."""
        bytes_of = {c: self.growth.change(look.regions, c.piece).bytes for c in self._variations(look, chosen)}
        return min(bytes_of, key=lambda c: (bytes_of[c], c is not chosen))

    def _variations(self, look: Look, chosen: Candidate) -> list[Candidate]:
        """The candidate, and those with the same operators at the same price."""
        price = self._price(chosen.piece, look.region)
        others = dict.fromkeys((*look.candidates[1:], *look.times))
        alike = [c for c in others if c is not chosen and c.steps and c.theme == chosen.theme]
        return [chosen, *(c for c in alike if math.isclose(self._price(c.piece, look.region), price, rel_tol=1e-6))]

    def _guessed(self, look: Look) -> tuple[Taken, ...]:
        """The steps to the graph that is predicted to be much faster, where no time was left to ask the clock; in hope:
        whole models will be timed with and without it. What is doubted has to be much faster than what is not."""
        start, *others = dict.fromkeys((*look.candidates, *look.first))
        running = [c for c in others if self._kernels.runs(c)]
        prices = {c: self._price(c.piece, look.region) for c in (start, *running)}
        worth = [c for c in running if self._is_trusted(look, c, prices[c], prices[start])]
        trusted = [c for c in worth if not self._repute.doubts(c)]
        best = min(trusted, key=lambda c: (prices[c], len(c.steps)), default=start)
        bold = [c for c in worth if prices[c] * self._repute.slowdown(c) <= GUESSED * prices[best]]
        chosen = min(bold, key=lambda c: (prices[c], len(c.steps)), default=best)
        if chosen is start:
            return ()
        change = self._change(look, chosen)
        if change is None:
            return ()
        self.growth.take(change)
        self._keep(look, chosen, (prices[start], prices[chosen]), False, timed=False, confirmed=False)
        return chosen.steps

    def _is_trusted(self, look: Look, candidate: Candidate, seconds: float, own: float) -> bool:
        """Whether it is good enough that a prediction alone says so: what it takes, for what the region takes."""
        if seconds > SURE * own or seconds <= GUESSED * own:
            return seconds <= GUESSED * own
        spared, added = self.scales.exchanged(look.candidates[0].piece, candidate.piece, look.region)
        return added <= ADDED * spared

    def _keep(
        self,
        look: Look,
        chosen: Candidate,
        measured: tuple[float, float],
        sure: bool,
        *,
        timed: bool = True,
        confirmed: bool = True,
    ) -> None:
        for number, step in enumerate(chosen.steps):
            before, after = self._price(step.before, look.region), self._price(step.after, look.region)
            self.found.costs[look.kind, number] = (before, after)
        predicted = (look.candidates[0].cost, chosen.cost)
        rules = tuple(s.rule.name for s in chosen.steps)
        self.found.gains.append(Gain(look.kind, look.count, predicted, measured, rules, sure, timed, confirmed))
        self.ending.is_worthwhile()
        self.forecast.gain(look.region.where, look.part, *measured)
        self.ending.is_worth(self.forecast.speedup, "predicted")
        before, after = measured
        self.tell("timing regions", f"{before / after:.2f}× by {', '.join(dict.fromkeys(rules))}")

    def promising(self, look: Look) -> list[Candidate]:
        """The cheapest by prediction that were not timed yet, one for each theme before a second; those that are
        doubtful not before the second look, and last."""
        if not look.candidates:
            return []
        start, *others = look.candidates
        prices = {c: self._price(c.piece, look.region) for c in (start, *others)}
        bound = float("inf") if look.curious else PROMISING * prices[start]
        near = [c for c in others if prices[c] <= bound and c not in look.times and self._kernels.runs(c)]
        near.sort(key=lambda c: (self._repute.doubts(c), prices[c]))
        first = {c.theme: c for c in look.times}
        chosen = [c for c in near if first.setdefault(c.theme, c) is c]
        ordered = [*chosen, *(c for c in near if c not in chosen)]
        found = {c.piece.results: c for c in look.times}
        first_asked = [c for c in look.first if self._kernels.runs(c)]
        for candidate in (*first_asked, *(c for one in ordered for c in self._with_core(one, look))):
            found.setdefault(candidate.piece.results, candidate)
        asked = [c for c in found.values() if c not in look.times]
        return asked if look.second or look.curious else [c for c in asked if not self._repute.doubts(c)]

    def _with_core(self, candidate: Candidate, look: Look) -> list[Candidate]:
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

    def _hopeful(self, look: Look, timed: Mapping[Candidate, float], own: float) -> dict[Candidate, float]:
        """Those that should pay by prediction and are no slower by the clock, or that the clock says are a little
        faster."""
        bound = HOPEFUL * self._price(look.candidates[0].piece, look.region)
        return {
            c: t
            for c, t in timed.items()
            if t <= HOPED * own or (t <= own and self._price(c.piece, look.region) <= bound)
        }

    def _again(self, look: Look, chosen: Candidate) -> tuple[float | None, float | None, bool]:
        """Both timed afresh: the best of many looks better than it is. And whether no time was left for that."""
        left = max(0.5, 0.0 if self.ending.is_asked() else self.budget.measure - self.found.measuring)
        subjects = [self.scales.subject(c.piece, look.region) for c in (look.candidates[0], chosen)]
        fresh = [replace(subject, key=again(subject.key)) for subject in subjects]
        reasons: dict[int, str] = {}
        seconds = min(left, max(0.5, look.share * self.budget.measure / 2))
        before, after = self._timed(fresh, seconds, reasons.__setitem__)
        return before, after, NO_TIME_LEFT in reasons.values()

    def _timed(
        self, subjects: Sequence[RegionSubject], seconds: float, tell: Callable[[int, str], None] | None = None
    ) -> list[float | None]:
        clock = self.scales.timer.turn.clock
        started = clock()
        try:
            return self.scales.timer.time(subjects, seconds, tell, hurried=self.ending.is_asked)
        finally:
            self.found.measuring += clock() - started

    def fits(self, look: Look, piece: Piece) -> bool:
        """Whether the model may grow by what the piece's weights take."""
        return self.growth.fits(look.regions, piece, look.share)

    def _change(self, look: Look, candidate: Candidate) -> Change | None:
        """Of the weights by the candidate; None where the model may not grow by as much."""
        change = self.growth.change(look.regions, candidate.piece)
        if self.growth.allows(change):
            return change
        rules = ", ".join(dict.fromkeys(s.rule.name for s in candidate.steps))
        too_many = f"adds {change.bytes} bytes of weights: more than --growth allows"
        self.found.notes.append(f"{rules} would pay, but {too_many}")
        return None


def _in_turn(timed: Mapping[Candidate, float]) -> list[Candidate]:
    """Of those that are as good as the fastest, the one with the fewest steps; then the others, the fastest first."""
    alike = [c for c, t in timed.items() if t <= ALIKE * min(timed.values())]
    first = min(alike, key=lambda c: (len(c.steps), timed[c]))
    return [first, *sorted((c for c in timed if c is not first), key=lambda c: timed[c])]
