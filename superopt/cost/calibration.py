"""A device's coefficients: a handful of operators timed at a few sizes, once for each device and deployment.

Times go through the timer, so a cost file keeps them; coefficients follow from the times alone.
"""

from __future__ import annotations

from superopt.cost.coefficients import Coefficients, priors
from superopt.cost.fit import OF_SAMPLES, Observation, fit
from superopt.cost.predict import Predictor
from superopt.cost.regions import region_subject
from superopt.cost.samples import samples
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import host


def calibrate(timer: RegionTimer, seconds: float = 10.0) -> Coefficients:
    """Coefficients of the timer's device. All samples are timed, briefly where the seconds do not suffice: what a
    cost file freezes is complete."""
    graphs = list(samples(timer.deployment.target))
    times = timer.time([region_subject(host(), graph, {}) for graph in graphs], seconds, finish=True)
    predictor = Predictor()
    seen = [Observation(predictor.amounts(g), s) for g, s in zip(graphs, times, strict=True) if s is not None]
    return fit(seen, priors(timer.deployment.target), OF_SAMPLES)
