from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence

import pytest

from superopt.cost.race import EMPTY, FIRST, NO_TIME_LEFT, YARDSTICK, Race, batches, is_tight
from superopt.cost.sitting import Bench, Runner
from superopt.errors import CannotRun
from tests.cost.world import Model, Weather, World

pytestmark = pytest.mark.unit

OVERHEAD = 1e-5
NOISY = Weather(noise=0.03, drift=0.3, outliers=0.02)


class SlowWorld(World):
    slowness = 1.0

    def spend(self, seconds: float) -> None:
        super().spend(self.slowness * seconds)


class Track:
    """A race over models that take so long; those that take no time cannot be opened, negative ones fail when run."""

    def __init__(self, seconds: Sequence[float], weather: Weather = NOISY, yardstick: float | None = None) -> None:
        self.world, self.seconds = SlowWorld(1, weather), seconds
        self.reasons: dict[int, str] = {}
        bench = Bench(self.open, self.world.clock, 0.002, 0.03)
        sizes = [0] * len(seconds)
        self.race = Race(sizes, bench, lambda i, why: self.reasons.update({i: why}), random.Random(3), yardstick)

    def open(self, index: int) -> Runner:
        if index in (EMPTY, YARDSTICK):
            return Model(self.world, {EMPTY: OVERHEAD, YARDSTICK: 5e-4}[index])
        if self.seconds[index] == 0:
            raise CannotRun("it does not open")
        return Failing(self.world) if self.seconds[index] < 0 else Model(self.world, self.seconds[index] + OVERHEAD)

    def run(self, seconds: float = 60.0) -> list[float | None]:
        return self.race.run(seconds)


class Failing(Model):
    """Runs while it is warmed up, and no longer."""

    def __init__(self, world: World) -> None:
        super().__init__(world, 1e-3)
        self._until = world.now + 0.02

    def run(self) -> None:
        super().run()
        if self._world.now > self._until:
            raise CannotRun("it broke")


def test_times_come_close_and_ratios_closer():
    expected = [1e-3, 1.02e-3, 5e-4, 4e-3, 2e-5]
    found = Track(expected).run()
    assert None not in found
    times = [t for t in found if t is not None]
    for taken, true in zip(times, expected, strict=True):
        assert taken / times[FIRST] == pytest.approx(true / expected[FIRST], rel=0.04)
        assert taken == pytest.approx(true, rel=0.5)


def test_one_subject_is_timed_alone():
    (found,) = Track([1e-3]).run()
    assert found == pytest.approx(1e-3, rel=0.5)


def test_what_cannot_run_has_no_time_and_the_others_do():
    track = Track([1e-3, 0.0, 2e-3, -1.0])
    found = track.run()
    assert [t is None for t in found] == [False, True, False, True]
    assert track.reasons == {1: "it does not open", 3: "it broke"}
    assert track.world.open == 0


def test_without_the_first_there_are_no_times():
    track = Track([0.0, 1e-3])
    assert track.run() == [None, None]
    assert track.world.open == 0


def test_only_a_batch_and_what_stays_open_are_open_at_once():
    track = Track([1e-3] * 40)
    assert None not in track.run()
    assert track.world.most_open == 12 + 2
    assert track.world.open == 0


def test_what_there_was_no_time_for_is_told():
    track = Track([1e-3] * 40)
    found = track.run(0.5)
    assert found[0] is not None
    assert found[-1] is None
    assert track.reasons[39] == NO_TIME_LEFT
    assert None not in Track([1e-3] * 40).race.run(0.5, finish=True)


def test_beside_a_yardstick_a_slow_day_does_not_count():
    still = Weather(noise=0.0, drift=0.0, outliers=0.0)
    quiet = Track([1e-3, 2e-3], still, yardstick=5e-4).run()
    track = Track([1e-3, 2e-3], still, yardstick=5e-4)
    track.world.slowness = 3.0
    assert track.run() == pytest.approx(quiet, rel=0.01)
    assert quiet == pytest.approx([1e-3, 2e-3], rel=0.02)


def test_batches_hold_to_number_and_bytes():
    assert batches([9, 1, 1, 1, 1, 1], most=2, most_bytes=100) == [[1, 2], [3, 4], [5]]
    assert batches([9, 60, 60, 10, 200, 1], most=9, most_bytes=100) == [[1], [2, 3], [4], [5]]
    assert batches([5]) == []


def test_tight_is_finer_near_the_first():
    def scattered(centre: float, width: float) -> list[float]:
        return [centre + width * math.sin(i) for i in range(40)]

    assert is_tight(scattered(0.0, 0.005))
    assert not is_tight(scattered(0.0, 0.04))
    assert is_tight(scattered(1.0, 0.04))
    assert not is_tight([0.0] * 5)


def test_in_a_hurry_no_further_batch_is_opened():
    track = Track([1e-3] * 40)
    race = dataclasses.replace(track.race, hurried=lambda: track.world.openings > 5)
    found = race.run(60.0)
    assert found[FIRST] is not None
    late = [i for i, taken in enumerate(found) if taken is None]
    assert late
    assert {track.reasons[i] for i in late} == {NO_TIME_LEFT}
    assert track.world.open == 0
