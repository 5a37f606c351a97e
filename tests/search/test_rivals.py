# pyright: basic
"""The result must not be slower than the original with its best session options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from superopt.cost.result import PairTiming
from superopt.errors import CannotRun
from superopt.report import Interval
from superopt.runtime.deployment import Deployment
from superopt.search.deployments import Deployed
from superopt.search.rivals import UNCONFIRMED, WITH_OPTIONS, refusal, rivals

pytestmark = pytest.mark.unit

BASE = Deployment("cuda", 4)
GRAPH = Deployment("cuda", 4, provider_options=(("enable_cuda_graph", "1"),))
HERE = Path("model.onnx")


class FakeTrial:
    def __init__(self, verdict: Any, speedup: float, timed: Deployment = BASE) -> None:
        self.verdict, self.speedup, self.timed = verdict, speedup, timed
        self.raced = []

    def race_deployed(self, original, candidate, seconds):
        self.raced.append((original[1], candidate[1]))
        if self.verdict == "failed":
            raise CannotRun("no")
        interval = Interval(low=self.speedup - 0.05, high=self.speedup + 0.05)
        return PairTiming(
            name="candidate", verdict=self.verdict, reason="", speedup=self.speedup, interval=interval, sittings=5,
            pairs=50,
        )  # fmt: skip


def against(trial: FakeTrial, ours: Deployed, theirs: Deployed | None, known: Deployment | None = None):
    return rivals(trial, ours, HERE, HERE, 1.0, lambda: theirs, known)  # pyright: ignore[reportArgumentType]


def test_an_original_that_can_be_captured_beats_a_result_that_cannot():
    trial = FakeTrial("slower", 0.8)
    found = against(trial, Deployed(BASE, BASE), Deployed(GRAPH, BASE))
    assert trial.raced == [(GRAPH, BASE)]
    assert found.lost
    assert found.text.startswith(WITH_OPTIONS)
    assert "0.80×" in found.text


def test_what_is_faster_with_options_stays():
    found = against(FakeTrial("faster", 1.4), Deployed(GRAPH, BASE), Deployed(GRAPH, BASE))
    assert not found.lost
    assert "1.40× as fast" in found.text


@pytest.mark.parametrize(("speedup", "lost"), [(1.0, True), (1.045, False)])
def test_on_a_gpu_what_may_be_slower_by_more_than_a_hair_is_lost(speedup: float, lost: bool):
    found = against(FakeTrial("not faster", speedup), Deployed(GRAPH, BASE), Deployed(GRAPH, BASE))
    assert found.lost == lost


def test_where_no_option_helps_nothing_is_timed_again():
    trial = FakeTrial("slower", 0.5)
    assert not against(trial, Deployed(BASE, BASE), Deployed(BASE, BASE)).lost
    assert trial.raced == []


FUSED = Deployment("cuda", 4, provider_options=(*GRAPH.provider_options, ("fuse_conv_bias", "1")))


@pytest.mark.parametrize(
    ("ours", "theirs", "known", "again"),
    [
        (GRAPH, GRAPH, None, False),
        (FUSED, GRAPH, FUSED, False),
        (FUSED, GRAPH, None, True),
        (GRAPH, FUSED, None, True),
        (BASE, BASE, None, True),  # nobody has timed them so
    ],
)
def test_what_was_timed_with_the_same_options_is_not_timed_again(
    ours: Deployment, theirs: Deployment, known: Deployment | None, again: bool
):
    trial = FakeTrial("slower", 0.8, timed=GRAPH)
    found = against(trial, Deployed(ours, BASE), Deployed(theirs, BASE), known)
    assert bool(trial.raced) == found.lost == again


def test_where_options_are_not_searched_for_nothing_is_timed() -> None:
    trial = FakeTrial("slower", 0.8, timed=GRAPH)
    assert not against(trial, Deployed(BASE, BASE, searched=False), None).lost
    assert trial.raced == []


def test_on_a_cpu_the_original_gets_the_options_of_the_result():
    base, best = Deployment("cpu", 4), Deployment("cpu", 1)
    trial = FakeTrial("not faster", 1.0)
    found = against(trial, Deployed(best, base), None)
    assert trial.raced == [(best, best)]
    assert not found.lost
    assert found.theirs.best == best


def test_what_cannot_be_timed_changes_nothing():
    found = against(FakeTrial("failed", 1.0), Deployed(GRAPH, BASE), Deployed(GRAPH, BASE))
    assert (found.lost, found.text) == (False, "")


def test_a_result_without_the_options_that_it_was_timed_with_does_not_stand():
    confirmed = against(FakeTrial("faster", 1.4), Deployed(FUSED, BASE), Deployed(GRAPH, BASE))
    without = against(FakeTrial("faster", 1.4), Deployed(GRAPH, BASE), Deployed(GRAPH, BASE))
    assert refusal(confirmed, FUSED) == ""
    assert refusal(without, FUSED) == refusal(None, FUSED) == UNCONFIRMED
    assert refusal(without, None) == refusal(None, None) == ""
    lost = against(FakeTrial("slower", 0.8), Deployed(FUSED, BASE), Deployed(GRAPH, BASE))
    assert refusal(lost, FUSED) == refusal(lost, None) == lost.text
