"""What a page shows besides the report, as data: both graphs with every box in its place, and what each rule gained.

Names in it come from the model: they are to be shown as text, whatever they hold.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report import Record

BoxKind = Literal["kept", "changed", "removed", "added", "value", "constant", "block"]


class SceneBox(Record):
    kind: BoxKind = Field(description="what became of a node; a value from outside; a constant; unchanged nodes as one")
    head: str = Field(description="the operator, or the value's name")
    foot: str = Field(description="the type of its first result")
    title: str = Field(description="its text form")
    x: int = Field(description="of its left side")
    y: int = Field(description="of its top")
    width: int
    height: int
    region: int | None = Field(description="the changed region that it is part of, in a picture of the whole")


class SceneLine(Record):
    source: int = Field(description="position of a box")
    target: int
    path: str = Field(description="SVG path data; empty where the line is too long to tell the eye anything")


class Picture(Record):
    label: str
    width: int
    height: int
    boxes: list[SceneBox]
    lines: list[SceneLine]


class RuleCount(Record):
    name: str
    count: int


class SceneRegion(Record):
    """Changed nodes that hang together."""

    number: int
    place: str = Field(description="the first node, `outer/body/node` inside subgraphs")
    removed: int
    added: int
    changed: int
    like: int | None = Field(description="number of an earlier region of the same shape")
    rules: list[RuleCount] = Field(description="rewrites that made it, by name")
    lines: list[str] = Field(description="the nodes in text form after `- ` or `+ `; after two spaces, what is in both")
    before: Picture | None = Field(description="none where there is nothing to see, or too much")
    after: Picture | None


class RuleGain(Record):
    """All rewrites of one name."""

    name: str
    count: int
    gained_us: float | None = Field(description="microseconds; none where nobody timed or predicted it")
    measured: bool = Field(description="whether a clock stands behind them, or the predictor alone")


class Scene(Record):
    returned: bool = Field(description="whether the graph after is the model that came back")
    rules: list[RuleGain] = Field(description="the largest gain first, those without a time at the end")
    before: Picture | None = Field(description="the whole graph, unchanged stretches folded")
    after: Picture | None
    regions: list[SceneRegion]
    note: str = Field(description="what is not shown, and why; empty where everything is")
