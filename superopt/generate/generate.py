"""Rules from a recipe: enumerate each scene, then prove what does not follow from what was proved, smallest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from superopt.generate.abstract import Abstraction
from superopt.generate.answering import MEMORY, Workers
from superopt.generate.candidate import directions, first_of_its_names, to_rule
from superopt.generate.enumerate import Enumeration, Progress, Spread, alone
from superopt.generate.generalize import can_be_used
from superopt.generate.ledger import Ledger
from superopt.generate.proving import Pool, Settled, settle
from superopt.generate.prune import Pruned, Pruner
from superopt.generate.recipe import Recipe, Scene
from superopt.generate.respell import respelled
from superopt.generate.several import joined
from superopt.generate.stage import Stage
from superopt.generate.term import Pair
from superopt.generate.writing import Finding
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule

TOGETHER = 12
"""Candidates that are proved before the next are chosen: what the first prove, the others may follow from."""
ORIGINALS = 2
"""Pairs kept for each general one, in case that the general one is not true."""


@dataclass
class Counts:
    """What became of everything, for one scene."""

    scene: str
    graphs: int = 0
    covered: float = 0.0
    values: int = 0
    equal: int = 0
    pruned: Pruned = field(default_factory=Pruned)
    proved: int = 0
    refuted: int = 0
    unknown: int = 0
    enumerating: float = 0.0
    proving: float = 0.0
    stopped: bool = False
    """The time was over before everything was looked at."""


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
    deadline: float = float("inf")
    """On the clock of time.monotonic."""


@dataclass(frozen=True)
class Notices:
    """Whom to tell how far it is."""

    enumerating: Callable[[Progress], None] = lambda _: None
    proving: Callable[[Counts], None] = lambda _: None


def generate(
    recipe: Recipe, registry: Registry, ledger: Ledger, settings: Settings, *, spread: Spread = alone,
    pool: Pool | None = None, notices: Notices | None = None,
) -> Iterator[tuple[Counts, list[Finding]]]:  # fmt: skip
    """Scene by scene: what was counted, and the rules that were proved."""
    told = notices or Notices()
    with nullcontext(pool) if pool is not None else Workers(settings.workers, settings.folders, MEMORY) as asked:
        for scene in recipe.scenes:
            if time.monotonic() > settings.deadline:
                return
            counts = Counts(scene.name)
            found = _Scene(scene, registry, ledger, settings, counts, told, asked)
            pairs = found.enumerated(spread)
            yield counts, list(found.proved(pairs))


class _Scene:
    def __init__(
        self, scene: Scene, registry: Registry, ledger: Ledger, settings: Settings, counts: Counts, notices: Notices,
        pool: Pool,
    ) -> None:  # fmt: skip
        self.pool = pool
        self.registry, self.ledger, self.settings, self.counts, self.notices = (
            registry,
            ledger,
            settings,
            counts,
            notices,
        )
        self.stage = Stage(scene, registry, settings.seed)

    def enumerated(self, spread: Spread) -> list[Pair]:
        started = time.monotonic()
        enumeration = Enumeration(
            self.stage, self.stage.scene.max_ops, spread, self.notices.enumerating, memory=self.settings.memory
        )
        pairs = list(enumeration.run())
        progress = enumeration.progress
        self.counts.graphs, self.counts.covered = progress.graphs, progress.covered
        self.counts.values, self.counts.equal = progress.values, progress.candidates
        self.counts.enumerating = time.monotonic() - started
        return pairs + list(joined(pairs, self.stage.scene))

    def proved(self, pairs: Iterable[Pair]) -> Iterator[Finding]:
        started = time.monotonic()
        abstraction = Abstraction(self.stage)
        originals: dict[Pair, list[Pair]] = {}
        for pair in pairs:
            if not first_of_its_names(pair, self.stage.scene):
                continue
            kept = originals.setdefault(abstraction.general(pair), [])
            if len(kept) < ORIGINALS:
                kept.append(pair)
        scene = abstraction.scene
        pruner = Pruner(scene, registry=self.registry)
        pruner.offer(originals)
        self.counts.pruned = pruner.report
        while chosen := pruner.next(TOGETHER):
            if time.monotonic() > self.settings.deadline:
                self.counts.stopped = True
                break
            failed: list[Pair] = []
            for pair, ways in self._settled(chosen, scene, pruner):
                if not ways:
                    pruner.reject(pair)
                    failed += [p for p in originals.get(pair, ()) if p != pair]
                elif pruner.accept(pair if len(ways) > 1 else ways[0][0], both=len(ways) > 1):
                    yield from (finding for _, finding in ways)
            if failed:
                pruner.offer(failed)
            self.counts.proving = time.monotonic() - started
            self.notices.proving(self.counts)
        self.counts.proving = time.monotonic() - started

    def _settled(
        self, chosen: list[Pair], scene: Scene, pruner: Pruner
    ) -> Iterator[tuple[Pair, list[tuple[Pair, Finding]]]]:
        """Each pair with the rules that came of it, in either direction."""
        found: dict[Pair, list[tuple[Pair, Finding]]] = {pair: [] for pair in chosen}
        # One law has one spelling, so that scenes which share it ask for its proof once.
        spelled = [
            (pair, way, respelled(to_rule(way, scene, "candidate")))
            for pair in chosen
            for way in directions(pair, scene)
        ]
        asked = [(pair, way, rule) for pair, way, rule in spelled if can_be_used(rule)]
        for (pair, way, _), settled in zip(asked, self._verdicts([rule for _, _, rule in asked]), strict=True):
            self._count(settled)
            if settled.rule is not None:
                found[pair].append((way, Finding(respelled(settled.rule), scene.name, pruner.is_macro(pair))))
        yield from found.items()

    def _verdicts(self, rules: list[Rule]) -> Iterator[Settled]:
        settings = self.settings
        return settle(rules, settings.folders, self.ledger, seconds=settings.seconds, pool=self.pool)

    def _count(self, settled: Settled) -> None:
        self.counts.proved += settled.status == "proved"
        self.counts.refuted += settled.status == "refuted"
        self.counts.unknown += settled.status == "unknown"
