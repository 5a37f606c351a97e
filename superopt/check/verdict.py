"""Gathers what every run showed and says it: equal, different or unchecked, with the reasons."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from superopt.check.compare import Gap
from superopt.check.noise import MULTIPLE, PRECISE_MULTIPLE, Judgement, Own, judge
from superopt.check.reference import Reference, Run
from superopt.check.tolerance import STEP_SHARE, Rule
from superopt.report import CheckReport, OutputCheck

Evidence = Callable[[list[Run]], Mapping[int, Mapping[str, Own]]]
"""For runs in doubt, by ticket and output, the original's gaps to itself."""


@dataclass
class _Tally:
    """One output over all runs."""

    rule: Rule
    absolute: float = 0.0
    ratio: float = 0.0
    factor: float = 1.0
    steps: int = 0
    elements: int = 0
    telling: int = 0
    doubts: list[tuple[Run, Gap]] = field(default_factory=list[tuple[Run, Gap]])
    aside: int = 0
    wrong: bool = False

    def add(self, gap: Gap) -> None:
        self.absolute, self.ratio = max(self.absolute, gap.absolute), max(self.ratio, gap.ratio)
        self.steps, self.elements = self.steps + gap.steps, self.elements + gap.elements
        self.telling += gap.telling


class Verdict:
    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._notes = list(reference.notes)
        self._tallies = {
            port.name: _Tally(reference.rules[port.name])
            for port in reference.outputs
            if port.name not in reference.draws
        }
        self._runs = 0
        self._answered: list[str] = []
        """Of input sets with a size of 0, those that were met."""

    def answered(self, run: Run) -> None:
        self._answered.append(run.case.text)

    def left_out(self, run: Run, why: str) -> None:
        self._notes.append(f"left out: {run.case.text}: {why}")

    def add(self, run: Run, gaps: Mapping[str, Gap]) -> None:
        """What the candidate did on one input set; gaps of random outputs are not among them."""
        self._runs += 1
        for name, gap in gaps.items():
            tally = self._tallies[name]
            if gap.within:
                tally.add(gap)
            else:
                tally.doubts.append((run, gap))

    def different(self, reason: str) -> CheckReport:
        return self._report("different", reason)

    def concluded(self, evidence: Evidence) -> CheckReport:
        doubtful = {run.ticket: run for tally in self._tallies.values() for run, _ in tally.doubts}
        own = evidence(list(doubtful.values())) if doubtful else {}
        reasons = [r for name, tally in self._tallies.items() for r in self._resolve(name, tally, own)]
        if reasons:
            return self._report("different", reasons[0])
        for name, tally in self._tallies.items():
            if tally.steps > STEP_SHARE * tally.elements:
                tally.wrong = True
                share = f"{tally.steps} of {tally.elements} values are one step off"
                return self._report("different", f"output {name}: {share}, more than a rounding boundary explains")
            if tally.steps:
                self._notes.append(f"output {name}: {tally.steps} of {tally.elements} codes are one step off")
        return self._equal_if_compared()

    def _resolve(self, name: str, tally: _Tally, own: Mapping[int, Mapping[str, Own]]) -> list[str]:
        """Holds each doubt against the original's own noise; the worst comes first."""
        reasons: list[str] = []
        widest = Judgement("widened")
        for run, gap in sorted(tally.doubts, key=lambda doubt: -doubt[1].ratio):
            found = judge(gap, own.get(run.ticket, {}).get(name, Own()), tally.rule.cap)
            if found.verdict == "different":
                tally.wrong = True
                tally.add(gap)
                reasons.append(f"output {name}: {_described(gap, found.own)}; on {run.case.text}")
            elif found.verdict == "aside":
                tally.aside += 1
                what = "does not repeat itself" if gap.wrong or gap.structure else "moves beyond any tolerance"
                self._notes.append(
                    f"output {name}: nothing follows from {run.case.text}: under noise of the size of rounding the "
                    f"original {what}"
                )
            else:
                tally.add(gap)
                if found.factor > widest.factor:
                    widest = found
        if widest.factor > 1:
            tally.factor = widest.factor
            self._notes.append(
                f"output {name}: tolerance widened {widest.factor:.3g} times, because the original itself "
                f"{_unsteady(widest.own)}"
            )
        return reasons

    def _equal_if_compared(self) -> CheckReport:
        for name in self._reference.draws:
            self._notes.append(f"output {name} is random: compared by element type, shape, mean and spread only")
        lost = [name for name, tally in self._tallies.items() if 2 * tally.aside > self._runs]
        if lost:
            return self._report("unchecked", f"output {', '.join(lost)}: too unstable to compare on most input sets")
        empty = {p.name for p in self._reference.outputs if 0 in (p.shape or ())}  # its shape is all there is of it
        silent = [name for name, tally in self._tallies.items() if not tally.telling and name not in empty]
        if len(silent) == len(self._tallies):
            if self._reference.draws and not silent:
                return self._report("unchecked", "every output is random: no value was compared")
            return self._report("unchecked", "no output held a number on any input set (all NaN, infinite or empty)")
        for name in silent:
            self._notes.append(f"output {name} was NaN, infinite or empty on every input set: no value was compared")
        return self._report("equal", "")

    def _report(self, status: str, reason: str) -> CheckReport:
        ports = {port.name: port for port in self._reference.outputs}
        return CheckReport.model_validate(
            {
                "status": status,
                "reason": reason,
                "runs": self._runs + len(self._answered),
                "inputs": [*(run.case.text for run in self._reference.runs[: self._runs]), *self._answered],
                "outputs": [_output(name, str(ports[name].dtype), tally) for name, tally in self._tallies.items()],
                "notes": self._notes,
            }
        )


def _output(name: str, dtype: str, tally: _Tally) -> OutputCheck:
    """The relative error is measured against what the relative tolerance is: |a|, the scale and the absolute part."""
    rule = tally.rule
    return OutputCheck(
        output=name,
        dtype=dtype,
        max_absolute_error=min(tally.absolute, sys.float_info.max),
        max_relative_error=min(tally.ratio * rule.relative, sys.float_info.max),
        absolute_tolerance=1.0 if rule.steps else rule.absolute * tally.factor,
        relative_tolerance=rule.relative * tally.factor,
        equal=not tally.wrong,
    )


def _unsteady(own: Own) -> str:
    """In words, what of the original allows for more."""
    if MULTIPLE * own.noise >= PRECISE_MULTIPLE * own.imprecision:
        noise = f"moves by {own.noise:.3g} tolerances under noise of the size of rounding"
        return f"{noise} (at most {MULTIPLE:g} times that is allowed)"
    off = f"is off by {own.imprecision:.3g} tolerances from itself, computed more precisely"
    return f"{off} (at most {PRECISE_MULTIPLE:g} times that is allowed)"


def _described(gap: Gap, own: Own) -> str:
    if gap.structure:
        return gap.structure
    if gap.wrong:
        return f"{gap.wrong_count} of {gap.elements} values differ where they must be equal"
    size = f"off by {gap.absolute:.3g}, {gap.ratio:.3g} times the tolerance"
    precise = f", and it is {own.imprecision:.3g} times from itself, computed more precisely" if own.imprecision else ""
    return f"{size} (the original's own noise is {own.noise:.3g} times{precise})"
