"""What each rule gained: measured for a region, shared out as predicted, never counted twice."""

from __future__ import annotations

import pytest

from superopt.explain.gains import gains, steps
from superopt.report import Rewrite

pytestmark = pytest.mark.unit


def rewrite(name: str, region: int | None = None, nodes: str = "", **times: float) -> Rewrite:
    return Rewrite(name=name, place="p", proof="by definition", region=region, nodes=nodes.split(), **times)  # pyright: ignore[reportArgumentType]


def test_a_measured_gain_is_shared_as_predicted() -> None:
    measured = {"measured_us_before": 100.0, "measured_us_after": 60.0}
    first = rewrite("a", 1, "n m", predicted_us_before=90, predicted_us_after=60, **measured)
    second = rewrite("b", 1, "n m", predicted_us_before=60, predicted_us_after=50, **measured)
    assert gains([first, second]) == [(30.0, True), (10.0, True)]


def test_equal_regions_count_each_for_itself() -> None:
    measured = {"measured_us_before": 100.0, "measured_us_after": 60.0}
    rewrites = [rewrite("a", 1, nodes, **measured) for nodes in ("n", "m", "o")]
    (step,) = steps(rewrites)
    assert (step.count, step.gained, step.measured) == (3, 120.0, True)


def test_a_step_uphill_has_no_share_in_what_the_region_gained() -> None:
    measured = {"measured_us_before": 100.0, "measured_us_after": 60.0}
    up = rewrite("up", 1, "n", predicted_us_before=90, predicted_us_after=95, **measured)
    down = rewrite("down", 1, "n", predicted_us_before=95, predicted_us_after=50, **measured)
    assert gains([up, down]) == [(0.0, True), (40.0, True)]


def test_without_a_prediction_the_shares_are_equal() -> None:
    measured = {"measured_us_before": 100.0, "measured_us_after": 60.0}
    assert gains([rewrite(name, 1, "n", **measured) for name in "ab"]) == [(20.0, True), (20.0, True)]


def test_what_was_only_predicted_says_so() -> None:
    (step,) = steps([rewrite("a", 1, "n", predicted_us_before=9, predicted_us_after=4)])
    assert (step.gained, step.measured) == (5.0, False)


def test_passes_have_no_time_of_their_own_and_come_last() -> None:
    found = steps([rewrite("pass"), rewrite("pass"), rewrite("a", 1, "n", predicted_us_before=9, predicted_us_after=4)])
    assert [(s.name, s.count, s.gained) for s in found] == [("a", 1, 5.0), ("pass", 2, None)]
