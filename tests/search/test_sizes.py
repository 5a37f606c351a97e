"""Several sizes: which points are measured, and what is decided from them."""

from __future__ import annotations

import math
import random

import pytest

from superopt.cost.result import Comparison, PairTiming, SubjectTiming, Verdict
from superopt.report import Interval, Latency
from superopt.search.sizes import Point, Timed, decide, points_of, rows, slower_point, weigh

pytestmark = pytest.mark.unit


def timed(weight: float, before: float, low: float, high: float, verdict: Verdict = "faster", name: str = "n") -> Timed:
    middle = math.sqrt(low * high)
    return Timed(Point({name: round(1000 * before)}, weight), before, middle, Interval(low=low, high=high), verdict)


def test_points_are_every_combination_in_order() -> None:
    points = points_of({"batch": ((1, 3.0), (8, 1.0)), "seq": ((64, 1.0), (128, 1.0))})
    assert [p.text for p in points] == ["batch=1, seq=64", "batch=1, seq=128", "batch=8, seq=64", "batch=8, seq=128"]
    assert [p.weight for p in points] == [0.375, 0.375, 0.125, 0.125]


def test_without_sizes_there_is_one_point() -> None:
    assert points_of({}) == (Point({}, 1.0),)
    assert points_of({"n": ((4, 7.0),)}) == (Point({"n": 4}, 1.0),)


def test_one_point_keeps_its_interval() -> None:
    found = decide([timed(1.0, 0.01, 1.1, 1.3)])
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((1.1, 1.3))
    assert found.verdict == "faster"


def test_the_sum_of_times_decides_not_the_mean_of_ratios() -> None:
    """Twice as fast where a run takes 1 ms is little against 1 % lost where it takes 99."""
    found = decide([timed(0.5, 0.001, 1.95, 2.05), timed(0.5, 0.099, 0.985, 0.993, "not faster")])
    assert found.speedup < 1.0
    assert found.verdict == "slower"
    heavier = decide([timed(0.99, 0.001, 1.95, 2.05), timed(0.01, 0.099, 0.985, 0.993, "not faster")])
    assert heavier.speedup > 1.2
    assert heavier.verdict == "faster"


def test_no_size_may_get_slower() -> None:
    good = timed(0.5, 0.01, 2.9, 3.1)
    lost = decide([good, timed(0.5, 0.01, 0.95, 0.97, "slower", "m")])
    assert (lost.verdict, lost.reason) == ("slower", "0.96× at m=10")
    doubtful = decide([good, timed(0.5, 0.01, 0.97, 1.05, "not faster", "m")])
    assert doubtful.verdict == "not faster"
    assert doubtful.reason.startswith("may be slower at m=10: 1.01× (0.97 to 1.05)")
    assert decide([good, timed(0.5, 0.01, 0.985, 1.01, "not faster")]).verdict == "faster"


def test_some_size_must_be_confirmed() -> None:
    found = decide([timed(0.5, 0.01, 1.001, 1.01, "not faster")] * 2)
    assert found.verdict == "not faster"
    assert found.interval is not None
    assert found.interval.low > 1.0


def test_too_few_sittings_decide_nothing() -> None:
    unknown = Timed(Point({"n": 1}, 0.5), 0.01, 1.5, None, "not faster")
    found = decide([timed(0.5, 0.01, 1.4, 1.6), unknown])
    assert (found.verdict, found.interval) == ("not faster", None)
    assert found.speedup == pytest.approx(1.498, abs=0.01)


def test_the_interval_of_the_sum_holds_what_it_says() -> None:
    """Speed-ups drawn around known ones, each with its own 95 % interval: the sum's interval covers 95 %."""
    draw = random.Random(0)
    true = [(0.2, 0.004, 1.3, 0.03), (0.5, 0.010, 1.02, 0.01), (0.3, 0.030, 1.1, 0.05)]
    total = sum(w * b for w, b, _, _ in true)
    expected = total / sum(w * b / r for w, b, r, _ in true)
    inside = 0
    for _ in range(2000):
        rows_: list[Timed] = []
        for w, b, r, error in true:
            seen = math.log(r) + draw.gauss(0, error)
            interval = Interval(low=math.exp(seen - 1.96 * error), high=math.exp(seen + 1.96 * error))
            rows_.append(Timed(Point({}, w), b, math.exp(seen), interval, "faster"))
        found = decide(rows_).interval
        assert found is not None
        inside += found.low <= expected <= found.high
    assert 0.935 < inside / 2000 < 0.965


def latency(seconds: float) -> Latency:
    return Latency(median=seconds, interval=Interval(low=seconds * 0.9, high=seconds * 1.2), spread=0.1, runs=10)


def comparison(before: float, after: float, interval: tuple[float, float] | None, reason: str = "") -> Comparison:
    pair = PairTiming(
        name="b", verdict="faster", reason=reason, speedup=None if interval is None else before / after,
        interval=None if interval is None else Interval(low=interval[0], high=interval[1]), sittings=4, pairs=20,
    )  # fmt: skip
    second = None if interval is None else latency(after)
    subjects = (SubjectTiming(name="a", latency=latency(before)), SubjectTiming(name="b", latency=second))
    return Comparison(subjects=subjects, pairs=(pair,), seconds=1.0, one_at_a_time=False)


TWO = points_of({"n": ((1, 3.0), (2, 1.0))})


def test_comparisons_are_weighed_subject_by_subject() -> None:
    both = [comparison(0.01, 0.005, (1.9, 2.1)), comparison(0.02, 0.02, (0.99, 1.01))]
    found = weigh(TWO, both)
    before, after = found.latency("a"), found.latency("b")
    assert before is not None
    assert after is not None
    assert (before.median, after.median) == pytest.approx((0.0125, 0.00875))
    assert (before.runs, before.spread) == (20, pytest.approx(0.1))
    assert before.interval.low < before.median < before.interval.high
    pair = found.pair("b")
    assert (pair.verdict, pair.sittings, pair.pairs) == ("faster", 8, 40)
    assert pair.speedup == pytest.approx(0.0125 / 0.00875)
    assert [(r.sizes, r.weight, r.speedup) for r in rows(TWO, both, "b")] == [
        ({"n": 1}, 0.75, 2.0),
        ({"n": 2}, 0.25, 1.0),
    ]
    assert slower_point(rows(TWO, both, "b")) is None


def test_a_point_at_which_a_model_cannot_run_is_named() -> None:
    both = [comparison(0.01, 0.005, (1.9, 2.1)), comparison(0.02, 0.02, None, "out of memory")]
    found = weigh(TWO, both)
    assert found.latency("b") is None
    assert found.pair("b").reason == "out of memory (at n=2)"
    assert found.pair("b").speedup is None
    assert slower_point(rows(TWO, both, "b")) == rows(TWO, both, "b")[1]


def test_one_point_is_its_own_comparison() -> None:
    only = comparison(0.01, 0.005, (1.9, 2.1))
    assert weigh(points_of({}), [only]) is only
    assert rows(points_of({}), [only], "b") == []
