"""Why a node was rewritten, or was not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import SCHEMA_VERSION, Record


class RuleAttempt(Record):
    """One rule tried at one node."""

    rule: str
    outcome: Literal["used", "matches", "no match"]
    reason: str = Field(description="what it would do and why it was not used, or why it does not match")
    fitted: int = Field(description="nodes and inputs of the rule that had fitted by then")


class Explained(Record):
    """Why a node was rewritten, or was not."""

    asked: str = Field(description="the name given with `--explain`")
    place: str = Field(description="the node, `outer/body/node` inside subgraphs")
    operator: str
    outputs: list[str] = Field(description="what it computes, with types")
    passes: list[str] = Field(description="safe passes that were made at it")
    barrier: str = Field(description="why no rule may touch it; empty where rules may")
    steps: list[str] = Field(description="rules that rewrote it in this run, in order")
    attempts: list[RuleAttempt] = Field(description="every rule that could begin at it, what fitted furthest first")
    detail: list[str] = Field(description="of the one rule asked for with `NODE:RULE`: its text, and every attempt")


class ExplainReport(Record):
    """What `superopt optimize --explain NODE` says without a search."""

    schema_version: int = SCHEMA_VERSION
    explained: list[Explained]
