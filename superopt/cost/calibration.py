"""A device's coefficients: a handful of operators timed at a few sizes, once for each device and deployment.

Times go through the timer, so a cost file keeps them; coefficients follow from the times alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from superopt.cost.coefficients import PRIORS, Coefficients
from superopt.cost.features import Measures
from superopt.cost.fit import Observation, fit
from superopt.cost.predict import Predictor
from superopt.cost.regions import region_subject
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import data, host, node, weights, whole, workload, yardstick_workload
from superopt.ir.graph import Attribute, Graph, Value

_RUNTIME = "com.microsoft"

_FUNCTIONS = ("Sigmoid", "Exp", "Tanh", "Erf", "Sqrt", "Reciprocal", "Log", "Softplus", "HardSwish", "Elu", "Sin", "Cos")
_SIMPLE = ("Relu", "Neg", "HardSigmoid", "LeakyRelu", "Floor", "Abs")
_BINARY = ("Add", "Mul", "Sub", "Div", "Max", "Pow")
_REDUCTIONS = ("ReduceMean", "ReduceMax")
_PRODUCTS = (
    (128, 256, 256), (1, 1024, 1024), (16, 256, 256), (128, 64, 64), (1, 256, 64), (64, 768, 768), (512, 32, 128),
)  # fmt: skip
_BATCHED = ((12, 128, 64, 128), (8, 64, 64, 16), (4, 256, 32, 256))
# channels, filters, groups, kernel, height and width
_CONVOLUTIONS = (
    (64, 64, 1, 3, 28), (16, 32, 1, 3, 56), (128, 128, 1, 3, 14), (3, 32, 1, 3, 112), (128, 128, 1, 3, 7),
    (64, 128, 1, 1, 28), (256, 64, 1, 1, 14), (24, 72, 1, 1, 56), (512, 128, 1, 1, 7), (64, 16, 1, 1, 1),
    (64, 64, 64, 3, 28), (96, 96, 96, 5, 14), (32, 32, 32, 3, 112), (256, 256, 256, 3, 7),
    (128, 128, 32, 3, 28), (64, 64, 4, 3, 28),
)  # fmt: skip
_LARGE, _SMALL = (1, 64, 56, 56), (16, 256)
_ROWS = ((128, 256), (256, 768))
_CHAIN = 24


def calibrate(timer: RegionTimer, seconds: float = 10.0) -> Coefficients:
    """Coefficients of the timer's device, from what it can time in so many seconds."""
    graphs = list(workloads())
    times = timer.time([region_subject(host(), graph, {}) for graph in graphs], seconds)
    predictor = Predictor()
    seen = [Observation(predictor.amounts(g), s) for g, s in zip(graphs, times, strict=True) if s is not None]
    return fit(seen, PRIORS)
