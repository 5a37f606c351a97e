"""Backtracking search in one region: a queue ordered by predicted cost, over graphs that proved rules lead to.

A candidate up to α times the best cost stays alive, because the way to a faster graph may lead uphill: by an operator
or two, which is more of a small region than of a large one. What keeps the queue short:

- graphs that differ only in how their weights are computed are one graph: weights are computed before the model runs;
- rewrites of one sort that pay and do not touch each other are made together, as one move: trying all subsets of them
  is pointless;
- after a step that did not pay only rewrites of what it made are tried: all others were there before it;
- of the many ways in which a rule takes some of a number of siblings only the first are tried;
- sums and products in another order, which cost the same, are tried only where a weight is among their operands, and
  the same work with weights that are computed otherwise is not.

What pays most may exclude many that pay less and more together: products of one input become one, and the side paths of
each are no longer there to be added to its weights. So the sorts of rules that excluded most are left out once, each in
a search of its own.

A large region has so many rewrites that few steps are taken before the limit is hit. So another search begins where the
shortest ways down end.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from superopt.ir.graph import Node, Value
from superopt.rewrite.found import Match
from superopt.rewrite.likeness import Likeness
from superopt.rewrite.pattern import Sort
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.search.candidate import Candidate
from superopt.search.condense import condensed
from superopt.search.descend import Way
from superopt.search.themes import Theme

USUAL = 20
"""Operators of a region for which α is meant; where there are fewer, it leaves as much room in all."""
CLIMB = 3
"""Steps in a row that may fail to pay."""
DESCENT = 3.0
"""Cost over the best up to which a candidate is followed that was reached by gains alone."""
TOGETHER = 64
"""Rewrites made as one move, at most."""
ALIKE = 0.2
"""Part of the largest gain from which on a rewrite is made together with the one that gains most."""

DETOURS = 2
"""Sorts of rules that are left out, at most, one at a time."""
WORTH_A_DETOUR = 0.02
"""Part of the best cost that rules of a sort must have excluded gains of."""
MANY_ROOTS = 3
SIBLINGS = 4
"""Matches at one node, at most, of a rule with so many roots: eight gates of a cell are four in seventy ways, which
cost the same, and the first four leave the last four together."""

Price = Callable[[Piece], float]


@dataclass(frozen=True)
class Explored:
    candidates: tuple[Candidate, ...]
    """The start first, then all others by predicted cost."""
    seen: int
    exhausted: bool
    condensed: Candidate | None = None
    """Where fusing alone leads, whatever is predicted."""

    @property
    def best(self) -> Candidate:
        """By prediction; the start where nothing is better."""
        return min(self.candidates, key=lambda candidate: candidate.cost)

    def with_best(self, better: Candidate) -> Explored:
        first, *others = self.candidates
        return replace(self, candidates=(first, better, *others))


@dataclass(frozen=True)
class Limits:
    alpha: float
    candidates: int
    out_of_time: Callable[[], bool]
    keep: int = 24


def explore(start: Piece, rules: Rules, rewriter: Rewriter, price: Price, limits: Limits) -> Explored:
    """The cheapest graphs that the rules lead to, by prediction."""
    first = Candidate(start, price(start), ())
    fused = condensed(start, rules, rewriter, price, limits.out_of_time)
    ends = [end for end in _ends(first, fused, rules, rewriter, price, limits) if end.cost < first.cost]
    limits = replace(limits, alpha=1 + (limits.alpha - 1) * max(1.0, USUAL / max(1, len(start.members))))
    shorter = replace(limits, candidates=limits.candidates // 2)
    searches: list[_Search] = []
    if ends:
        searches.append(_Search(rules, rewriter, price, shorter))
        searches[-1].run(min(ends, key=lambda end: end.cost))
    search = _Search(rules, rewriter, price, limits)
    exhausted = search.run(first)
    searches.append(search)
    for sort in search.obstacles():
        searches.append(_Search(rules, rewriter, price, shorter, without=sort))
        searches[-1].run(first)
    kept = [*ends, *(candidate for each in searches for candidate in each.kept)]
    seen = 1 + sum(each.count for each in searches)
    return Explored((first, *_cheapest(kept, limits.keep)), seen, exhausted, fused)


def _ends(
    first: Candidate,
    fused: Candidate | None,
    rules: Rules,
    rewriter: Rewriter,
    price: Price,
    limits: Limits,
) -> Iterator[Candidate]:
    """Where fusing leads, and where the shortest ways down lead from the start and from there."""
    starts = [first] if fused is None else [fused, first]
    for start in starts:
        yield start
        end = Way(start, rules, rewriter, price, limits.out_of_time).to_the_end()
        if end is not None:
            yield end


def _cheapest(candidates: list[Candidate], count: int) -> list[Candidate]:
    """One for each theme before a second: of variations on one theme the clock tells little, and one operator that is
    priced wrong would spoil all of them."""
    ordered = sorted(candidates, key=lambda c: (c.cost, len(c.steps)))
    themes: dict[Theme, Candidate] = {}
    for candidate in ordered:
        themes.setdefault(candidate.theme, candidate)
    firsts = set(map(id, themes.values()))
    others = (candidate for candidate in ordered if id(candidate) not in firsts)
    kept = [*themes.values(), *others][:count]
    return sorted(kept, key=lambda c: (c.cost, len(c.steps)))


class _Search:
    def __init__(
        self,
        rules: Rules,
        rewriter: Rewriter,
        price: Price,
        limits: Limits,
        without: Sort | None = None,
    ) -> None:
        self.rules, self.rewriter, self.price, self.limits = rules, rewriter, price, limits
        self.without = without
        self.likeness = Likeness(rewriter.constants, rewriter.reader)
        self.excluded: dict[Sort, float] = defaultdict(float)
        """Gains that were there together with that of a rule of this sort, which was taken."""
        self.visited: set[tuple[int, ...]] = set()
        self.queue: list[tuple[float, int, Candidate]] = []
        self.descents: list[tuple[float, int, Candidate]] = []
        """What pays, but was not the move that pays most: a smaller gain now may leave room for a larger one later."""
        self.kept: list[Candidate] = []
        self.count = self.pushed = 0
        self.turn = False
        self.best = self.deepest = float("inf")

    def run(self, start: Candidate) -> bool:
        """Whether nothing is left to be looked at."""
        self.best = start.cost
        self.visited.add(self.likeness.of(start.piece.results))
        heapq.heappush(self.queue, (start.cost, 0, start))
        while (current := self._next()) is not None:
            if not self._expand(current):
                return False
        return True

    def obstacles(self) -> list[Sort]:
        """Sorts of rules that were taken in the place of much else, the worst first."""
        least = WORTH_A_DETOUR * self.best
        worst = sorted(self.excluded, key=lambda sort: (-self.excluded[sort], sorted(sort[0]), sort[1]))[:DETOURS]
        return [sort for sort in worst if self.excluded[sort] > least]

    def _next(self) -> Candidate | None:
        """From both queues in turn, as long as they hold something near enough to the best. But what is cheaper than
        all that was looked at comes first: an end is worth more than a second way halfway down."""
        if self.queue and self.queue[0][0] < self.deepest:
            self.deepest = self.queue[0][0]
            return heapq.heappop(self.queue)[2]
        self.turn = not self.turn
        for queue, bound in self._queues() if self.turn else reversed(self._queues()):
            if queue and queue[0][0] <= bound * self.best:
                return heapq.heappop(queue)[2]
        return None

    def _queues(self) -> list[tuple[list[tuple[float, int, Candidate]], float]]:
        return [(self.queue, self.limits.alpha), (self.descents, max(self.limits.alpha, DESCENT))]

    def _expand(self, current: Candidate) -> bool:
        """All moves from a candidate; False when a limit was hit."""
        children: list[Candidate] = []
        within = True
        for match, made in self._moves(current):
            child = self._child(current, match, made)
            if child is not None:
                self._keep(child)
                children.append(child)
            if self.count >= self.limits.candidates or self.limits.out_of_time():
                within = False
                break
        self._push_all(current, children)
        return within

    def _push_all(self, current: Candidate, children: list[Candidate]) -> None:
        """The rewrites that pay most, together; alone those that exclude one of them: the others are there after it.

        What pays little waits: it may stand in the way of something that pays more.
        """
        children.sort(key=lambda child: child.cost)
        most = current.cost - children[0].cost if children else 0.0
        chosen: list[Taken] = []
        touched: set[Node] = set()
        for child in children:
            step = child.steps[-1]
            if not touched.isdisjoint(step.match.nodes) or not chosen:
                if most > 0 and not chosen:
                    chosen.append(step)
                    touched.update(step.match.nodes)
                elif child.cost < current.cost:
                    self._exclude(child, chosen, current.cost - child.cost)
                    self.pushed += 1
                    heapq.heappush(self.descents, (child.cost, self.pushed, child))
                elif child.climb <= CLIMB:
                    self._push(child)
            elif self._goes_along(child, current, chosen[0], most) and len(chosen) < TOGETHER:
                chosen.append(step)
                touched.update(step.match.nodes)
        if len(chosen) == 1:
            self._push(children[0])
        elif chosen:
            self._push_together(current, chosen)

    def _goes_along(self, child: Candidate, current: Candidate, leading: Taken, most: float) -> bool:
        """Whether a rewrite is made together with the one that gains most: one of the same sort that gains alike.

        Others are there after it, and may by then exclude something better: of four branches that are added up the
        first two become one, and the last two were better not merged side by side before it is their turn.
        """
        alike = current.cost - child.cost > ALIKE * most
        return alike and child.steps[-1].match.pattern.sort == leading.match.pattern.sort

    def _exclude(self, child: Candidate, chosen: Sequence[Taken], gain: float) -> None:
        match = child.steps[-1].match
        nodes = set(match.nodes)
        rivals = {rival.match.pattern.sort for rival in chosen if not nodes.isdisjoint(rival.match.nodes)}
        for sort in rivals - {match.pattern.sort}:
            self.excluded[sort] += gain

    def _push_together(self, current: Candidate, steps: Sequence[Taken]) -> None:
        piece, cost, taken_steps = current.piece, current.cost, list(current.steps)
        for wanted in steps:
            found = self._again(piece, wanted)
            if found is None:
                continue
            price = self.price(found.after)
            if price < cost:
                piece, cost = found.after, price
                taken_steps.append(found)
        together = Candidate(piece, cost, tuple(taken_steps))
        key = self.likeness.of(piece.results)
        if key not in self.visited:
            self.visited.add(key)
            self.count += 1
            self._keep(together)
        self._push(together)

    def _again(self, piece: Piece, wanted: Taken) -> Taken | None:
        """The same rewrite, after others were made."""
        found = self.rewriter.find(piece, wanted.match.pattern, wanted.step)
        return None if isinstance(found, str) else self.rewriter.take(piece, *found)

    def _child(self, current: Candidate, match: Match, made: Mapping[str, Value]) -> Candidate | None:
        step = self.rewriter.take(current.piece, match, made)
        key = self.likeness.of(step.after.results)
        if key in self.visited:
            return None
        cost = self.price(step.after)
        if self._is_idle(match, cost, current.cost):
            return None
        self.visited.add(key)
        self.count += 1
        steps = (*current.steps, step)
        if cost < current.cost:
            return Candidate(step.after, cost, steps)
        return Candidate(step.after, cost, steps, step.fresh, current.climb + 1)

    def _is_idle(self, match: Match, cost: float, before: float) -> bool:
        """Whether it pays nothing and leads nowhere: another order of sums that moves no weight, or the same work at
        run time with more work on weights."""
        if match.pattern.reorders and cost >= before:
            return not any(self.rewriter.constants.is_weight(value) for value in match.inputs.values())
        return match.pattern.grows and cost == before

    def _keep(self, candidate: Candidate) -> None:
        self.kept.append(candidate)
        self.best = min(self.best, candidate.cost)
        if len(self.kept) > 50 * self.limits.keep:
            self.kept = _cheapest(self.kept, self.limits.keep)

    def _push(self, candidate: Candidate) -> None:
        if candidate.cost <= self.limits.alpha * self.best:
            self.pushed += 1
            heapq.heappush(self.queue, (candidate.cost, self.pushed, candidate))

    def _moves(self, current: Candidate) -> Iterator[tuple[Match, Mapping[str, Value]]]:
        for node in current.piece.nodes:
            many: Counter[str] = Counter()
            for match, made in self.rewriter.moves(self.rules, node, current.piece):
                if current.fresh and current.fresh.isdisjoint(match.nodes):
                    continue
                if match.pattern.sort == self.without:
                    continue
                if len(match.pattern.roots) >= MANY_ROOTS:
                    many[match.pattern.rule.name] += 1
                    if many[match.pattern.rule.name] > SIBLINGS:
                        continue
                yield match, made
