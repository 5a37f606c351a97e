"""When a rewritten model differs from the original, find the rewrite that did it, leave it out and try again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.normalize import normalize
from superopt.report import CheckReport, Rewrite

ATTEMPTS = 5


@dataclass(frozen=True)
class Candidate:
    """A rewritten graph, how it was checked, and what had to be left out to make it right."""

    graph: Graph
    rewrites: tuple[Rewrite, ...]
    check: CheckReport
    notes: tuple[str, ...]


def first_right_candidate(
    model: Model, growth: int | None, check: Callable[[Graph], CheckReport], tell: Callable[[str, str], None]
) -> Candidate | None:
    """The model with every rewrite that survives the check; None when nothing is left to rewrite.

    A candidate whose check says "different" comes back only when repair was given up; it must not be returned.
    """
    forbidden: set[tuple[str, str]] = set()
    notes: list[str] = []
    while True:
        tell("rewriting", "")
        found = normalize(model, growth_cap=growth, forbid=forbidden)
        if not found.rewrites:
            return None
        report = check(found.graph)
        if report.status != "different" or len(forbidden) == ATTEMPTS:
            return Candidate(found.graph, found.rewrites, report, tuple(notes))
        guilty = _guilty(model, growth, forbidden, found.rewrites, check, tell)
        forbidden.add((guilty.name, guilty.place))
        notes.append(f"{guilty.name} at {guilty.place} changed the outputs and was left out: {report.reason}")


def _guilty(
    model: Model,
    growth: int | None,
    forbidden: set[tuple[str, str]],
    rewrites: tuple[Rewrite, ...],
    check: Callable[[Graph], CheckReport],
    tell: Callable[[str, str], None],
) -> Rewrite:
    """The first rewrite after which the model differs, by halving the trace."""
    right, wrong = 0, len(rewrites)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        tell("looking for the rewrite that changed the outputs", f"{wrong - right} left")
        prefix = normalize(model, growth_cap=growth, forbid=forbidden, limit=middle)
        if check(prefix.graph).status == "different":
            wrong = middle
        else:
            right = middle
    return rewrites[wrong - 1]
