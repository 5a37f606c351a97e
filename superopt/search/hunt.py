"""Search a whole graph: region by region, equal ones once; predict, time the promising, learn, and keep what pays.

Mutants of whole programs come first, where there are any. Rounds then cut the graph in different places; a round's
gains are stitched in before the next one cuts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from superopt.ir.graph import Value
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken
from superopt.search.ablation import ablated, essentials, extended, without
from superopt.search.candidate import Candidate
from superopt.search.ending import Ending
from superopt.search.explore import Explored
from superopt.search.follow import follow
from superopt.search.forecast import Forecast
from superopt.search.hills import Hill, climbed, hills_of
from superopt.search.hunted import Budget, Hunted
from superopt.search.judge import Judge, Look
from superopt.search.mutated import mutated_regions
from superopt.search.parallel import Task, explore_all, side_by_side
from superopt.search.regions import Region, cut, extract, is_open, stitch
from superopt.search.rulebook import Rulebook
from superopt.search.scales import Scales
from superopt.search.stages import Tell
from superopt.search.trace import traced

ORDER = (0, 1, 4, 2, 3, 5)
"""Cuts, in the order of the rounds: one across the ends of regions comes early, because what equal blocks share
is in no other."""
AGAIN = 0.5
"""Of the time that a search of regions took: for what they can tell each other."""
LEAST_SHARE = 0.002
"""Part of the model's predicted time under which a region is not looked at."""

Kinds = dict[str, list[Region]]
"""Regions by their structure."""


@dataclass(frozen=True)
class Choice:
    """The better graph of a kind of region; no steps where there is none."""

    kind: int
    piece: Piece
    steps: tuple[Taken, ...] = ()


class Hunter:
    def __init__(
        self,
        book: Rulebook,
        rewriter: Rewriter,
        scales: Scales,
        budget: Budget,
        tell: Tell,
        ending: Ending,
        forecast: Forecast | None = None,
        judging: type[Judge] = Judge,
    ) -> None:
        self.rules, self.rewriter, self.scales, self.budget = book.rules, rewriter, scales, budget
        self.tell, self.ending = tell, ending
        self.found = Hunted()
        self.forecast = forecast or Forecast()
        self.judge = judging(scales, budget, self.found, tell, ending, self.forecast)
        self._choices: dict[str, Choice] = {}
        self.best: dict[str, Candidate] = {}
        """By prediction, of each kind of region that was searched."""
        self.ways: dict[Hill, None] = {}
        """Ways over hills, in the order in which they were found."""
        self._stop = False

    def run(self, piece: Piece, where: str = "") -> Piece:
        """The graph with every region that could be made faster replaced; the trace grows along."""
        piece = self._mutated(piece, where)
        idle = 0
        for number in ORDER:
            piece, changed = self._round(piece, where, number)
            idle = 0 if changed else idle + 1
            if idle == 2 or self._stop:
                break
        return piece

    def _mutated(self, piece: Piece, where: str) -> Piece:
        """The graph with mutants where they are faster, each taken as it is: what else may be done to it, and to what
        was not mutated, the rounds find out."""
        found = list(mutated_regions(piece, where, self.rules, self.rewriter, self.scales))
        self.forecast.begin(where)
        kinds = self._kinds([region for region, _ in found])
        candidates = {region.members: group for region, group in found}
        whole = self._price(cut(piece, is_open(self.rewriter), 0, where)) if found else None
        self.judge.growth.survey(piece, where)
        for key, look in self._looks(kinds, kinds, whole).items():
            look.candidates, look.curious = candidates[look.region.members], True
            self.judge.time(look)
            self._decide(key, look)
        piece, _ = self._apply_all(piece, kinds, where)
        self._choices = {key: choice for key, choice in self._choices.items() if choice.steps}
        return piece

    def _round(self, piece: Piece, where: str, number: int) -> tuple[Piece, bool]:
        regions = cut(piece, is_open(self.rewriter), number, where)
        self.forecast.begin(where)
        kinds = self._kinds(regions)
        if not number:
            self.found.regions += len(regions)
        self.judge.growth.survey(piece, where)
        self._choose_all({key: group for key, group in kinds.items() if key not in self._choices}, kinds)
        return self._apply_all(piece, kinds, where)

    def _kinds(self, regions: Sequence[Region]) -> Kinds:
        kinds: Kinds = {}
        for region in regions:
            kinds.setdefault(self.scales.structure(region), []).append(region)
        return kinds

    def _choose_all(self, new: Kinds, kinds: Kinds) -> None:
        """A choice for every new kind of region; the costliest are timed first."""
        looks = self._looks(new, kinds)
        explored = self._explore(list(looks.values()))
        for (key, look), found in zip(looks.items(), explored, strict=True):
            look.candidates = found.candidates
            if found.candidates:
                self.best[key] = found.best
            condensed = [] if found.condensed is None else [found.condensed]
            look.first = [*condensed, *self._essentials(look)]
            self.judge.time(look)
        self.scales.learner.refit()
        for key, look in looks.items():
            look.first, look.second = [*self._varied(look), *self._undoubted(look)], True
            self.judge.time(look)
            self._decide(key, look)

    def _essentials(self, look: Look) -> list[Candidate]:
        """What is predicted to be fastest, with its more important rules alone."""
        region, others = look.region, look.candidates[1:]
        if not others:
            return []
        best = min(others, key=lambda c: self.scales.price(c.piece, region))
        return essentials(best, region.piece, self.rewriter, lambda piece: self.scales.price(piece, region))

    def _varied(self, look: Look) -> list[Candidate]:
        """What is fastest so far, without each of its rules; and, where the clock sees few candidates, with one more of
        the rules that others have."""
        timed = {c: t for c, t in look.times.items() if t is not None}
        if not timed:
            return []
        region = look.region

        def price(piece: Piece) -> float:
            return self.scales.price(piece, region)

        rewritten = [c for c in timed if c.steps]
        without = min(rewritten, key=lambda c: timed[c], default=None)
        fewer = [] if without is None else ablated(without, region.piece, self.rewriter, price)
        if not self.scales.opens_slowly:
            return fewer
        fastest = min(timed, key=lambda c: timed[c])
        more = extended(fastest, look.candidates[1:], region.piece, self.rewriter, price)
        return [c for pair in zip_longest(fewer, more) for c in pair if c is not None]

    def _undoubted(self, look: Look) -> list[Candidate]:
        """What is predicted to be fastest, without what made other regions slower: of rules that are blamed together
        leaving one out is enough."""
        region, others = look.region, look.candidates[1:]
        if not others:
            return []

        def price(piece: Piece) -> float:
            return self.scales.price(piece, region)

        found = [min(others, key=lambda c: price(c.piece))]
        while found and (blamed := self.judge.blamed(found[0])):
            left = [without(found[0], {rule}, region.piece, self.rewriter, price) for rule in sorted(blamed)]
            found = sorted((c for candidates in left for c in candidates), key=lambda c: c.cost)[:1]
        return [c for c in found if c not in others]

    def _price(self, regions: Sequence[Region]) -> float:
        return sum(self.scales.price(region.piece, region) for region in regions)

    def _looks(self, new: Kinds, kinds: Kinds, whole: float | None = None) -> dict[str, Look]:
        """New kinds with their numbers; those that are worth a look, the costliest first. `whole`: what the graph
        costs, where that is more than these regions."""
        costs = {key: len(group) * self.scales.price(group[0].piece, group[0]) for key, group in kinds.items()}
        total = sum(costs.values()) or 1.0
        looks: dict[str, Look] = {}
        for key in sorted(new, key=lambda key: -costs[key]):
            self.found.distinct += 1
            first = new[key][0]
            self._choices[key] = Choice(self.found.distinct, first.piece)
            if costs[key] >= LEAST_SHARE * total:
                part = costs[key] / max(whole or total, costs[key])
                looks[key] = Look(new[key], costs[key] / total, self.found.distinct, part)
        return looks

    def _decide(self, key: str, look: Look) -> None:
        self._choices[key] = Choice(look.kind, look.region.piece, self.judge.decided(look))

    def _apply_all(self, piece: Piece, kinds: Kinds, where: str) -> tuple[Piece, bool]:
        """The graph with what was chosen, and whether that is anything."""
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

    def _explore(self, looks: Sequence[Look]) -> list[Explored]:
        regions = [look.region for look in looks]
        left = 0.0 if self.ending.is_asked() else self.budget.search - self.found.thinking
        if left <= 0 or not regions:
            self._stop = self._stop or bool(regions)
            self.found.exhausted = self.found.exhausted and not regions
            return [Explored((), 0, exhausted=False) for _ in regions]
        nodes = sum(len(region.members) for region in regions)
        self.tell("searching", f"{len(regions)} regions of different structure, {nodes} nodes")
        started = time.monotonic()
        share = max(1.0, left / math.ceil(len(regions) / side_by_side(len(regions))))
        tasks = [Task(look.region.piece, self._price_within_growth(look), share) for look in looks]
        asked = self.ending.is_asked
        found = explore_all(tasks, self.rules, self.rewriter, self.budget.alpha, self.budget.candidates, asked)
        found = self._over_hills(tasks, found, time.monotonic() + AGAIN * (time.monotonic() - started))
        self.found.thinking += time.monotonic() - started
        self.found.candidates += sum(explored.seen for explored in found)
        self.found.exhausted = self.found.exhausted and all(explored.exhausted for explored in found)
        return found

    def _over_hills(self, tasks: Sequence[Task], found: Sequence[Explored], until: float) -> list[Explored]:
        """The best of each region with the ways over hills that any region knows, this round or before."""
        for explored in found:
            if explored.candidates:
                self.ways |= dict.fromkeys(hills_of(explored.best))

        def is_over() -> bool:
            return time.monotonic() > until or self.ending.is_asked()

        ends = [
            climbed(explored.best, self.ways, self.rules, self.rewriter, task.price, is_over)
            if explored.candidates
            else None
            for task, explored in zip(tasks, found, strict=True)
        ]
        return [explored if end is None else explored.with_best(end) for explored, end in zip(found, ends, strict=True)]

    def _price_within_growth(self, look: Look) -> Callable[[Piece], float]:
        """Of graphs whose weights take more bytes than the region's part of what the model may grow by: infinite, so
        that the search goes on to those that do not. Many ways lead to one graph; it is priced once."""
        known: dict[tuple[Value, ...], float] = {}

        def price(piece: Piece) -> float:
            seconds = known.get(piece.results)
            if seconds is None:
                fits = self.judge.fits(look, piece)
                seconds = known[piece.results] = self.scales.price(piece, look.region) if fits else math.inf
            return seconds

        return price

    def _apply(
        self, piece: Piece, region: Region, choice: Choice, moved: dict[Value, Value], where: str
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


def _now(value: Value, moved: Mapping[Value, Value]) -> Value:
    return moved.get(value, value)
