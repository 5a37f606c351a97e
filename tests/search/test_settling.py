"""On a GPU things are timed with the options that the original gains most by, and only with those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from superopt.cost.measure import Subject
from superopt.cost.result import Comparison, PairTiming
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.search.choices import Contents
from superopt.search.settling import measured_gains, note, settled, unsettled

pytestmark = pytest.mark.unit
CUDA = Deployment("cuda", threads=1)
GRAPH, NHWC, BIAS = ("enable_cuda_graph", "1"), ("prefer_nhwc", "1"), ("fuse_conv_bias", "1")
HASTY = (("cudnn_conv_algo_search", "HEURISTIC"),)
CONVOLVES = Contents(operators=frozenset(("Conv",)))


def chosen(
    gains: Mapping[tuple[tuple[str, str], ...], float | None], base: Deployment = CUDA, contents: Contents = CONVOLVES
) -> list[tuple[tuple[str, str], ...]]:
    """The options of each rung, sorted, where options gain what is told of them."""
    told = {frozenset(options): gain for options, gain in gains.items()}

    def asked(best: Deployment, others: Sequence[Deployment]) -> list[float | None]:
        return [told.get(frozenset(other.provider_options)) for other in others]

    return [tuple(sorted(deployment.provider_options)) for deployment in settled(base, contents, asked)]


def test_one_option_comes_on_top_of_the_other() -> None:
    gains = {(GRAPH,): 3.0, (GRAPH, NHWC): 1.2, (GRAPH, NHWC, BIAS): 1.5}
    assert chosen(gains) == [(), (GRAPH,), (GRAPH, BIAS, NHWC)]
    assert chosen({**gains, (GRAPH, NHWC, BIAS): None}) == [(), (GRAPH,), (GRAPH, NHWC)]
    assert chosen({(GRAPH,): None, (NHWC,): 1.3}) == [(), (NHWC,)]


def test_heuristics_choose_kernels_where_a_search_finds_none_that_are_faster() -> None:
    layout = (*HASTY, GRAPH, NHWC)
    gains = {(*HASTY, GRAPH): 3.0, layout: 1.2, (GRAPH, NHWC): 1.01}
    assert chosen(gains) == [(), (*HASTY, GRAPH), layout]
    assert chosen({**gains, (GRAPH, NHWC): 1.1}) == [(), (GRAPH,), (GRAPH, NHWC)]
    assert chosen({}) == [()]
    assert chosen({(): 0.9, (GRAPH,): 2.0}) == [(), (GRAPH,)]  # with heuristics it does not run
    assert chosen({**gains, (GRAPH, NHWC): None}) == [(), (*HASTY, GRAPH), layout]  # nor with a search
    products = Contents(operators=frozenset(("MatMul",)))
    assert chosen({**gains, (GRAPH,): 2.0}, contents=products) == [(), (GRAPH,)]
    said = Deployment("cuda", 1, provider_options=(("cudnn_conv_algo_search", "EXHAUSTIVE"),))
    assert chosen(gains, said) == [said.provider_options]


def test_who_is_not_hasty_is_asked_nothing_about_heuristics() -> None:
    asked: list[Deployment] = []

    def noting(best: Deployment, others: Sequence[Deployment]) -> list[float | None]:
        asked.extend((best, *others))
        return [2.0] * len(others)

    found = settled(CUDA, CONVOLVES, noting, hasty=False)
    assert [d.provider_options for d in found][:2] == [(), (GRAPH,)]
    assert not any(HASTY[0] in d.provider_options for d in asked)


def test_what_gains_next_to_nothing_is_not_settled() -> None:
    assert chosen({(GRAPH,): 1.001, (NHWC,): 1.0}) == [()]


def test_layouts_are_asked_about_where_there_are_convolutions() -> None:
    gains = {(GRAPH,): 3.0, (GRAPH, NHWC): 2.0}
    assert chosen(gains, contents=Contents(operators=frozenset(("MatMul",)))) == [(), (GRAPH,)]
    assert chosen(gains) == [(), (GRAPH,), (GRAPH, NHWC)]


def test_a_cpu_and_what_the_caller_has_said_stay_as_they_are() -> None:
    assert len(settled(Deployment("cpu", threads=1), CONVOLVES, lambda best, others: [9.0] * len(others))) == 1
    said = Deployment("cuda", 1, provider_options=(("enable_cuda_graph", "0"), ("prefer_nhwc", "0")))
    assert len(settled(said, CONVOLVES, lambda best, others: [9.0] * len(others))) == 1


def test_what_was_settled_can_be_taken_back_and_is_told() -> None:
    best = Deployment("cuda", 1, provider_options=(("use_tf32", "0"), GRAPH, NHWC, *HASTY))
    assert unsettled(best).provider_options == (("use_tf32", "0"),)
    assert "CUDA graph" in note(CUDA, best)
    assert "channels last in convolutions, as it is best deployed; kernels of convolutions by" in note(CUDA, best)
    assert note(best, best) == ""


@pytest.mark.parametrize(
    ("speedups", "gain"), [([3.0], 3.0), ([3.0, 0.9], 0.9), ([3.0, 2.0], 2.0), ([None], None), ([3.0, None], None)]
)
def test_the_gain_is_that_at_the_sizes_where_it_is_least(speedups: list[float | None], gain: float | None) -> None:
    waiting = iter(speedups)
    recorded = Deployment("cuda", 1, provider_options=(GRAPH,))

    def measure(subjects: Sequence[Subject], *_: object) -> Comparison:
        original, other = subjects
        assert (original.model, original.deployment) == (Path("m.onnx"), CUDA)
        assert other.deployment == recorded
        return Pairs(next(waiting))  # pyright: ignore[reportReturnType]

    assert asked(measure, len(speedups), recorded) == [gain]


def test_what_cannot_be_captured_gains_nothing() -> None:
    def measure(*_: object) -> Comparison:
        raise CannotRun("a node is on the CPU")

    assert asked(measure, 1, Deployment("cuda", 1, provider_options=(GRAPH,))) == [None]


def asked(measure: object, points: int, other: Deployment) -> list[float | None]:
    subject = Subject("original", Path("m.onnx"), CUDA)
    return measured_gains(subject, [other], [{}] * points, measure, 0)  # pyright: ignore[reportArgumentType]


class Pairs:
    def __init__(self, speedup: float | None) -> None:
        self.speedup = speedup

    def pair(self, name: str) -> PairTiming:
        assert "enable_cuda_graph=1" in name
        return self  # pyright: ignore[reportReturnType]
