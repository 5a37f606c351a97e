# pyright: basic
"""Session options are searched by the clock: what helps is kept, what fails or differs is told, the base is the answer
to any doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from superopt.cost.contest import Contest, Method
from superopt.cost.result import Comparison, PairTiming, Verdict
from superopt.cost.sitting import Bench
from superopt.errors import CannotRun
from superopt.report import Interval
from superopt.runtime.deployment import Deployment
from superopt.search.choices import Contents, options_for
from superopt.search.deployments import WORTH, Deployed, Search, Stand
from tests.cost.world import RUN, Model, Weather, World

pytestmark = pytest.mark.unit

CPU = Deployment("cpu", 4)
CUDA = Deployment("cuda", 4)
NOTHING = Contents()
CONVOLUTIONS = Contents(frozenset(("Conv", "Relu")))


class FakeStand:
    """Deployments that take as long as `cost` says, on the simulated machine's clock."""

    def __init__(
        self,
        cost: Callable[[Deployment], float],
        differs: Callable[[Deployment], str] = lambda d: "",
        at: Sequence[Callable[[Deployment], float]] = (),
        world: World | None = None,
    ) -> None:
        self.world = world or World(7, Weather())
        self.costs, self.differs = (cost, *at), differs
        self.raced: list[list[str]] = []

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        self.raced.append([d.text for d in deployments])
        method = Method(seconds=seconds, further=further, negligible=WORTH - 1)
        costs = self.costs[feeds]
        bench = Bench(
            lambda i: Model(self.world, RUN * costs(deployments[i])), self.world.clock, method.sample_seconds, 0.5
        )
        return Contest([d.text for d in deployments], bench, method, True).run()

    def difference(self, deployment: Deployment) -> str:
        return self.differs(deployment)


def searched(
    stand: Stand, base: Deployment, contents: Contents = CONVOLUTIONS, seconds: float = 200.0, further: int = 0
) -> Deployed:
    return Search(stand, base, options_for(base, contents), seconds, further).run()


def fails(deployment: Deployment) -> float:
    raise CannotRun(f"no kernel for {deployment.text}")


def test_winners_of_several_dimensions_are_combined():
    def cost(d: Deployment) -> float:
        return (0.5 if d.threads == 1 else 1.0) * (0.8 if d.level == "extended" else 1.0)

    found = searched(FakeStand(cost), CPU)
    assert (found.best.threads, found.best.level) == (1, "extended")
    assert found.best.config == ()
    assert found.speedup == pytest.approx(2.5, rel=0.1)
    assert found.interval is not None
    assert found.interval.low > 1
    assert [row.change for row in found.tried if row.kept] == ["threads=1", "level=extended"]
    assert {row.change: row.verdict for row in found.tried}["level=basic"] == "not faster"


def test_a_choice_is_judged_under_what_was_kept_before_it():
    """Launches hide what the layout gains: only with a CUDA graph does it show."""

    def cost(d: Deployment) -> float:
        options = dict(d.provider_options)
        kernels = 0.3 if "prefer_nhwc" in options else 0.5
        return kernels if "enable_cuda_graph" in options else 1.0

    found = searched(FakeStand(cost), CUDA)
    assert dict(found.best.provider_options)["prefer_nhwc"] == "1"
    assert found.speedup == pytest.approx(1 / 0.3, rel=0.1)
    assert any("captures one for each" in note for note in found.notes)
    assert any("TF32" in note for note in found.notes)


def test_an_option_that_fails_is_skipped_with_its_reason():
    def cost(d: Deployment) -> float:
        options = dict(d.provider_options)
        if "fuse_conv_bias" in options and "prefer_nhwc" not in options:
            return fails(d)
        return 0.5 if "fuse_conv_bias" in options else 1.0

    found = searched(FakeStand(cost), CUDA)
    assert dict(found.best.provider_options) == {"prefer_nhwc": "1", "fuse_conv_bias": "1"}
    (row,) = [row for row in found.tried if row.change == "fuse_conv_bias=1"]
    assert (row.verdict, row.speedup) == ("failed", None)
    assert "no kernel" in row.note


def test_an_option_that_answers_otherwise_is_skipped_and_the_next_best_taken():
    def cost(d: Deployment) -> float:
        return {"all": 1.0, "extended": 0.7, "basic": 0.5}[d.level]

    stand = FakeStand(cost, differs=lambda d: "output y: off by 3" if d.level == "basic" else "")
    found = searched(stand, Deployment("cpu", 1))
    assert found.best.level == "extended"
    (row,) = [row for row in found.tried if row.change == "level=basic"]
    assert (row.verdict, row.kept) == ("different", False)
    assert "off by 3" in row.note


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_helps_the_base_comes_back(seed: int):
    found = searched(FakeStand(lambda d: 1.0, world=World(seed, Weather(luck=0.01))), CPU)
    assert found.best == CPU
    assert found.speedup is None
    assert len(found.tried) == len(options_for(CPU, CONVOLUTIONS))


def test_winners_that_do_not_add_up_are_not_returned():
    def cost(d: Deployment) -> float:
        if len(stand.raced[-1]) == 2 and stand.raced[-1][0] == CPU.text and d.level == "extended":
            return 1.2  # in the last race alone
        return 0.8 if d.level == "extended" else 1.0

    stand = FakeStand(cost)
    found = searched(stand, CPU)
    assert stand.raced[-1][1].endswith("level=extended")
    assert found.best == CPU
    assert "together not faster" in found.notes[0]


class Told:
    """A stand that answers what it was told: verdict and speed-up of the options in which two deployments differ."""

    def __init__(self, verdicts: dict[str, tuple[Verdict, float]]) -> None:
        self.verdicts = verdicts

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        known = set(deployments[0].text.split())
        pairs = tuple(self.pair(d.text, set(d.text.split()) - known) for d in deployments[1:])
        return Comparison(subjects=(), pairs=pairs, seconds=1.0, one_at_a_time=False)

    def pair(self, name: str, new: set[str]) -> PairTiming:
        verdict, speedup = next((v for word, v in self.verdicts.items() if word in new), ("not faster", 1.0))
        interval = Interval(low=speedup - 0.01, high=speedup + 0.01)
        return PairTiming(
            name=name, verdict=verdict, reason="", speedup=speedup, interval=interval, sittings=2, pairs=9
        )  # pyright: ignore[reportArgumentType]

    def difference(self, deployment: Deployment) -> str:
        return ""


def test_where_all_together_is_in_doubt_what_was_sure_alone_comes_back():
    stand = Told(
        {"prefer_nhwc=1": ("not faster", 1.09), "enable_cuda_graph=1": ("faster", 1.6)}
    )  # the likely one with the sure one is in doubt again; the sure one alone is not
    found = searched(stand, CUDA)
    assert found.best.text.endswith("enable_cuda_graph=1 use_tf32=1")
    assert "prefer_nhwc" not in found.best.text
    assert found.speedup == 1.6
    assert any("together not faster" in note for note in found.notes)


def test_a_deployment_that_is_slower_at_another_size_is_not_returned():
    def small(d: Deployment) -> float:
        return 0.5 if d.threads == 1 else 1.0

    def large(d: Deployment) -> float:
        return 2.0 if d.threads == 1 else 1.0

    assert searched(FakeStand(small, at=(small,)), CPU, further=1).best.threads == 1
    found = searched(FakeStand(small, at=(large,)), CPU, further=1)
    assert found.best == CPU
    assert "slower at others" in found.notes[0]


def test_when_the_time_is_over_the_rest_is_not_tried():
    stand = FakeStand(lambda d: 50.0)
    found = searched(stand, CPU, seconds=5.0)
    assert found.best == CPU
    assert len(stand.raced) == 1
    assert [row.verdict for row in found.tried[2:]] == ["not tried"] * 3


def test_a_model_that_does_not_run_is_no_error():
    found = searched(FakeStand(fails), CPU)
    assert found.best == CPU
    assert "could not be timed: no kernel" in found.notes[0]


def test_little_time_does_not_lose_what_is_obvious():
    """Sessions that take seconds to open leave one look at each choice; what is three times faster is confirmed."""

    def cost(d: Deployment) -> float:
        return 0.3 if d.captures_cuda_graph else 1.0

    found = searched(FakeStand(cost, world=World(7, Weather(opening=1.5))), CUDA, NOTHING, seconds=8.0)
    assert found.best.captures_cuda_graph
    assert found.speedup is not None
    assert found.speedup > 2
    same = searched(FakeStand(lambda d: 1.0, world=World(7, Weather(opening=1.5))), CUDA, NOTHING, seconds=8.0)
    assert same.best == CUDA


def test_two_sittings_are_enough_to_keep_what_is_obvious():
    """Their interval is so wide that it says nothing; the end decides."""

    class Brief(FakeStand):
        def race(
            self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0
        ) -> Comparison:
            found = super().race(deployments, seconds, feeds, further)
            if further:
                return found
            wide = {"verdict": "not faster", "interval": Interval(low=0.2, high=13.0), "reason": "too little time"}
            return found.model_copy(update={"pairs": tuple(p.model_copy(update=wide) for p in found.pairs)})

    found = searched(Brief(lambda d: 0.5 if "enable_cuda_graph" in dict(d.provider_options) else 1.0), CUDA)
    assert found.best.captures_cuda_graph
    assert found.speedup == pytest.approx(2.0, rel=0.1)


def test_what_is_likely_and_was_seen_too_briefly_is_looked_at_again():
    """Sessions take seconds to open: one look at each choice says little of four percent."""

    def cost(d: Deployment) -> float:
        return 0.5 * (0.96 if d.level == "extended" else 1.0) if d.captures_cuda_graph else 1.0

    stand = FakeStand(cost, world=World(7, Weather(opening=0.4)))
    found = searched(stand, CUDA, NOTHING, seconds=8.0)
    assert found.best.level == "extended"
    assert next(row for row in found.tried if row.change == "level=extended").verdict == "faster"


GRAPH = replace(CUDA, provider_options=(("enable_cuda_graph", "1"),))
NHWC = replace(CUDA, provider_options=(("enable_cuda_graph", "1"), ("prefer_nhwc", "1")))


def on_a_ladder(stand: FakeStand, ladder: tuple[Deployment, ...]) -> Deployed:
    return Search(stand, CUDA, options_for(CUDA, CONVOLUTIONS), 200.0, ladder=ladder).run()


def test_the_search_starts_from_what_is_settled():
    stand = FakeStand(lambda d: (0.5 if d.captures_cuda_graph else 1.0) * (0.8 if "prefer_nhwc" in d.text else 1.0))
    found = on_a_ladder(stand, (CUDA, GRAPH, NHWC))
    assert found.best == NHWC
    assert found.speedup == pytest.approx(2.5, rel=0.1)
    assert all(raced[0] == NHWC.text for raced in stand.raced[:-1])
    assert found.tried[0].change == "enable_cuda_graph=1 prefer_nhwc=1"
    assert found.tried[0].kept


def test_all_that_a_rung_asks_for_is_told():
    free = replace(GRAPH, deterministic=False)
    found = on_a_ladder(FakeStand(lambda d: 1.0 if d.deterministic else 0.5), (CUDA, free))
    assert found.best == free
    assert found.tried[0].change == "enable_cuda_graph=1 use_deterministic_compute=0"


def test_a_rung_that_answers_otherwise_gives_way_to_the_one_below():
    stand = FakeStand(
        lambda d: 0.5 if d.captures_cuda_graph else 1.0, differs=lambda d: "wrong" if "prefer_nhwc" in d.text else ""
    )
    found = on_a_ladder(stand, (CUDA, GRAPH, NHWC))
    assert found.best == GRAPH
    assert [(row.verdict, row.kept) for row in found.tried[:2]] == [("different", False), ("faster", True)]


def test_what_is_settled_and_not_faster_here_is_given_up():
    found = on_a_ladder(FakeStand(lambda d: 1.0), (CUDA, GRAPH))
    assert found.best == CUDA
