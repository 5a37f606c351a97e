"""The report of `superopt optimize`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.check import CheckReport
from superopt.report.deployment import DeploymentReport, Portable
from superopt.report.explained import Explained
from superopt.report.prediction import PredictionReport
from superopt.report.record import SCHEMA_VERSION, Environment, ModelFacts, Record
from superopt.report.rewrites import OwnRule, Rewrite, TracedRegion
from superopt.report.timing import Profile, TimingReport


class SearchReport(Record):
    """What the search did."""

    rules: int = Field(description="proved rules that could be used")
    regions: int = Field(description="regions of the model")
    distinct_regions: int = Field(description="regions searched; the others are equal to one of them")
    candidates: int = Field(description="graphs seen, duplicates not counted")
    measured: int = Field(description="region graphs timed")
    alpha: float = Field(description="how much worse than the best a candidate may be predicted and still be followed")
    seconds: float = Field(description="spent searching, measuring not counted")
    measuring_seconds: float
    rank_correlation: float | None = Field(description="Spearman's, between predicted and measured region times")
    exhausted: bool = Field(description="nothing was left to try; otherwise a budget ended the search")
    peak_memory_bytes: int = Field(
        default=0,
        description="most that the process was resident until the search ended, before checks and races",
    )
    programs: int = Field(default=0, description="small programs of the model that mutants were made of")
    mutants: int = Field(default=0, description="partially equivalent mutants made of them")
    mutants_timed: int = Field(default=0, description="mutants that were mended and timed")
    mutants_proved: int = Field(default=0, description="mutants that were faster, and proved equal as mended")
    mutating_seconds: float = Field(default=0.0, description="spent on mutants: making, timing and proving them")


class Report(Record):
    schema_version: int = SCHEMA_VERSION
    verdict: str = Field(description="one line for people")
    returned: Literal["optimized", "original"]
    before: ModelFacts
    after: ModelFacts = Field(description="the model that was returned")
    rewrites: list[Rewrite] = Field(description="every change in the candidate, in the order made")
    candidate_nodes: int = Field(description="nodes of the candidate, also when the original came back")
    check: CheckReport
    timing: TimingReport
    prediction: PredictionReport | None = Field(
        default=None, description="only where the device is not here: then nothing was timed, and this takes its place"
    )
    search: SearchReport | None = Field(default=None, description="none when the rules were not searched")
    trace: list[TracedRegion] = Field(
        default_factory=list[TracedRegion], description="the rules' rewrites, for `superopt audit` to make again"
    )
    mutants: list[OwnRule] = Field(
        default_factory=list[OwnRule],
        description="rules of the trace that began as mutants of this model's programs, for `superopt audit` to prove",
    )
    mined: list[OwnRule] = Field(
        default_factory=list[OwnRule],
        description="rules of the trace that `--mine` found in this model, for `superopt audit` to prove",
    )
    left_out: list[tuple[str, str]] = Field(
        default_factory=list[tuple[str, str]], description="name and place of passes that were not made"
    )
    deployment: DeploymentReport | None = Field(default=None, description="none when the model could not be timed")
    portable: Portable | None = Field(default=None, description="none when the result has standard operators alone")
    profile: Profile | None = Field(default=None, description="made for the page of `--html` only")
    explained: list[Explained] = Field(
        default_factory=list[Explained], description="the nodes that were asked for with `--explain`"
    )
    environment: Environment
    options: dict[str, object] = Field(description="every option of the run, defaults included")
    peak_memory_bytes: int = Field(description="largest resident size of the working process")
    seconds: float
    stages: dict[str, float] = Field(
        default_factory=dict[str, float],
        description="seconds in each stage, as progress names them; what was waited for the device counts apart",
    )
    interrupted: bool = Field(default=False, description="the user asked for an end before the search had come to its")
    notes: list[str] = Field(default_factory=list, description="what else the reader should know")
