"""What a comparison found; it travels as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from pydantic import Field

from superopt.report import Interval, Latency, Record, TimingReport

Verdict: TypeAlias = Literal["faster", "not faster", "slower"]


class SubjectTiming(Record):
    name: str
    latency: Latency | None = Field(description="none when it could not be run")


class PairTiming(Record):
    """One subject against the first."""

    name: str
    verdict: Verdict
    reason: str = Field(description="what the verdict rests on")
    speedup: float | None = Field(description="the first's time over this one's, from interleaved pairs")
    interval: Interval | None = Field(description="95 % confidence interval; none from fewer than two sittings")
    sittings: int = Field(description="independent openings of both models behind speed-up and interval")
    pairs: int = Field(description="pairs of samples in those sittings")


class Comparison(Record):
    """Subjects timed in one interleaved run; the first is what the others are measured against."""

    subjects: tuple[SubjectTiming, ...]
    pairs: tuple[PairTiming, ...]
    seconds: float
    one_at_a_time: bool = Field(description="models were too large to be open together")

    def pair(self, name: str) -> PairTiming:
        return next(p for p in self.pairs if p.name == name)

    def latency(self, name: str) -> Latency | None:
        return next(s.latency for s in self.subjects if s.name == name)

    def renamed(self, names: Sequence[str]) -> Comparison:
        """The same under other names: a cost file knows subjects by their content and their order."""
        called = dict(zip((s.name for s in self.subjects), names, strict=True))
        return self.model_copy(
            update={
                "subjects": tuple(s.model_copy(update={"name": called[s.name]}) for s in self.subjects),
                "pairs": tuple(p.model_copy(update={"name": called[p.name]}) for p in self.pairs),
            }
        )

    def report(self, name: str, shapes: Mapping[str, Sequence[int]], frozen: bool) -> TimingReport:
        """One pair as the report of a run shows it."""
        pair = self.pair(name)
        return TimingReport(
            status=pair.verdict,
            reason=pair.reason,
            before=self.subjects[0].latency,
            after=self.latency(name),
            speedup=pair.speedup,
            speedup_interval=pair.interval,
            shapes={n: list(s) for n, s in shapes.items()},
            frozen=frozen,
        )
