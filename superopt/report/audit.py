"""What `superopt audit` says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import SCHEMA_VERSION, Record


class AuditedRule(Record):
    """A rule that the trace names."""

    name: str
    digest: str = Field(description="of the rule's text and of the formulas it uses, as they stand now")
    proof: str
    steps: int = Field(description="rewrites that it made")


class AuditedWeights(Record):
    """How many constants of the result were compared how, with what the original and the trace give."""

    original: int = Field(description="of the original's file, found bit for bit")
    written: int = Field(description="numbers and lists that rules write, found bit for bit")
    folded: int = Field(description="computed by passes, found bit for bit")
    folded_near: int = Field(description="computed by passes, within one unit in the last place")
    combined: int = Field(description="combined by rules, found bit for bit")
    combined_near: int = Field(description="combined by rules, within one unit in the last place")


class AuditReport(Record):
    """What `superopt audit` could confirm. Times and the comparison of outputs are not part of it."""

    schema_version: int = SCHEMA_VERSION
    confirmed: bool
    problems: list[str] = Field(description="what could not be confirmed, the plainest reason first")
    original: str = Field(description="path")
    optimized: str = Field(description="path")
    returned: Literal["optimized", "original"] = Field(description="what the report says came back")
    passes: dict[str, int] = Field(description="how often each pass was made again")
    regions: int = Field(description="regions whose steps were made again")
    steps: int
    rules: list[AuditedRule]
    nodes: int = Field(description="nodes of the result that are what the trace gives, subgraphs included")
    weights: AuditedWeights | None = Field(description="none when they were not reached, or the original came back")
    notes: list[str]
