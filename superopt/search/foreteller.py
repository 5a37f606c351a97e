"""What recorded times say of a region's candidates, where there is no clock to ask.

Where the file tells of the region and of any of its candidates, it alone decides: what a predictor thinks of the others
would be held against what the clock has said. Where it tells of none, prices fitted to the recorded samples decide, and
more is asked of them: they are off by 15 % or so (benchmarks/results/predictor-cpu.txt).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from superopt.cost.race import NO_TIME_LEFT
from superopt.rewrite.rewriter import Taken
from superopt.search.candidate import Candidate
from superopt.search.judge import ALIKE, WORTH, Judge, Look, again


class Foreteller(Judge):
    def time(self, look: Look) -> None:
        """Looks up what is recorded; predicts where nothing is, anew each time, because the predictor learns."""
        look.times = {c: t for c, t in look.times.items() if c not in look.guessed}
        look.guessed.clear()
        promising = self.promising(look)
        if not promising:
            return
        if self.ending.is_asked():
            self.found.exhausted = False
            return
        start = look.candidates[0]
        subjects = [start, *promising]
        times, failed = self._recorded(look, subjects)
        for candidate, taken in zip(subjects, times, strict=True):
            if candidate not in look.times and taken is not None:
                self.scales.learner.observe(self.scales.graph(candidate.piece, look.region), candidate.cost, taken)
        look.times.update(zip(subjects, times, strict=True))
        own = look.times[start]
        if own is None or not any(t is not None for c, t in look.times.items() if c.steps):
            self._predict(look, [c for c in subjects if c not in failed], own)

    def decided(self, look: Look) -> tuple[Taken, ...]:
        """The steps to the graph that gains most, if it gains enough; among equals, the fewest steps. What was timed a
        second time there had been chosen there: it is chosen again, or refused again."""
        own = look.times.get(look.candidates[0]) if look.candidates else None
        if own is None:
            return ()
        timed = {c: t for c, t in look.times.items() if t is not None and c.steps}
        worth = {c: t for c, t in timed.items() if self._is_worth(look, c, t, own)}
        twice = {c: pair for c in worth if c not in look.guessed and (pair := self._second(look, c)) is not None}
        if twice:
            worth = {c: own * after / before for c, (before, after) in twice.items() if after <= WORTH * before}
        if not worth:
            return ()
        alike = [c for c, t in worth.items() if t <= ALIKE * min(worth.values())]
        chosen = min(alike, key=lambda c: (len(c.steps), worth[c]))
        change = self._change(look, chosen)
        if change is None:
            return ()
        self.growth.take(change)
        measured = twice.get(chosen, (own, worth[chosen]))
        self._keep(look, chosen, measured, True, timed=chosen not in look.guessed, confirmed=chosen in twice)
        return chosen.steps

    def _is_worth(self, look: Look, candidate: Candidate, seconds: float, own: float) -> bool:
        if candidate in look.guessed:
            return self._is_trusted(look, candidate, seconds, own)
        return seconds <= WORTH * own

    def _predict(self, look: Look, candidates: Sequence[Candidate], own: float | None) -> None:
        """Times in proportion to prices; from the region's own where that is recorded."""
        start = look.candidates[0]
        price = self._price(start.piece, look.region)
        if price <= 0.0:
            return
        for candidate in candidates:
            if candidate is start and own is not None:
                continue
            look.times[candidate] = (own or price) * self._price(candidate.piece, look.region) / price
            look.guessed.add(candidate)

    def _second(self, look: Look, candidate: Candidate) -> tuple[float, float] | None:
        """The region and the candidate as they were timed a second time."""
        subjects = [self.scales.subject(c.piece, look.region) for c in (look.candidates[0], candidate)]
        before, after = self.scales.timer.time([replace(s, key=again(s.key)) for s in subjects], 0.0)
        return None if before is None or after is None else (before, after)

    def _recorded(self, look: Look, candidates: Sequence[Candidate]) -> tuple[list[float | None], frozenset[Candidate]]:
        """Their times, and those that could not be run."""
        failed: set[Candidate] = set()

        def tell(number: int, why: str) -> None:
            if why != NO_TIME_LEFT:
                failed.add(candidates[number])

        subjects = [self.scales.subject(c.piece, look.region) for c in candidates]
        return self.scales.timer.time(subjects, 0.0, tell), frozenset(failed)
