import math

import pytest

from superopt.cost.sitting import Bench, Sitting, warm_up
from tests.cost.world import Model, Weather, World

pytestmark = pytest.mark.unit

STILL = Weather(noise=0.0, drift=0.0, outliers=0.0)


class Warming:
    """Takes half as long with every run, until it is warm."""

    def __init__(self, cold: float, warm: float) -> None:
        self.now, self.runs, self._seconds, self._warm = 0.0, 0, cold, warm

    def clock(self) -> float:
        return self.now

    def run(self) -> None:
        self.now += self._seconds
        self.runs += 1
        self._seconds = max(self._warm, self._seconds / 2)


def test_warming_up_goes_on_until_runs_no_longer_get_faster():
    model = Warming(cold=1.0, warm=0.01)
    assert warm_up(model.run, model.clock, limit=100.0) == pytest.approx(0.01)


def test_warming_up_is_bounded():
    model = Warming(cold=1.0, warm=1e-9)
    warm_up(model.run, model.clock, limit=1.2)
    assert model.runs == 2


def test_a_slow_model_is_run_once_to_warm_up():
    model = Warming(cold=10.0, warm=10.0)
    assert warm_up(model.run, model.clock, limit=0.5) == 10.0
    assert model.runs == 1


def bench(world: World, *seconds: float) -> Bench:
    return Bench(lambda i: Model(world, seconds[i]), world.clock, sample_seconds=0.004, warm_up_seconds=0.5)


@pytest.mark.parametrize("together", [True, False])
def test_short_runs_are_repeated_inside_a_sample(together: bool):
    world = World(0, STILL)
    sitting = bench(world, 1e-5, 0.1).sit([0, 1], together, math.inf)
    assert 390 <= sitting.repeats[0] <= 410
    assert sitting.repeats[1] == 1
    assert sitting.runs(0) == sitting.repeats[0] * len(sitting.samples[0])
    assert sitting.samples[0] == pytest.approx([1e-5] * len(sitting.samples[0]), rel=0.01)
    assert sitting.log_ratio(1, 0) == pytest.approx(math.log(1e4), rel=0.01)


def test_samples_taken_together_come_in_rounds_of_reversed_order():
    order: list[int] = []
    world = World(0, STILL)

    class Noting(Model):
        def __init__(self, index: int) -> None:
            super().__init__(world, 0.02)
            self.index = index

        def run(self) -> None:
            super().run()
            order.append(self.index)

    noting = Bench(Noting, world.clock, sample_seconds=0.004, warm_up_seconds=0.5)
    sitting = noting.sit([0, 1, 2], True, math.inf)
    rounds = len(sitting.samples[0])
    taken = order[-3 * rounds :]
    assert taken == ([0, 1, 2, 2, 1, 0] * rounds)[: 3 * rounds]
    assert {len(samples) for samples in sitting.samples.values()} == {rounds}


def test_long_runs_are_sampled_twice_at_least_and_not_for_ever():
    sitting = bench(World(0, STILL), 5.0, 5.0).sit([0, 1], True, math.inf)
    assert len(sitting.samples[0]) in range(2, 6)


def test_past_the_deadline_a_sitting_still_gives_a_number():
    sitting = bench(World(0, STILL), 0.02, 0.01).sit([0, 1], True, deadline=0.0)
    assert sitting.log_ratio(0, 1) == pytest.approx(math.log(2), rel=1e-3)


def test_pairs_cancel_what_a_median_of_each_would_not():
    drifting = [1.0, 2.0, 3.0, 4.0, 5.0]
    twice = [t / 2 for t in drifting]
    samples = {0: drifting, 1: [*twice[1:], twice[0]]}
    unpaired = Sitting(samples, {}, {}, paired=False)
    assert unpaired.log_ratio(0, 1) == pytest.approx(math.log(2))
    paired = Sitting({0: drifting[:3], 1: twice[:3]}, {}, {}, paired=True)
    assert paired.log_ratio(0, 1) == pytest.approx(math.log(2))
