"""On a GPU things are timed with recorded launches where the original gains by them, and only there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from superopt.cost.measure import Subject
from superopt.cost.result import Comparison, PairTiming
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.search.launches import recording_pays, with_recorded_launches

pytestmark = pytest.mark.unit
CUDA = Deployment("cuda", threads=1)


def test_there_is_something_to_record_on_a_gpu_alone() -> None:
    recorded = with_recorded_launches(CUDA)
    assert recorded is not None
    assert recorded.captures_cuda_graph
    assert with_recorded_launches(recorded) is None
    assert with_recorded_launches(Deployment("cpu", threads=1)) is None
    assert with_recorded_launches(Deployment("cuda", 1, provider_options=(("enable_cuda_graph", "0"),))) is None


@pytest.mark.parametrize(
    ("speedups", "pays"),
    [([3.0], True), ([1.001], False), ([3.0, 0.9], False), ([3.0, 2.0], True), ([None], False)],
)
def test_it_pays_where_it_is_faster_at_all_sizes(speedups: list[float | None], pays: bool) -> None:
    waiting = iter(speedups)

    def measure(subjects: Sequence[Subject], *_: object) -> Comparison:
        original, recorded = subjects
        assert (original.model, original.deployment) == (Path("m.onnx"), CUDA)
        assert recorded.deployment.captures_cuda_graph
        return Pairs(next(waiting))  # pyright: ignore[reportReturnType]

    assert asked(measure, len(speedups)) == pays


def test_what_cannot_be_captured_is_timed_as_it_is() -> None:
    def measure(*_: object) -> Comparison:
        raise CannotRun("a node is on the CPU")

    assert not asked(measure, 1)


def asked(measure: object, points: int) -> bool:
    recorded = with_recorded_launches(CUDA)
    assert recorded is not None
    subject = Subject("original", Path("m.onnx"), CUDA)
    return recording_pays(subject, recorded, [{}] * points, measure, 0)  # pyright: ignore[reportArgumentType]


class Pairs:
    def __init__(self, speedup: float | None) -> None:
        self.speedup = speedup

    def pair(self, name: str) -> PairTiming:
        assert name == "recorded"
        return self  # pyright: ignore[reportReturnType]
