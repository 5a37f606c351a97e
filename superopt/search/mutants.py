"""Mutants of a graph's programs, mended and proved, as rules for the search.

The clock is asked before the prover: what is no faster than the original is not worth a proof. But nothing competes
without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest

from superopt.partial.corrected import Attempt, Corrected, attempted, confirmed, mutants
from superopt.partial.lift import Place, places
from superopt.partial.program import Mutant
from superopt.partial.proofs import Proofs
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest
from superopt.search.ending import Ending
from superopt.search.hunted import Mutated
from superopt.search.mutated import is_region
from superopt.search.regions import Region, extract
from superopt.search.rulebook import Rulebook
from superopt.search.scales import Scales
from superopt.search.stages import Tell

LEAST_SHARE = 0.01
"""Part of what all programs cost under which one is not looked at."""
CURIOUS = 1.3
"""Predicted cost, over the original's, up to which a mutant is put on the clock: predictions know little of kernels."""
LOOKED_AT = 8
"""Mutants of one program that are mended, at most."""
TIMED = 10
"""What is timed of them, at most: one way of mending of each before a second."""
PROVED = 2
"""Mutants of one program that are proved, at most."""
WORTH = 0.97
"""Measured time, over the original's, from which on a proof is worth its seconds."""
EACH = 0.25
"""Seconds on the clock for each graph."""
PROOF = 10.0
"""Seconds for each proof, by the clock on the wall."""


class MutantFinder:
    """Adds rules to the book: of each program that costs enough, the mutants that are faster."""

    def __init__(
        self, book: Rulebook, rewriter: Rewriter, scales: Scales, seconds: float, tell: Tell, ending: Ending
    ) -> None:
        self.book, self.rewriter, self.scales = book, rewriter, scales
        self.seconds, self.tell, self.ending = seconds, tell, ending
        self.found = Mutated()
        self.notes: list[str] = []
        self._proofs = Proofs(book.registry, PROOF)
        self._seen: set[str] = set()
        self._clock = scales.timer.turn.clock

    def run(self, piece: Piece, where: str) -> None:
        started = self._clock()
        until = started + self.seconds - self.found.seconds
        for place in self._worthwhile(piece, where):
            if self._clock() > until or self.ending.is_asked():
                break
            self.found.programs += 1
            self.tell("mutating", f"{len(place.nodes)} nodes, {place.nodes[0].op} first")
            for corrected in self._corrected(place, extract(piece, place.around, where), until):
                self.found.rules[corrected.rule.name] = corrected.rule
                self.book.add(corrected.rule)
        self.found.seconds += self._clock() - started

    def _worthwhile(self, piece: Piece, where: str) -> list[Place]:
        """Programs that cost enough and that something else may be written in the place of, each once, the costliest
        first."""
        groups: dict[str, list[Place]] = {}
        for place in places(piece, self.rewriter):
            if not is_region(piece, place.around):
                continue
            groups.setdefault(str((place.original.given, place.original.steps)), []).append(place)
        prices = {text: self._price(piece, group[0], where) * len(group) for text, group in groups.items()}
        total = sum(price for text, price in prices.items() if len(groups[text][0].nodes) == 1)
        chosen = [t for t, price in prices.items() if price >= LEAST_SHARE * total and t not in self._seen]
        self._seen.update(groups)
        return [groups[text][0] for text in sorted(chosen, key=lambda text: -prices[text])]

    def _price(self, piece: Piece, place: Place, where: str) -> float:
        region = extract(piece, place.around, where)
        return self.scales.price(region.piece, region)

    def _corrected(self, place: Place, region: Region, until: float) -> Iterator[Corrected]:
        """The fastest, proved."""
        attempts = self._attempts(place, region, until)
        own, *times = self._times(region, [piece for _, piece in attempts])
        if own is None:
            return
        timed = zip(times, (attempt for attempt, _ in attempts), strict=True)
        faster = [(t, attempt) for t, attempt in timed if t is not None and t <= WORTH * own]
        proved = 0
        for _, attempt in sorted(faster, key=lambda pair: pair[0]):
            corrected = confirmed(attempt, self._proofs, tell=self._hear)
            if corrected is not None and corrected.rule.name not in self.book.digests:
                yield corrected
                proved += 1
            if proved >= PROVED or self._clock() > until:
                break

    def _attempts(self, place: Place, region: Region, until: float) -> list[tuple[Attempt, Piece]]:
        """Mutants as they would stand in the region, mended where they were wrong."""
        ways: list[list[tuple[Attempt, Piece]]] = []
        for mutant in self._promising(place, region):
            if self._clock() > until:
                break
            found = [
                (a, self._affordable(a.rule, region)) for a in attempted(mutant, self.book.registry, tell=self._hear)
            ]
            ways.append([(attempt, taken.after) for attempt, taken in found if taken is not None])
        in_turn = (pair for level in zip_longest(*ways) for pair in level if pair is not None)
        return list(islice(in_turn, TIMED))

    def _promising(self, place: Place, region: Region) -> Sequence[Mutant]:
        """The cheapest by prediction, one of each family before a second."""
        priced: dict[str, tuple[float, Mutant]] = {}
        for mutant in mutants(place.original, self.book.registry):
            self.found.mutants += 1
            taken = self._affordable(mutant.rule, region)
            if taken is not None:
                price = self.scales.price(taken.after, region)
                priced.setdefault(str(mutant.rule.right), (price, mutant))
        ordered = [mutant for _, mutant in sorted(priced.values(), key=lambda pair: pair[0])]
        firsts = {mutant.family: mutant for mutant in reversed(ordered)}
        chosen = [m for m in ordered if firsts[m.family] is m]
        return [*chosen, *(m for m in ordered if firsts[m.family] is not m)][:LOOKED_AT]

    def _affordable(self, rule: Rule, region: Region) -> Taken | None:
        """The region with the mutant in it, if that is not predicted to be much slower."""
        # What matches is remembered by the rule's name.
        named = replace(rule, name=f"mutant-{digest(rule, self.book.registry)}")
        pattern = compile_pattern(named, self.book.registry)
        if not pattern.roots:
            return None
        for node in region.piece.nodes:
            for match in self.rewriter.matches(pattern, node, region.piece):
                taken = self.rewriter.take(region.piece, *match)
                own, price = (self.scales.price(p, region) for p in (region.piece, taken.after))
                return taken if price <= CURIOUS * own else None
        return None

    def _times(self, region: Region, pieces: Sequence[Piece]) -> list[float | None]:
        subjects = [self.scales.subject(piece, region) for piece in (region.piece, *pieces)]
        self.found.timed += len(pieces)
        if not pieces:
            return [None]
        return self.scales.timer.time(subjects, EACH * len(subjects), hurried=self.ending.is_asked)

    def _hear(self, kind: str, what: str) -> None:
        if kind == "bug":
            self.notes.append(f"a mutant was thrown away, because its two tests disagree: {what}; please report")
