"""Session options of a model that nobody timed on a device: foreseen from the prices of its whole graph.

Options of convolutions alone are foreseen, channels last above all: they are worth a factor to one network, and
another runs best without. Prices under each of them are fitted to the sample operators recorded with it. Those were not
all recorded at one time, nor is a device equally fast at all times: by how much longer what is no convolution took,
prices under a deployment are lowered.

Held against what was measured there of 16 networks with convolutions, in two types and at two batch sizes, such options
have the right layout 46 times of 61 (benchmarks/foreseen.py), and one has channels last that is better without before
it is rewritten; usual ones have the right layout 11 times. Where prices and the clock disagree, it is mostly that small
or depthwise convolutions are priced too high with channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from superopt.cost.calibration import fitted
from superopt.cost.channels import works_on_images
from superopt.cost.manner import in_a_model
from superopt.cost.predict import Predictor
from superopt.cost.regions import region_key
from superopt.cost.samples import samples
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import host
from superopt.ir.graph import Graph
from superopt.runtime.deployment import Deployment
from superopt.search.bodies import graphs
from superopt.search.choices import FUSED_BIAS, HEURISTIC, NHWC

ENOUGH = 100
"""Sample operators timed under both deployments; of those on images there are fewer, so that others are among them."""
WORTH = 1.1
"""Predicted speed-up from which on other options than the usual ones are taken."""
_ASKED = (*HEURISTIC.provider_options, NHWC, FUSED_BIAS)
_OF_CONVOLUTIONS = {name for name, _ in _ASKED}


@dataclass(frozen=True)
class Foreseen:
    usual: Deployment
    """What most times were recorded with."""
    others: tuple[tuple[Deployment, float], ...] = ()
    """With the predicted time of a run under the usual one over that under each, the best first."""

    @property
    def best(self) -> Deployment:
        return next((other for other, speedup in self.others if speedup >= WORTH), self.usual)

    @property
    def text(self) -> str:
        """What was priced, and by how much it differs."""
        told = [f"{_difference(other, self.usual)} {speedup:.2f}×" for other, speedup in self.others]
        usual = "the options that most times were recorded with"
        if self.best == self.usual:
            return f"none of what else was recorded should be {WORTH - 1:.0%} faster than {usual}: {', '.join(told)}"
        return f"options by the prices of sample operators, as a speed-up over {usual}: {', '.join(told)}"


def alternatives(usual: Deployment, recorded: Iterable[Deployment]) -> list[Deployment]:
    """Those that differ in what they say of convolutions alone, and say no more than superopt itself would ask for: a
    file of costs may be anyone's."""
    rest = _without_convolutions(usual)
    asked = (dict(options) for n in range(len(_ASKED) + 1) for options in combinations(_ASKED, n))
    known = [replace(usual, provider_options=tuple((dict(rest.provider_options) | more).items())) for more in asked]
    texts = {deployment.text for deployment in recorded}
    return sorted((d for d in known if d.text != usual.text and d.text in texts), key=lambda d: d.text)


def foresee(
    graph: Graph,
    sizes: Mapping[str, int],
    usual: Deployment,
    others: Sequence[Deployment],
    timer: Callable[[Deployment], RegionTimer],
) -> Foreseen:
    """Of a normalized graph; a `timer` tells what was recorded under a deployment."""
    on_images = {region_key(host(), sample, {}): works_on_images(sample) for sample in samples(usual.target)}
    there = timer(usual)
    price, found = _price(graph, sizes, there), list[tuple[Deployment, float]]()
    for other in others:
        told = timer(other)
        times = {key: (_seconds(told, key), _seconds(there, key)) for key in on_images}
        both = {key: seconds / usually for key, (seconds, usually) in times.items() if seconds and usually}
        if len(both) >= ENOUGH and (there_too := _price(graph, sizes, told)) > 0:
            slower = median(ratio for key, ratio in both.items() if not on_images[key])
            found.append((other, price * slower / there_too))
    return Foreseen(usual, tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].text))))


def rungs(usual: Sequence[Deployment], best: Deployment) -> tuple[Deployment, ...]:
    """The ladder up to the best: what does not run under it may under one that asks for less."""
    if best == usual[-1]:
        return tuple(usual)
    return (*(d for d in usual if d != best and set(d.provider_options) <= set(best.provider_options)), best)


def _price(graph: Graph, sizes: Mapping[str, int], timer: RegionTimer) -> float:
    predictor = Predictor(sizes, fitted(timer), in_a_model(timer.deployment))
    return sum(predictor.region(part, part.outputs) for part, _ in graphs(graph))


def _seconds(timer: RegionTimer, key: str) -> float:
    """0 where that is not known; what takes no longer than nothing tells nothing."""
    told = timer.recall(key)
    return 0.0 if told is None or told.seconds is None else max(0.0, told.seconds)


def _without_convolutions(deployment: Deployment) -> Deployment:
    kept = tuple(pair for pair in deployment.provider_options if pair[0] not in _OF_CONVOLUTIONS)
    return replace(deployment, provider_options=kept)


def _difference(other: Deployment, usual: Deployment) -> str:
    ours, theirs = dict(other.provider_options), dict(usual.provider_options)
    added = [f"{name}={value}" for name, value in ours.items() if theirs.get(name) != value]
    return " ".join([*added, *(f"without {name}" for name in theirs if name not in ours)])
