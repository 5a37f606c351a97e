"""The session options that were measured, and what standard operators alone would give."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import Record
from superopt.report.timing import Interval


class DeploymentTrial(Record):
    """One change to the session options."""

    change: str
    dimension: str
    against: str = Field(description="the deployment it was timed against: the best until then")
    verdict: Literal["faster", "not faster", "slower", "failed", "different", "not tried"]
    speedup: float | None
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    kept: bool = Field(description="part of what was timed against the base in the end")
    note: str = Field(description="what the verdict rests on, or why there is none")


class DeploymentReport(Record):
    """The session options that were measured, and the way to them."""

    options: dict[str, str] = Field(description="what the returned model was timed with, under onnxruntime's names")
    code: str = Field(description="Python that opens the model with them")
    base: dict[str, str] = Field(description="the options without a search")
    searched: bool
    verdict: Literal["faster", "base"] = Field(description="`base`: nothing else was faster with confidence")
    speedup: float | None = Field(description="the base's time over the best's, on the same graph")
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    tried: list[DeploymentTrial]
    notes: list[str]
    seconds: float
    original: dict[str, str] | None = Field(
        default=None,
        description="the options that the original runs best with, where the last comparison asked for them",
    )


class Portable(Record):
    """What the result would be with standard ONNX operators alone."""

    operators: dict[str, int] = Field(description="onnxruntime's own operators in the result, which `standard` forbids")
    speedup: float | None = Field(description="of the model that `--allow standard` gives, over the original")
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    note: str = ""
