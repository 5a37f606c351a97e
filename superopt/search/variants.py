"""Graphs that compete for one model: tidied only, with all rewrites that the search found, with those that were timed
faster, with the best of them; with everything fused, with everything that is predicted to pay; and what is fastest of
these without what brings in one operator, or with its weights turned.

A region's time is not its time in the model; which variant is best, whole models say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.ir.onnx.stats import total_bytes
from superopt.normalize import Normalized, normalize
from superopt.report import CheckReport, Rewrite
from superopt.runtime.deployment import Deployment
from superopt.search.ending import Ending
from superopt.search.hunted import FORESEEN, FUSED, SPREAD, STAYING, Hunted
from superopt.search.leaving_out import MOST, brought_in, leaving_out
from superopt.search.stages import Tell
from superopt.search.trace import Traced
from superopt.search.workshop import Workshop

ATTEMPTS = 5
ROOM = 2 << 30
"""Bytes of files for variants that only leave something out, at most."""
TIDIED, ALL, SURE, BEST = "tidied", "all rewrites", "the sure rewrites", "the best rewrites"
WITHDRAWN, TURNED = "grouped biases apart", "weights turned"

Check = Callable[[Graph], CheckReport]


@dataclass(frozen=True)
class Variant:
    """A graph, how it came about, and how it was checked once it was."""

    name: str
    graph: Graph
    passes: tuple[Rewrite, ...]
    trace: tuple[Traced, ...] = ()
    check: CheckReport | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    is_repaired: bool = False
    """Whether rewrites were left out because they changed the outputs."""
    leaves_out: str = ""
    """The operator that was left out to see whether it pays."""
    deployment: Deployment | None = None
    """What it is timed with, where that is something else than all others are."""

    @property
    def is_changed(self) -> bool:
        return bool(self.passes or self.trace)

    @property
    def is_guess(self) -> bool:
        """Whether nobody has timed its regions."""
        return bool(self.leaves_out) or self.name in (FUSED, STAYING, FORESEEN, SPREAD, TURNED)


def variants(workshop: Workshop, passes: tuple[Rewrite, ...], hunted: Hunted) -> list[Variant]:
    """Those worth timing, tidied first."""
    found = [Variant(TIDIED, workshop.tidied, passes)]
    if not hunted.trace:
        return found
    graph, made, notes = workshop.build(hunted.trace)
    if made:
        found.append(Variant(ALL, graph, passes, tuple(made), notes=tuple(notes)))
    sure = sorted((gain for gain in hunted.gains if gain.sure), key=lambda gain: -gain.seconds)
    most = len({record.kind for record in made})
    for name, gains in ((SURE, sure), (BEST, sure[: (len(sure) + 1) // 2])):
        kept = {gain.kind for gain in gains}
        if not made or len(kept) >= most:
            continue
        graph, some, notes = workshop.build([record for record in hunted.trace if record.kind in kept])
        if some:
            found.append(Variant(name, graph, passes, tuple(some), notes=tuple(notes)))
            most = len(kept)
    return found


def guessed(
    workshop: Workshop, passes: tuple[Rewrite, ...], hunted: Hunted, others: Sequence[Variant]
) -> Iterator[Variant]:
    """What no region was timed for, where that is something else: everything that can be fused, that is predicted."""
    if total_bytes(workshop.model) > ROOM:
        return
    known = [[(record.members, record.steps) for record in v.trace] for v in others]
    for name, trace in hunted.guesses.items():
        graph, made, notes = workshop.build(trace)
        way = [(record.members, record.steps) for record in made]
        if made and way not in known:
            known.append(way)
            yield Variant(name, graph, passes, tuple(made), notes=tuple(notes))


def leaner(workshop: Workshop, base: Variant, others: Sequence[Variant]) -> Iterator[Variant]:
    """The variant without the rewrites that bring in one operator, for those operators that there are most of."""
    room = ROOM // max(1, total_bytes(workshop.model))
    seen = [base.trace, *(v.trace for v in others)]
    rules = workshop.book.rules.patterns
    used = {step.rule: rules[step.rule].rule for record in base.trace for step in record.steps}
    for operator in brought_in(workshop.tidied, base.graph)[: min(MOST, room)]:
        graph, made, notes = workshop.build(workshop.fitting(leaving_out(base.trace, operator, used)))
        if made and tuple(made) not in seen:
            seen.append(tuple(made))
            name = f"{base.name} but {operator}"
            yield Variant(name, graph, base.passes, tuple(made), notes=tuple(notes), leaves_out=operator)


@dataclass
class Repairer:
    """When a variant differs from the original, finds the rewrite that did it, leaves it out and tries again."""

    model: Model
    workshop: Workshop
    growth: int | None
    check: Check
    tell: Tell
    ending: Ending = field(default_factory=Ending)
    forbidden: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])
    passes: tuple[Rewrite, ...] = ()

    def repaired(self, variant: Variant) -> Variant:
        """The variant with every rewrite that survives the check; its check may still say that it differs."""
        trace, self.passes = variant.trace, variant.passes
        report = self.check(variant.graph)
        for _ in range(ATTEMPTS):
            if report.status != "different" or not variant.is_changed or self.ending.is_asked():
                break
            self.tell("looking for the rewrite that changed the outputs", f"{len(trace)} regions")
            if trace and self.check(self.workshop.tidied).status != "different":
                trace = self._without_guilt(trace, report.reason)
            else:
                self._forbid_guilty_pass(report.reason)
            graph, made, notes = self.workshop.build(trace)
            trace = tuple(made)
            notes = (*variant.notes, *notes)
            variant = replace(variant, graph=graph, passes=self.passes, trace=trace, notes=notes)
            report = self.check(graph)
        notes, left_out = (*variant.notes, *self.notes), tuple(sorted(self.forbidden))
        return replace(variant, check=report, notes=notes, left_out=left_out, is_repaired=bool(self.notes))

    def _without_guilt(self, trace: tuple[Traced, ...], reason: str) -> tuple[Traced, ...]:
        """Of the first region after which the model differs, and of those like it, only the steps up to the first that
        does it."""
        regions = _first(len(trace), lambda count: self._differs(trace[:count]))
        guilty = trace[regions - 1]
        fresh = 1 + max(record.kind for record in trace)  # it is another region now, which nobody has timed

        def shortened(count: int, regions: int) -> tuple[Traced, ...]:
            return tuple(
                replace(r, steps=r.steps[:count], kind=fresh) if r.kind == guilty.kind else r
                for r in trace[:regions]
                if count or r.kind != guilty.kind
            )

        steps = _first(len(guilty.steps), lambda count: self._differs(shortened(count, regions)))
        rules = ", ".join(dict.fromkeys(step.rule for step in guilty.steps[steps - 1 :]))
        self.notes.append(f"{rules} in region {guilty.kind} changed the outputs, left out: {reason}")
        return shortened(steps - 1, len(trace))

    def _tidied(self, limit: int | None = None) -> Normalized:
        for_cuda = self.workshop.vocabulary.for_cuda
        return normalize(self.model, growth_cap=self.growth, forbid=self.forbidden, limit=limit, for_cuda=for_cuda)

    def _differs(self, trace: Sequence[Traced]) -> bool:
        graph, _, _ = self.workshop.build(trace)
        return self.check(graph).status == "different"

    def _forbid_guilty_pass(self, reason: str) -> None:
        found = self._tidied()
        if not found.rewrites:
            return

        def differs(count: int) -> bool:
            return self.check(self._tidied(count).graph).status == "different"

        guilty = found.rewrites[_first(len(found.rewrites), differs) - 1]
        self.forbidden.add((guilty.name, guilty.place))
        self.notes.append(f"{guilty.name} at {guilty.place} changed the outputs and was left out: {reason}")
        tidied = self._tidied()
        self.passes = tidied.rewrites
        self.workshop = Workshop(self.model, tidied.graph, self.workshop.book, self.workshop.vocabulary)


def _first(count: int, differs: Callable[[int], bool]) -> int:
    """How many of so many it takes to differ, by halving: none does not, all do."""
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        right, wrong = (right, middle) if differs(middle) else (middle, wrong)
    return wrong
