"""A cost file from before heuristics chose kernels leads where it led, whatever is added to it of other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.cache import CostKey
from superopt.cost.contents import Contents
from superopt.cost.costs import read_costs
from superopt.ir.onnx import Model
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.search import choices
from superopt.search.choices import HEURISTIC
from superopt.search.recorded_trial import RecordedTrial
from superopt.search.settling import settled

pytestmark = pytest.mark.unit

SHIPPED = Path(__file__).parents[2] / "benchmarks" / "results" / "nvidia-h200.costs"
BASE = parse_deployment("cuda threads=16 level=all use_tf32=1")
GRAPH = parse_deployment("cuda threads=16 level=all enable_cuda_graph=1 use_tf32=1")
CONVOLVES = choices.Contents(operators=frozenset(("Conv",)))


class Recorded(RecordedTrial):
    """Of a model that is known by its key alone."""

    def __init__(self, contents: Contents, of: CostKey) -> None:
        self.contents, self.machine, self.of = contents, contents.machines[0], of
        self.model = None  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def ladder(self) -> tuple[Deployment, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return settled(BASE, CONVOLVES, self._gains, self._is_hasty)

    @property
    def _feeds(self) -> list[Mapping[str, Any]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return [{}]

    def _key(self, models: Iterable[Model], deployments: Iterable[Deployment], feeds: Mapping[str, Any]) -> CostKey:
        return replace(self.of, deployments=tuple(d.text for d in deployments))


@pytest.fixture(scope="module")
def shipped() -> Contents:
    return read_costs(SHIPPED)


def convolving(contents: Contents) -> list[CostKey]:
    """Models that were timed with channels last."""
    found = [k for k in contents.comparisons if len(k.models) == 1 and k.deployments[0] == GRAPH.text]
    return [k for k in found if any("prefer_nhwc" in text for text in k.deployments)]


def with_hasty_times(contents: Contents, copies: int) -> Contents:
    """And as many times of other models, taken with heuristics."""
    key, entry = next(iter(contents.regions.items()))
    hasty = replace(key, deployment=HEURISTIC.applied(GRAPH).text)
    added = [replace(entry, key=replace(hasty, structure=f"another {i}")) for i in range(copies)]
    return replace(contents, regions={**contents.regions, **{e.key: e for e in added}})


def test_times_of_others_change_nothing(shipped: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = convolving(shipped)
    assert keys
    for key in keys:
        (digest,) = key.models
        monkeypatch.setattr("superopt.search.recorded_trial.content_digest", lambda _, digest=digest: digest)
        before = Recorded(shipped, key).ladder
        assert before[:2] == (BASE, GRAPH)
        assert Recorded(with_hasty_times(shipped, 10_000), key).ladder == before
    assert any(len(Recorded(shipped, key).ladder) == 3 for key in keys)


def test_of_a_model_that_was_not_there_most_times_decide(shipped: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.recorded_trial.content_digest", lambda _: "unknown")
    key = replace(convolving(shipped)[0], models=("unknown",))
    assert not any(map(choices.is_hasty, Recorded(with_hasty_times(shipped, 1), key).ladder))
    assert Recorded(with_hasty_times(shipped, 10_000), key).ladder == (BASE, HEURISTIC.applied(GRAPH))
