"""Rules from a recipe: enumerate each scene, then prove what does not follow from what was proved, smallest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from superopt.generate.answering import MEMORY, Workers
from superopt.generate.candidate import directions, to_rule
from superopt.generate.enumerate import Enumeration, Progress, Spread, alone
from superopt.generate.generalize import can_be_used
from superopt.generate.idle import is_idle
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger
from superopt.generate.macros import Macros, composed
from superopt.generate.offers import Offers
from superopt.generate.proving import Pool, Settled, settle
from superopt.generate.prune import Pruned, Pruner
from superopt.generate.recipe import EVERY, Recipe, Scene
from superopt.generate.reduce import is_found
from superopt.generate.respell import respelled
from superopt.generate.safety import trades_safety
from superopt.generate.several import joined, side_by_side
from superopt.generate.stage import Stage
from superopt.generate.term import Pair
from superopt.generate.tiles import Tiling, candidates
from superopt.generate.worth import runs
from superopt.generate.writing import Finding
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule

TOGETHER = 12
"""Candidates that are proved before the next are chosen: what the first prove, the others may follow from."""
TOGETHER_OFFERED = 150
"""Pairs that the pruner gets at a time."""


@dataclass
class Counts:
    """What became of everything, for one scene."""

    scene: str
    graphs: int = 0
    covered: float = 0.0
    """Graphs with one result: every spelling of every operand."""
    covered_several: float = 0.0
    """Graphs with several results, which are equal if each result is."""
    values: int = 0
    equal: int = 0
    free: int = 0
    """Of those: about weights alone, which nothing is gained by."""
    pruned: Pruned = field(default_factory=Pruned)
    asked: int = 0
    """Rules that the prover had to work on: those that numbers refute cost nothing."""
    proved: int = 0
    unsafe: int = 0
    """Of those proved: bad trades in floating point, which are not written."""
    refuted: int = 0
    unknown: int = 0
    enumerating: float = 0.0
    proving: float = 0.0
    left: int = 0
    """Pairs that were not looked at."""
    stopped: bool = False
    """The time was over, or enough was asked, before everything was looked at."""

    def count(self, settled: Settled) -> None:
        self.proved += settled.status == "proved"
        self.refuted += settled.status == "refuted"
        self.unknown += settled.status == "unknown"
        self.asked += settled.status != "refuted"

    def news(self, findings: Iterable[Finding], registry: Registry, known: Known) -> Iterator[Finding]:
        """Those that say more than what is known by now, are found in models and are no bad trade; they are known from
        then on."""
        for finding in findings:
            if trades_safety(finding.rule, registry):
                self.unsafe += 1
            elif is_found(finding.rule, registry) and not known.leads(finding.rule):
                known.add(finding.rule)
                yield finding


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    workers: int = 1
    seconds: float = 20.0
    """For each proof."""
    folders: tuple[Path, ...] = ()
    """Of the user's operator definitions."""
    memory: int = 2 << 30
    """Bytes for fingerprints; more of them go to disk."""
    candidates: int = 250
    """Most that the prover is asked about for one scene, the smallest first."""
    offered: int = 3_000
    """Most pairs of one scene that are looked at, the smallest first."""
    deadline: float = float("inf")
    """On the clock of time.monotonic."""


@dataclass(frozen=True)
class Notices:
    """Whom to tell how far it is."""

    enumerating: Callable[[Progress], None] = lambda _: None
    proving: Callable[[Counts], None] = lambda _: None


def generate(
    recipe: Recipe, registry: Registry, ledger: Ledger, settings: Settings, *, spread: Spread = alone,
    pool: Pool | None = None, notices: Notices | None = None, known: Known | None = None,
) -> Iterator[tuple[Counts, list[Finding]]]:  # fmt: skip
    """Scene by scene: what was counted, and the rules that were proved. What `known` rules say is not found again;
    those that are found become known."""
    told = notices or Notices()
    known = Known(registry) if known is None else known
    with nullcontext(pool) if pool is not None else Workers(settings.workers, settings.folders, MEMORY) as asked:
        for scene in recipe.scenes:
            if time.monotonic() > settings.deadline:
                return
            counts = Counts(scene.name)
            found = _Scene(scene, registry, ledger, settings, counts, told, asked, known)
            pairs = found.enumerated(spread)
            yield counts, list(found.proved(pairs))
        for construction in (*recipe.tilings, *recipe.macros):
            if time.monotonic() > settings.deadline:
                return
            counts = Counts(construction.name)
            rules = _constructed(construction, registry, known, counts)
            macro = isinstance(construction, Macros)
            yield (
                counts,
                list(_settled_whole(rules, macro, registry, ledger, settings, counts, told, asked, known)),
            )


def _constructed(construction: Tiling | Macros, registry: Registry, known: Known, counts: Counts) -> list[Rule]:
    """Candidates that need no enumeration; the tables that were tried for tilings count as graphs."""
    started = time.monotonic()
    if isinstance(construction, Macros):
        rules = list(composed(construction, known.rules, registry))
    else:
        tables, counts.graphs = construction.tables()
        rules = list(candidates(construction, tables))
    counts.equal, counts.enumerating = len(rules), time.monotonic() - started
    return rules


def _settled_whole(
    rules: list[Rule], macro: bool, registry: Registry, ledger: Ledger, settings: Settings, counts: Counts,
    notices: Notices, pool: Pool, known: Known,
) -> Iterator[Finding]:  # fmt: skip
    """What is constructed instead of enumerated goes the same way from there: to the prover as it is, and out."""
    started = time.monotonic()
    rules, beyond = rules[: settings.candidates], rules[settings.candidates :]
    while rules and time.monotonic() < settings.deadline:
        chosen, rules = rules[: settings.workers], rules[settings.workers :]
        for settled in settle(chosen, settings.folders, ledger, seconds=settings.seconds, pool=pool, widen=False):
            counts.count(settled)
            if settled.rule is not None:
                yield from counts.news([Finding(settled.rule, counts.scene, macro)], registry, known)
        counts.proving = time.monotonic() - started
        notices.proving(counts)
    counts.left = len(rules) + len(beyond)
    counts.stopped = bool(counts.left)


class _Scene:
    def __init__(
        self, scene: Scene, registry: Registry, ledger: Ledger, settings: Settings, counts: Counts, notices: Notices,
        pool: Pool, known: Known,
    ) -> None:  # fmt: skip
        self.pool, self.known = pool, known
        self.registry, self.ledger, self.settings, self.counts, self.notices = (
            registry,
            ledger,
            settings,
            counts,
            notices,
        )
        self.stage = Stage(scene, registry, settings.seed)
        self.beyond = 0
        self._is_about_few = scene.laws < EVERY
        self._room = scene.laws
        """Laws that may still be found."""

    def enumerated(self, spread: Spread) -> list[Pair]:
        started = time.monotonic()
        enumeration = Enumeration(
            self.stage, self.stage.scene.max_ops, spread, self.notices.enumerating, memory=self.settings.memory
        )
        pairs = list(enumeration.run())
        progress = enumeration.progress
        self.counts.graphs, self.counts.covered = progress.graphs, progress.covered
        self.counts.covered_several = side_by_side(enumeration.level_counts, self.stage.scene.max_ops)
        self.counts.values, self.counts.equal = progress.values, progress.candidates
        self.beyond = progress.beyond
        self.counts.enumerating = time.monotonic() - started
        found = pairs + list(joined(pairs, self.stage.scene))
        found = [pair for pair in found if len(pair.left) >= self.stage.scene.results]
        running = [pair for pair in found if runs(pair, self.stage.scene)]
        self.counts.free = len(found) - len(running)
        return running

    def proved(self, pairs: Iterable[Pair]) -> Iterator[Finding]:
        started = time.monotonic()
        offers = Offers(pairs, self.stage, TOGETHER_OFFERED)
        pruner = Pruner(offers.scene, registry=self.registry)
        self.counts.pruned = pruner.report
        while chosen := self._next(pruner, offers):
            if self._is_enough():
                self.counts.stopped = True
                break
            failed: list[Pair] = []
            for pair, ways in self._settled(chosen, offers.scene, pruner):
                new = [finding for _, finding in ways if finding is not None]
                if self._is_about_few and new and all(is_idle(finding.rule) for finding in new):
                    pruner.reject(pair)  # nothing follows from what is not shipped
                elif not ways:
                    pruner.reject(pair)
                    failed += offers.originals(pair)
                elif pruner.accept(pair if len(ways) > 1 else ways[0][0], both=len(ways) > 1, known=not new):
                    self._room -= bool(new)
                    yield from self.counts.news(new, self.registry, self.known)
            if failed:
                pruner.offer(failed)
            self.counts.proving = time.monotonic() - started
            self.notices.proving(self.counts)
        self.counts.left = len(offers) + self.beyond
        self.counts.stopped = self.counts.stopped or bool(self.counts.left)
        self.counts.proving = time.monotonic() - started

    def _next(self, pruner: Pruner, offers: Offers) -> list[Pair]:
        """What to prove next: larger pairs are looked at when the smaller ones are decided, macros at the end."""
        while (
            not (chosen := pruner.next(min(TOGETHER, self._room), macros=not offers))
            and offers
            and not self._is_enough()
        ):
            pairs = offers.take()
            pruner.widen(offers.scene)
            pruner.offer(pairs)
        return chosen

    def _is_enough(self) -> bool:
        settings, counts = self.settings, self.counts
        over = time.monotonic() > settings.deadline or counts.asked >= settings.candidates or self._room < 1
        return over or counts.pruned.offered >= settings.offered

    def _settled(
        self, chosen: list[Pair], scene: Scene, pruner: Pruner
    ) -> Iterator[tuple[Pair, list[tuple[Pair, Finding | None]]]]:
        """Each pair with the ways in which it may be used, and the rule of each; none where known rules do as much."""
        found: dict[Pair, list[tuple[Pair, Finding | None]]] = {pair: [] for pair in chosen}
        asked: list[tuple[Pair, Pair, Rule]] = []
        for pair in chosen:
            for way in directions(pair, scene):
                # One law has one spelling, so that scenes which share it ask for its proof once.
                rule = respelled(to_rule(way, scene, "candidate"))
                if not can_be_used(rule):
                    continue
                if self.known.leads(rule):
                    found[pair].append((way, None))
                else:
                    asked.append((pair, way, rule))
        for (pair, way, _), settled in zip(asked, self._verdicts([rule for _, _, rule in asked]), strict=True):
            self.counts.count(settled)
            if settled.rule is not None:
                found[pair].append(
                    (way, Finding(respelled(settled.rule), scene.name, pruner.is_macro(pair), scene.uphill))
                )
        yield from found.items()

    def _verdicts(self, rules: list[Rule]) -> Iterator[Settled]:
        settings = self.settings
        return settle(rules, settings.folders, self.ledger, seconds=settings.seconds, pool=self.pool)
