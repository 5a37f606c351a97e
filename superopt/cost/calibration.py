"""A device's coefficients: a handful of operators timed at a few sizes, once for each device and deployment.

Times go through the timer, so a cost file keeps them; coefficients follow from the times alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from superopt.cost.coefficients import Coefficients
from superopt.cost.fit import OF_SAMPLES, Observation, fit
from superopt.cost.manner import in_a_model
from superopt.cost.predict import Predictor
from superopt.cost.race import MOST_OPEN
from superopt.cost.regions import region_key, region_subject
from superopt.cost.samples import CHAIN, launches, samples
from superopt.cost.timer import RegionTimer
from superopt.cost.trained import start_of
from superopt.cost.workloads import host
from superopt.ir.graph import Graph


def calibrate(timer: RegionTimer, seconds: float = 10.0) -> Coefficients:
    """Coefficients of the timer's device. All samples are timed, briefly where the seconds do not suffice: what a
    cost file freezes is complete."""
    graphs = list(samples(timer.deployment.target))
    timer.time([region_subject(host(), graph, {}) for graph in graphs], seconds, finish=True)
    return _fitted(timer, graphs)


def calibrate_in_parts(timer: RegionTimer, seconds: float, hurried: Callable[[], bool]) -> Iterator[int]:
    """The same, a few samples at a time: how many are still missing before each part. What is timed is kept when its
    part ends; from when on it is `hurried` no part begins."""
    first, *others = samples(timer.deployment.target)
    missing = [graph for graph in others if timer.recall(region_key(host(), graph, {})) is None]
    for start in range(0, len(missing), MOST_OPEN):
        yield len(missing) - start
        if hurried():
            return
        part = [region_subject(host(), graph, {}) for graph in (first, *missing[start : start + MOST_OPEN])]
        timer.time(part, seconds * len(part) / (len(others) + 1), finish=True, hurried=hurried)


def is_begun(timer: RegionTimer) -> bool:
    """Whether samples were timed before, on this device under this deployment."""
    return timer.recall(region_key(host(), launches(), {})) is not None


def fitted(timer: RegionTimer) -> Coefficients:
    """From the samples whose times are known; nothing is timed."""
    return _fitted(timer, samples(timer.deployment.target))


def _fitted(timer: RegionTimer, graphs: Iterable[Graph]) -> Coefficients:
    predictor = Predictor(manner=in_a_model(timer.deployment))
    seen: list[Observation] = []
    for graph in graphs:
        told = timer.recall(region_key(host(), graph, {}))
        if told is not None and told.seconds is not None:
            seen.append(Observation(predictor.amounts(graph), told.seconds))
    start = start_of(timer.deployment, timer.machine.device)
    chain = timer.recall(region_key(host(), launches(), {}))
    if chain is not None and chain.seconds is not None:
        start = replace(start, spared=spared(chain.seconds))
    return fit(seen, start, OF_SAMPLES)


def spared(seconds: float) -> float:
    """Of a launch among others, by the time of many: the empty model has one of them."""
    return max(0.0, seconds) / (CHAIN - 1)
