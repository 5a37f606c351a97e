import math
import random

import pytest

from superopt.cost.statistics import (
    Estimate,
    median_estimate,
    paired_log_ratio,
    ratio_estimate,
    spread,
    student_quantile,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("freedom", "confidence", "t"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.99, 5.841), (4, 0.95, 2.776), (10, 0.99, 3.169), (30, 0.95, 2.042)],
)
def test_student_quantiles_are_those_of_the_tables(freedom: int, confidence: float, t: float):
    assert student_quantile(freedom, confidence) == pytest.approx(t, abs=5e-4)


def test_spread_is_the_interquartile_range_over_the_median():
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("n", "low", "high"), [(3, 1, 3), (5, 1, 5), (6, 1, 6), (9, 2, 8), (20, 6, 15), (100, 40, 61)])
def test_median_interval_is_between_the_tabled_order_statistics(n: int, low: int, high: int):
    samples = [float(i) for i in range(1, n + 1)]
    random.Random(0).shuffle(samples)
    assert median_estimate(samples) == Estimate((n + 1) / 2, low, high)


def test_median_intervals_of_few_and_of_many_samples_agree():
    few = median_estimate([float(i) for i in range(200)])
    many = median_estimate([float(i) for i in range(201)])
    assert abs(few.low - many.low) <= 2
    assert abs(few.high - many.high) <= 2


def test_median_intervals_cover_as_often_as_they_say():
    draw = random.Random(1)
    inside = 0
    for _ in range(1000):
        found = median_estimate([draw.expovariate(1.0) for _ in range(25)])
        inside += found.low <= math.log(2) <= found.high
    assert 930 <= inside <= 985


def test_what_a_pair_shares_cancels():
    load = [1.0, 7.0, 2.0, 30.0, 1.5]
    assert paired_log_ratio([3 * t for t in load], load) == pytest.approx(math.log(3))


def test_two_wild_pairs_of_six_do_not_carry_the_ratio_away():
    assert paired_log_ratio([2, 2, 2, 2, 2000, 2], [1, 900, 1, 1, 1, 1]) == pytest.approx(math.log(2))


def test_one_sitting_says_nothing():
    found = ratio_estimate([0.1])
    assert (found.low, found.high) == (0.0, math.inf)
    assert not found.excludes(5.0)


@pytest.mark.parametrize("n", [2, 4, 7, 8, 12, 40])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_ratio_intervals_cover_as_often_as_they_say(n: int, confidence: float):
    draw = random.Random(n)
    runs = 1000
    missed = sum(
        ratio_estimate([draw.gauss(0.3, 0.1) for _ in range(n)], confidence).excludes(math.exp(0.3))
        for _ in range(runs)
    )
    expected = (1 - confidence) * runs
    assert abs(missed - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("n", [3, 6, 8, 14])
def test_heavy_tails_make_ratio_intervals_wider_not_wrong(n: int):
    draw = random.Random(n)
    cauchy = [[math.tan(math.pi * (draw.random() - 0.5)) for _ in range(n)] for _ in range(1000)]
    assert sum(ratio_estimate(d).excludes(1.0) for d in cauchy) <= 60


def test_a_wild_sitting_among_twenty_does_not_hide_a_difference():
    assert ratio_estimate([*(0.05 + 0.001 * i for i in range(19)), -2.0], 0.99).low > 1.0
