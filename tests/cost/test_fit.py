from __future__ import annotations

import math
import random

import pytest

from superopt.cost.coefficients import Coefficients
from superopt.cost.columns import Column
from superopt.cost.fit import OF_REGIONS, OF_SAMPLES, Observation, fit

pytestmark = pytest.mark.unit

LAUNCH, BYTE = Column("launch", "run"), Column("element-wise", "byte")
ADD, EXP = Column("element-wise", "byte", "Add"), Column("element-wise", "byte", "Exp")
START = Coefficients({LAUNCH: 1e-6, BYTE: 1e-10})


def observed(truth: Coefficients, count: int, noise: float = 0.0) -> list[Observation]:
    draw = random.Random(5)
    found: list[Observation] = []
    for _ in range(count):
        amounts = ((LAUNCH, float(draw.randint(1, 20))), (ADD, draw.uniform(0, 3e6)), (EXP, draw.uniform(0, 3e4)))
        found.append(Observation(amounts, truth.price(amounts) * math.exp(draw.gauss(0, noise))))
    return found


def test_coefficients_are_found_from_samples():
    truth = Coefficients({LAUNCH: 4e-6, ADD: 3e-11, EXP: 2e-9})
    found = fit(observed(truth, 90, noise=0.03), START, OF_SAMPLES)
    for column, seconds in truth.seconds.items():
        assert found.of(column) == pytest.approx(seconds, rel=0.15)


def test_a_single_observation_hardly_moves_what_is_known_but_a_sample_does():
    seen = [Observation(((ADD, 1e6),), 1e-3)]  # ten times what it should be
    assert fit(seen, START, OF_REGIONS).of(ADD) < 3e-10
    assert fit(seen, START, OF_SAMPLES).of(ADD) > 7e-10


def test_what_was_not_seen_stays_and_operators_of_a_kind_move_together():
    found = fit([Observation(((ADD, 1e6),), 4e-4)], START, OF_SAMPLES)
    assert found.of(LAUNCH) == START.of(LAUNCH)
    assert found.of(EXP) > 2 * START.of(EXP)


def test_nothing_becomes_free_or_negative():
    seen = [Observation(((LAUNCH, 1.0), (ADD, 1e6)), 1e-4), Observation(((LAUNCH, 9.0), (ADD, 1e6)), 5e-5)]
    assert all(seconds > 0 for seconds in fit(seen, START, OF_SAMPLES).seconds.values())


def test_one_wild_region_does_not_spoil_the_others():
    truth = Coefficients({LAUNCH: 1e-6, ADD: 1e-10, EXP: 1e-10})
    seen = observed(truth, 40)
    wild = Observation(seen[0].amounts, 50 * seen[0].seconds)
    assert fit([*seen, wild], START, OF_REGIONS).of(ADD) == pytest.approx(1e-10, rel=0.1)


def test_the_same_observations_give_the_same_coefficients():
    seen = observed(Coefficients({LAUNCH: 4e-6, ADD: 3e-11, EXP: 2e-9}), 20, noise=0.2)
    assert fit(seen, START, OF_REGIONS) == fit(seen, START, OF_REGIONS)


def test_nothing_seen_changes_nothing():
    assert fit([Observation((), 1.0), Observation(((ADD, 1.0),), 0.0)], START, OF_SAMPLES) is START


def test_what_an_empty_model_takes_from_each_time_is_added_to_what_is_launched() -> None:
    truth = Coefficients({LAUNCH: 2e-6, ADD: 1e-10, EXP: 1e-10})
    spared = 1.5e-6
    seen = [Observation(((LAUNCH, 1.0), (ADD, 1e3 * k)), truth.of(LAUNCH) + 1e-7 * k - spared) for k in range(1, 20)]
    assert fit(seen, START, OF_SAMPLES).of(LAUNCH) < 1e-6
    found = fit(seen, Coefficients(START.seconds, spared), OF_SAMPLES)
    assert found.of(LAUNCH) == pytest.approx(truth.of(LAUNCH), rel=0.1)
    assert found.spared == spared
