"""What the clock said: of one model, of original and result, of several models side by side."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from superopt.report.record import SCHEMA_VERSION, Environment, Record


class Interval(Record):
    low: float
    high: float


class Latency(Record):
    """Seconds for one run of the model."""

    median: float
    interval: Interval = Field(description="95 % confidence interval of the median")
    spread: float = Field(description="interquartile range over median")
    runs: int


class PointTiming(Record):
    """One of several sizes that a model was timed at."""

    sizes: dict[str, int]
    weight: float
    before: Latency | None
    after: Latency | None
    speedup: float | None
    speedup_interval: Interval | None


class TimingReport(Record):
    """Original and result timed in one interleaved session."""

    status: Literal["faster", "not faster", "slower", "untimed"]
    reason: str = Field(description="why there is no timing, or what stopped it")
    before: Latency | None
    after: Latency | None
    speedup: float | None = Field(description="before over after, median of interleaved pairs")
    speedup_interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    shapes: dict[str, list[int]] = Field(description="the input shapes that were timed")
    frozen: bool = Field(description="taken from the cost file instead of the clock")
    points: list[PointTiming] = Field(
        default_factory=list["PointTiming"], description="each of several sizes; the figures above weigh them together"
    )

    @classmethod
    def untimed(cls, reason: str) -> Self:
        return cls(
            status="untimed", reason=reason, before=None, after=None,
            speedup=None, speedup_interval=None, shapes={}, frozen=False,
        )  # fmt: skip


class Profile(Record):
    """Where the time goes, as onnxruntime's own profiler has it: microseconds per run, by operator it executed.

    The operators are those of the graph after onnxruntime's optimizations. The profiler costs time itself, so that the
    sums are above the latency.
    """

    before: dict[str, float]
    after: dict[str, float]
    runs: int = Field(description="over which the profile is an average")
    note: str = Field(default="", description="what the numbers do not say")


class BenchRow(Record):
    model: str
    file_bytes: int
    latency: Latency | None = Field(description="none when it could not be run")
    speedup: float | None = Field(description="the first model's time over this one's")
    speedup_interval: Interval | None
    verdict: str = Field(description="against the first model: faster, not faster, slower; or why there is none")


class BenchReport(Record):
    """What `superopt bench` measured, in one interleaved run."""

    schema_version: int = SCHEMA_VERSION
    rows: list[BenchRow]
    shapes: dict[str, list[int]]
    environment: Environment
    peak_memory_bytes: int
    frozen: bool
    notes: list[str] = Field(default_factory=list[str], description="what the numbers do not say")
