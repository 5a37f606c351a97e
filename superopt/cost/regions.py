"""What regions cost on the device: each as a model of its own, as onnxruntime really executes it, fusions and all.

Times come from one opening each, and one model opened twice may differ by 2 %: enough to rank candidates. Whether a
whole model is returned is decided by `measure.compare`, which opens again and again.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from superopt.cost.inputs import region_feeds, stand_ins
from superopt.cost.measure import OpenModel, opened, opening, without_garbage_collection
from superopt.cost.race import EMPTY, YARDSTICK, Race
from superopt.cost.sitting import Bench, Clock, Runner
from superopt.cost.structure import structure
from superopt.cost.turn import ALONE, Turn
from superopt.cost.workloads import empty_workload, host, yardstick_workload
from superopt.errors import CannotRun
from superopt.ir.graph import Constant, Graph
from superopt.ir.onnx import Model
from superopt.ir.onnx.standalone import standalone
from superopt.ir.tensor import Array
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

# Raise it whenever region times from before and after a change cannot be compared.
REGION_METHOD = 1
_SAMPLE_SECONDS = 0.002
_WARM_UP_SECONDS = 0.03


@dataclass(frozen=True)
class RegionSubject:
    """A region ready to be timed: `key` names what its time depends on; the others are called when it is opened, which
    many never are: their times are known.

    `feeds` gives its inputs, None where their sizes are unknown; `size` is what its weights take.
    """

    key: str
    model: Callable[[], bytes]
    feeds: Callable[[], Mapping[str, Array] | None]
    size: int = 0


def region_key(model: Model, graph: Graph, sizes: Mapping[str, int]) -> str:
    """What the time of a region depends on, apart from where and how it is run."""
    opsets = " ".join(f"{domain}:{version}" for domain, version in sorted(model.opsets.items()))
    return f"{structure(graph, sizes)} {opsets}"


def region_subject(model: Model, graph: Graph, sizes: Mapping[str, int], seed: int = 0) -> RegionSubject:
    """A region of a model at given sizes of symbolic dims."""
    weights = {v.producer for node in graph.nodes for v in node.operands if isinstance(v.producer, Constant)}
    return RegionSubject(
        region_key(model, graph, sizes),
        lambda: standalone(model, graph, sizes, stand_ins(graph, seed)),
        lambda: region_feeds(graph, sizes, seed),
        sum(constant.tensor.nbytes for constant in weights),
    )


def time_regions(
    subjects: Sequence[RegionSubject],
    deployment: Deployment,
    seconds: float,
    tell: Callable[[int, str], None] | None = None,
    *,
    yardstick: float | None = None,
    finish: bool = False,
    seed: int = 0,
    clock: Clock = time.perf_counter,
    hurried: Callable[[], bool] = lambda: False,
    turn: Turn = ALONE,
) -> list[float | None]:
    """Seconds per run of each, timed against the first; None, with the reason told, for one that has no time.

    Without a time for the first, because it cannot run, none has one. With the time of a `yardstick` in quiet, times
    of different calls can be compared. To `finish` is to time every region, however briefly, past the seconds given.
    On a GPU they are opened outside the `turn`.
    """

    def open_runner(index: int) -> Runner:
        return _opened(_STEADY[index]() if index in _STEADY else subjects[index], deployment)

    if not subjects:
        return []
    bench = Bench(open_runner, clock, _SAMPLE_SECONDS, _WARM_UP_SECONDS, opening(turn, deployment))
    race = Race([subject.size for subject in subjects], bench, tell or _silent, random.Random(seed), yardstick, hurried)
    with without_garbage_collection():
        return race.run(seconds, finish)


def time_yardstick(deployment: Deployment, seconds: float, clock: Clock = time.perf_counter) -> float:
    """What the yardstick takes in quiet: the fastest of many samples, because nothing makes it faster than it is."""
    runner = _opened(_STEADY[YARDSTICK](), deployment)
    bench = Bench(lambda _: runner, clock, _SAMPLE_SECONDS, _WARM_UP_SECONDS)
    until = clock() + seconds
    with without_garbage_collection(), contextlib.closing(bench.lane(YARDSTICK)) as lane:
        lane.sample()
        while clock() < until:
            lane.sample()
        return min(lane.samples)


def _opened(subject: RegionSubject, deployment: Deployment) -> OpenModel:
    feeds = subject.feeds()
    if feeds is None:
        raise CannotRun("the sizes of its inputs are unknown")
    return opened(Session(subject.model(), deployment), feeds)


def _silent(subject: int, why: str) -> None:
    pass


_STEADY: dict[int, Callable[[], RegionSubject]] = {
    EMPTY: lambda: region_subject(host(), empty_workload(), {}),
    YARDSTICK: lambda: region_subject(host(), yardstick_workload(), {}),
}
