"""Whether launches are recorded while models and regions are timed on a GPU.

Without a CUDA graph a small model's time is the host's, who launches one kernel after another: BERT-base in fp16 takes
2.5 ms so on an H200, and 0.8 ms with a graph. Rewrites that save kernels' time then drown in the noise of launches, and
those that save launches look better than they are. So where the original can be captured and gains by it, which is how
it will be deployed, everything is timed so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from superopt.cost.contest import Method
from superopt.cost.measure import Subject
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.values import Value
from superopt.search.choices import Choice
from superopt.search.deployments import LIKELY, Measure

RECORDED = "timed with launches recorded in a CUDA graph, as it is best deployed"
SECONDS = 1.0
"""To see whether it pays: it is worth a factor, or nothing."""

_CHOICE = Choice("launches", provider_options=(("enable_cuda_graph", "1"),))


def with_recorded_launches(base: Deployment) -> Deployment | None:
    """None where there is nothing to record, or where the base says otherwise."""
    given = {name for name, _ in base.provider_options}
    return None if base.target != "cuda" or "enable_cuda_graph" in given else _CHOICE.applied(base)


def recording_pays(
    subject: Subject, recorded: Deployment, feeds: Sequence[Mapping[str, Value]], measure: Measure, seed: int
) -> bool:
    """Whether the subject can be captured and is faster so, on all inputs."""
    captured = Subject("recorded", subject.model, recorded, size=subject.size)
    try:
        for inputs in feeds:
            speedup = measure([subject, captured], inputs, Method(seconds=SECONDS, seed=seed)).pair("recorded").speedup
            if speedup is None or speedup < LIKELY:
                return False
    except CannotRun:
        return False
    return True
