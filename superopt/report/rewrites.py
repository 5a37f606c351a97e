"""What was changed in a graph, so that it can be read, and made again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import Record


class Rewrite(Record):
    """One change to the graph, under the name of the pass or rule that made it."""

    name: str
    place: str = Field(description="the node it was made at, `outer/body/node` inside subgraphs")
    detail: str = ""
    proof: str = Field(description="why it is right: `by definition`, or the rule's proof line")
    kind: Literal["pass", "rule", "partial"] = Field(
        default="pass",
        description="a safe pass, a proved rule that the search applied, or a mutant with its corrections, proved too",
    )
    rule_digest: str = Field(default="", description="of the rule's text and of the formulas it uses; empty for a pass")
    nodes: list[str] = Field(default_factory=list, description="nodes of the region, each by its first named output")
    results: list[str] = Field(default_factory=list, description="names of the values that were recomputed")
    choice: int = Field(default=0, description="which of the rule's matches on these results, in the matcher's order")
    region: int | None = Field(default=None, description="the region of the search; equal regions share one number")
    predicted_us_before: float | None = Field(default=None, description="microseconds of the region, as predicted")
    predicted_us_after: float | None = None
    measured_us_before: float | None = Field(default=None, description="microseconds of the region, from the clock")
    measured_us_after: float | None = None


class TracedStep(Record):
    """One rewrite, told so that it can be made again."""

    rule: str
    digest: str = Field(description="of the rule's text and of the formulas it uses")
    results: list[str] = Field(description="names of the values computed again, in the order of the rule's results")
    inputs: dict[str, str] = Field(description="the rule's inputs, by the names of the values they stand for")


class TracedRegion(Record):
    """A region of the graph and the rewrites made in it, in order."""

    where: str = Field(description="the way through bodies to the region's graph; empty for the model's own")
    region: int = Field(description="equal regions share one number")
    members: list[str] = Field(description="its nodes, each by its first named output")
    steps: list[TracedStep]


class OwnRule(Record):
    """A rule that no file has, because it was found for this model: a mutant with its corrections, or a mined one."""

    name: str
    digest: str = Field(description="of its text and of the formulas it uses")
    text: str = Field(description="the rule in full, with how it was proved and, of a mutant, what was mended")
