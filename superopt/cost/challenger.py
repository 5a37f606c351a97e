"""One model that is held against the first: what was seen of it, and what was decided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from superopt.cost.result import PairTiming, Verdict
from superopt.cost.sitting import Sitting
from superopt.cost.statistics import Estimate, ratio_estimate
from superopt.report import Interval

FIRST = 0
REPORTED = 0.95


@dataclass
class Evidence:
    log_ratios: list[float] = field(default_factory=list[float])
    pairs: int = 0

    def __len__(self) -> int:
        return len(self.log_ratios)

    def add(self, sitting: Sitting, subject: int) -> None:
        self.log_ratios.append(sitting.log_ratio(FIRST, subject))
        self.pairs += min(len(sitting.samples[FIRST]), len(sitting.samples[subject]))

    def extend(self, other: Evidence) -> None:
        self.log_ratios += other.log_ratios
        self.pairs += other.pairs

    def speedup(self, confidence: float) -> Estimate:
        return ratio_estimate(self.log_ratios, confidence)


@dataclass
class Challenger:
    subject: int
    seen: Evidence = field(default_factory=Evidence)
    """Every sitting, whatever it was for."""
    explored: Evidence = field(default_factory=Evidence)
    told_apart: bool = False
    confirmations: int = 0
    verdict: Verdict | None = None
    reason: str = ""
    evidence: Evidence = field(default_factory=Evidence)

    def decide(self, verdict: Verdict, reason: str, evidence: Evidence) -> None:
        self.verdict, self.reason, self.evidence = verdict, reason, evidence

    def timing(self, name: str) -> PairTiming:
        found = self.evidence.speedup(REPORTED) if self.evidence else None
        bounded = found is not None and math.isfinite(found.high)
        return PairTiming(
            name=name,
            verdict=self.verdict or "not faster",
            reason=self.reason,
            speedup=None if found is None else found.value,
            interval=Interval(low=found.low, high=found.high) if found and bounded else None,
            sittings=len(self.evidence),
            pairs=self.evidence.pairs,
        )
