"""The simulated machine of world.py makes mistakes countable; no real clock is involved."""

from collections import Counter
from dataclasses import replace
from statistics import median

import pytest

from superopt.cost.challenger import Challenger, Evidence
from superopt.cost.contest import Contest, Method, Progress
from superopt.cost.result import Comparison
from superopt.cost.sitting import Bench, Runner
from superopt.errors import CannotRun
from tests.cost.world import RUN, Model, Weather, World, contest

pytestmark = pytest.mark.unit

WEATHERS = {
    "ordinary": Weather(),
    "quiet": Weather(noise=0.002, outliers=0.005),
    "noisy": Weather(noise=0.1, outliers=0.05),
    "drifting": Weather(noise=0.005, drift=0.5),
    "lucky openings": Weather(noise=0.005, luck=0.01),
    "unfair openings": Weather(noise=0.01, second_is_faster=0.02),
}


def verdicts(weather: Weather, gain: float, runs: int, together: bool = True) -> Counter[str]:
    found = (contest(World(seed, weather), [RUN, RUN / gain], together=together) for seed in range(runs))
    return Counter(comparison.pairs[0].verdict for comparison in found)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("weather", WEATHERS.values(), ids=WEATHERS)
def test_equal_models_are_not_told_apart(weather: Weather, together: bool):
    """1,200 contests in all; larger simulations find about one mistake in a thousand."""
    assert verdicts(weather, 1.0, runs=100, together=together)["not faster"] >= 99


@pytest.mark.parametrize("name", ["ordinary", "quiet", "lucky openings", "unfair openings"])
def test_three_percent_are_found_in_the_default_time(name: str):
    assert verdicts(WEATHERS[name], 1.03, runs=50)["faster"] >= 45


PATIENT = Method(seconds=60, further=120)
HEAVY = Weather(noise=0.01, luck=0.01)
"""As large models behave: a second to open, a tenth to run, 1.5 % between sittings."""


def heavy(monkeypatch: pytest.MonkeyPatch, gain: float, runs: int, method: Method = PATIENT) -> list[Comparison]:
    monkeypatch.setattr("tests.cost.world.OPENING", 1.0)
    return [contest(World(seed, HEAVY), [0.1, 0.1 / gain], method) for seed in range(runs)]


def seconds(found: list[Comparison]) -> float:
    return sum(comparison.seconds for comparison in found) / len(found)


def count(found: list[Comparison], verdict: str) -> int:
    return sum(comparison.pairs[0].verdict == verdict for comparison in found)


def test_a_small_gain_is_settled_in_further_time(monkeypatch: pytest.MonkeyPatch):
    short = heavy(monkeypatch, 1.015, 60, Method(seconds=60))
    found = heavy(monkeypatch, 1.015, 60)
    assert count(short, "faster") <= 12
    assert count(found, "faster") >= 45
    for pair in (comparison.pairs[0] for comparison in found):
        assert pair.verdict != "faster" or (pair.interval is not None and pair.interval.low > 1.0)
    assert max(comparison.seconds for comparison in found) < 200


def test_a_gain_that_regions_promise_is_settled_more_often(monkeypatch: pytest.MonkeyPatch):
    promised = Method(seconds=60, further=120, saving=0.0015)
    assert count(heavy(monkeypatch, 1.015, 60, promised), "faster") >= 50


@pytest.mark.parametrize("saving", [0.0, 0.0015])
def test_further_time_accepts_no_more_equal_models(monkeypatch: pytest.MonkeyPatch, saving: float):
    """However much is promised; one in a hundred is what the contest allows itself."""
    method = Method(seconds=60, further=120, saving=saving)
    assert count(heavy(monkeypatch, 1.0, 400, method), "faster") <= 4


@pytest.mark.parametrize("saving", [0.0, 0.0015])
def test_a_loss_takes_no_further_time(monkeypatch: pytest.MonkeyPatch, saving: float):
    found = heavy(monkeypatch, 0.95, 40, Method(seconds=60, further=120, saving=saving))
    assert count(found, "faster") == 0
    assert seconds(found) < 66


def test_equal_models_take_less_further_time_than_there_is(monkeypatch: pytest.MonkeyPatch):
    assert seconds(heavy(monkeypatch, 1.0, 40)) < 90


SLOW_TO_OPEN = Weather(noise=0.01, luck=0.01, opening=2.5)
"""As convolutions for a GPU are: seconds to open, milliseconds to run."""


def slow_to_open(gain: float, runs: int, further: float) -> list[Comparison]:
    method = Method(seconds=20, further=further)
    return [contest(World(seed, SLOW_TO_OPEN), [0.002, 0.002 / gain], method) for seed in range(runs)]


def test_what_is_slow_to_open_is_told_apart_in_further_time() -> None:
    assert count(slow_to_open(1.4, 20, further=0.0), "faster") >= 19
    assert count(slow_to_open(1.15, 20, further=0.0), "faster") == 0
    found = slow_to_open(1.06, 20, further=40.0)
    assert count(found, "faster") >= 18
    assert max(comparison.seconds for comparison in found) < 90


def test_what_is_twice_as_fast_is_not_lost_because_it_opens_slowly() -> None:
    weather = Weather(noise=0.01, luck=0.01, opening=14.0)
    found = [contest(World(k, weather), [RUN, RUN / 2], Method(seconds=5.0, further=60.0)) for k in range(10)]
    assert count(found, "faster") == 10
    assert all(c.seconds < 4 * 30 for c in found)  # two sittings to see it, two to confirm it
    for gain in (1.05, 1.0):
        likely = [contest(World(k, weather), [RUN, RUN / gain], Method(seconds=5.0, further=60.0)) for k in range(40)]
        assert count(likely, "faster") == 0
        assert all(c.seconds < 5 + 60 + 2 * 30 for c in likely)


def test_the_patient_hold_as_many_sittings_as_tell_something() -> None:
    weather = Weather(noise=0.01, luck=0.01, opening=14.0)
    method = Method(seconds=5.0, further=5.0)

    def found(gain: float, patient: bool) -> list[Comparison]:
        each = replace(method, patient=patient)
        return [contest(World(k, weather), [RUN, RUN / gain], each) for k in range(40)]

    assert count(found(1.1, patient=False), "faster") == 0
    assert count(found(1.1, patient=True), "faster") >= 38
    equal = found(1.0, patient=True)
    assert count(equal, "faster") <= 1
    assert all(c.seconds < (4 + 6) * 30 for c in equal)  # to see it, and to confirm it
    assert all(c.pairs[0].sittings >= 4 for c in equal)
    ahead = found(1.15, patient=True)
    assert count(ahead, "faster") >= 38
    assert median(c.seconds for c in ahead) < (2 + 4 + 0.5) * 30


def test_the_patient_are_not_taken_in_by_chance() -> None:
    weather = Weather(noise=0.02, luck=0.04, opening=5.0)
    method = Method(seconds=5.0, further=5.0, patient=True)
    found = [contest(World(k, weather), [RUN, RUN], method) for k in range(200)]
    assert count(found, "faster") <= 6


def test_of_what_is_slow_to_open_no_more_equal_models_are_accepted() -> None:
    found = slow_to_open(1.0, 200, further=40.0)
    assert count(found, "faster") <= 2
    assert max(comparison.seconds for comparison in found) < 90


def test_slow_models_settle_with_twelve_sittings_or_not_at_all():
    for run, least in ((0.8, 12), (5.0, 0)):
        told: list[Progress] = []
        contest(World(3, Weather(noise=0.002, outliers=0.0, luck=0.01)), [run, run / 1.01], PATIENT, told=told)
        settled = [p for p in told if p.phase == "settle"]
        assert len(settled) >= least
        assert bool(settled) == bool(least)


def test_the_fastest_so_far_is_told():
    told: list[Progress] = []
    contest(World(3, Weather(noise=0.002, outliers=0.0, luck=0.01)), [0.01, 0.011, 0.005], PATIENT, told=told)
    assert told
    assert all(p.speedup is not None and 1.9 < p.speedup < 2.1 for p in told)


def test_fresh_sittings_are_looked_at_twice_at_most(monkeypatch: pytest.MonkeyPatch):
    """Acceptance by chance grows with every look, and alpha is spent on two."""
    looks: list[int] = []
    accept = Contest._accept  # pyright: ignore[reportPrivateUsage]

    def counted(self: Contest, c: Challenger, fresh: Evidence) -> None:
        looks.append(len(fresh))
        accept(self, c, fresh)

    monkeypatch.setattr(Contest, "_accept", counted)
    seen: list[int] = []
    for seed in range(60):
        looks.clear()
        contest(World(seed, WEATHERS["noisy"]), [RUN, RUN / 1.01], Method(seconds=20, further=40, saving=0.01 * RUN))
        assert looks == sorted(set(looks))
        seen.append(len(looks))
    assert max(seen) == 2


def test_an_end_that_is_asked_for_leaves_a_quarter_of_the_time():
    world, asked = World(0, WEATHERS["noisy"]), 3.0
    bench = Bench(lambda i: Model(world, RUN / 1.01 if i else RUN), world.clock, 0.004, 0.5)
    hurried = Contest(["a", "b"], bench, PATIENT, True, hurried=lambda: world.now > asked).run()
    assert asked < hurried.seconds < asked + 0.25 * PATIENT.seconds + 2.0


def test_in_a_hurry_a_large_gain_of_slow_models_is_still_told(monkeypatch: pytest.MonkeyPatch):
    """A quarter of the time is enough for three sittings; they have ten."""
    monkeypatch.setattr("tests.cost.world.OPENING", 1.0)
    world = World(0, HEAVY)
    bench = Bench(lambda i: Model(world, 0.1 / 1.2 if i else 0.1), world.clock, 0.004, 0.5)
    found = Contest(["a", "b"], bench, PATIENT, True, hurried=lambda: True).run()
    assert found.pairs[0].verdict == "faster"
    assert found.seconds < PATIENT.seconds


def test_a_slower_model_is_called_slower():
    assert verdicts(WEATHERS["ordinary"], 0.9, runs=20) == {"slower": 20}


def test_models_too_large_to_be_open_together_are_told_apart():
    assert verdicts(WEATHERS["ordinary"], 1.2, runs=20, together=False) == {"faster": 20}


def test_intervals_hold_the_truth_as_often_as_they_say():
    inside = 0
    for seed in range(100):
        pair = contest(World(seed, WEATHERS["lucky openings"]), [RUN, RUN / 1.1]).pairs[0]
        assert pair.verdict == "faster"
        assert pair.interval is not None
        assert pair.speedup is not None
        assert pair.interval.low < pair.speedup < pair.interval.high
        inside += pair.interval.low <= 1.1 <= pair.interval.high
    assert inside >= 90


def test_faster_means_that_the_interval_of_the_fresh_sittings_excludes_one():
    pair = contest(World(1, Weather()), [RUN, RUN / 1.1]).pairs[0]
    assert pair.verdict == "faster"
    assert pair.interval is not None
    assert pair.interval.low > 1.0
    assert pair.reason == f"confirmed by {pair.sittings} fresh sittings"


def test_a_winner_that_does_not_win_again_is_not_faster():
    """The second model is faster only in its first four openings: found, never confirmed."""
    world = World(0, Weather(noise=0.002, drift=0.0, outliers=0.0))
    opened = Counter[int]()

    def open_runner(index: int) -> Runner:
        opened[index] += 1
        return Model(world, RUN / 1.1 if index == 1 and opened[1] <= 4 else RUN)

    phases: list[Progress] = []
    bench = Bench(open_runner, world.clock, 0.004, 0.5)
    pair = Contest(["a", "b"], bench, Method(), True, phases.append).run().pairs[0]
    assert "confirm" in {p.phase for p in phases}
    assert pair.verdict == "not faster"


def test_what_is_negligible_ends_early():
    comparison = contest(World(0, WEATHERS["quiet"]), [RUN, RUN / 1.001])
    assert comparison.pairs[0].verdict == "not faster"
    assert comparison.pairs[0].reason == "any difference is under 0.5%"
    assert comparison.seconds < Method().seconds / 2


@pytest.mark.parametrize("seconds", [2.0, 20.0])
def test_time_is_kept_to_within_one_sitting(seconds: float):
    comparison = contest(World(0, WEATHERS["noisy"]), [RUN, RUN / 1.03], Method(seconds=seconds))
    assert comparison.seconds < seconds + 2.0


def test_too_little_time_is_said():
    pair = contest(World(0, Weather()), [5.0, 2.0]).pairs[0]
    assert pair.verdict == "not faster"
    assert pair.reason.startswith("too little time")


def test_many_subjects_are_each_held_against_the_first():
    comparison = contest(World(3, Weather(noise=0.01)), [RUN, RUN, RUN / 1.5, RUN * 1.5], Method(seconds=60))
    assert [p.verdict for p in comparison.pairs] == ["not faster", "faster", "slower"]
    assert comparison.pair("2").speedup == pytest.approx(1.5, rel=0.05)
    latency = comparison.latency("3")
    assert latency is not None
    assert latency.interval.low <= latency.median <= latency.interval.high


def test_one_model_alone_is_timed():
    comparison = contest(World(0, Weather(noise=0.01)), [RUN])
    assert comparison.pairs == ()
    latency = comparison.latency("0")
    assert latency is not None
    assert latency.runs >= 20


def test_large_models_are_open_one_at_a_time():
    world = World(0, Weather())
    comparison = contest(world, [RUN, RUN, RUN], together=False)
    assert comparison.one_at_a_time
    assert (world.most_open, world.open) == (1, 0)


def test_everything_is_closed_in_the_end():
    world = World(0, Weather())
    contest(world, [RUN, RUN, RUN])
    assert (world.most_open, world.open) == (3, 0)


def test_equal_seeds_give_equal_results():
    one, two = (contest(World(5, Weather()), [RUN, RUN / 1.05], Method(seed=1)) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("together", [True, False])
def test_a_challenger_that_fails_is_left_out(together: bool):
    world = World(0, Weather())

    def open_runner(index: int) -> Runner:
        if index == 1:
            raise CannotRun("no kernel for this option")
        return Model(world, RUN / 1.5 if index == 2 else RUN)

    bench = Bench(open_runner, world.clock, 0.004, 0.5)
    comparison = Contest(["a", "b", "c"], bench, Method(), together).run()
    failed, fine = comparison.pairs
    assert (failed.verdict, failed.reason, failed.speedup) == ("not faster", "no kernel for this option", None)
    assert comparison.latency("b") is None
    assert fine.verdict == "faster"
    assert world.open == 0


def test_models_that_memory_does_not_hold_together_are_opened_one_by_one():
    world = World(0, WEATHERS["quiet"])

    def open_runner(index: int) -> Runner:
        if world.open:
            raise CannotRun("opening: out of memory")
        return Model(world, RUN / 1.5 if index else RUN)

    bench = Bench(open_runner, world.clock, 0.004, 0.5)
    comparison = Contest(["a", "b"], bench, Method(), True).run()
    assert comparison.one_at_a_time
    assert comparison.pairs[0].verdict == "faster"
    assert world.open == 0


def test_a_first_subject_that_fails_is_an_error():
    world = World(0, Weather())

    def open_runner(index: int) -> Runner:
        if index == 0:
            raise CannotRun("broken")
        return Model(world, RUN)

    with pytest.raises(CannotRun, match="broken"):
        Contest(["a", "b"], Bench(open_runner, world.clock, 0.004, 0.5), Method(), True).run()
    assert world.open == 0


def test_a_challenger_that_breaks_while_it_is_sampled_is_left_out():
    world = World(0, Weather())

    class Breaking(Model):
        left = 5

        def run(self) -> None:
            self.left -= 1
            if self.left == 0:
                raise CannotRun("broke")
            super().run()

    def open_runner(index: int) -> Runner:
        return Breaking(world, RUN) if index == 1 else Model(world, RUN)

    comparison = Contest(["a", "b"], Bench(open_runner, world.clock, 0.004, 0.5), Method(), True).run()
    assert comparison.pairs[0].reason == "broke"
    assert comparison.latency("a") is not None
    assert comparison.latency("b") is None
    assert world.open == 0
