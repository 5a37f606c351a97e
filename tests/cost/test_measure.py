import gc
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from superopt.cost.contest import Method, Progress
from superopt.cost.measure import TOGETHER_UP_TO, OpenModel, Subject, compare, room_on
from superopt.cost.sitting import Bench
from superopt.errors import BadOption, CannotRun
from superopt.runtime.deployment import Deployment
from tests.runtime.models import add_one, model, tensor

HERE = Deployment(threads=1)
FEEDS = {"x": np.ones((2, 3), np.float32)}
SHORT = Method(seconds=0.2, sample_seconds=0.0005)


def chain(length: int) -> bytes:
    names = ["x", *(f"t{i}" for i in range(1, length)), "y"]
    nodes = [helper.make_node("Tanh", [a], [b]) for a, b in itertools.pairwise(names)]
    return model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 3])]).SerializeToString()


@pytest.mark.unit
@pytest.mark.parametrize(("memory", "room"), [(0, TOGETHER_UP_TO), (4 << 30, TOGETHER_UP_TO), (80 << 30, 10 << 30)])
def test_a_large_gpu_holds_large_models_together(monkeypatch: pytest.MonkeyPatch, memory: int, room: int):
    monkeypatch.setattr("superopt.cost.measure.gpu_memory", lambda _: memory)
    assert room_on(Deployment("cuda")) == room
    assert room_on(Deployment("cpu")) == TOGETHER_UP_TO


@pytest.mark.ort
@pytest.mark.parametrize("together_up_to", [1 << 30, 0])
def test_models_are_timed_against_the_first(tmp_path: Path, together_up_to: int):
    path = tmp_path / "b.onnx"
    path.write_bytes(chain(3))
    subjects = [Subject("a", chain(2), HERE), Subject("b", path, HERE)]
    told: list[Progress] = []
    found = compare(subjects, FEEDS, SHORT, together_up_to=together_up_to, tell=told.append)
    assert found.one_at_a_time == (together_up_to == 0)
    assert [s.name for s in found.subjects] == ["a", "b"]
    assert all(s.latency is not None and s.latency.median > 0 for s in found.subjects)
    (pair,) = found.pairs
    assert pair.speedup is not None
    assert pair.sittings >= 1
    assert [p.sittings for p in told] == list(range(1, len(told) + 1))
    assert gc.isenabled()


@pytest.mark.ort
def test_a_deployment_is_a_subject_too():
    slow = Deployment(threads=1, level="disable")
    found = compare([Subject("all", chain(4), HERE), Subject("none", chain(4), slow)], FEEDS, SHORT)
    assert found.pair("none").pairs > 0


@pytest.mark.ort
def test_a_report_shows_one_pair():
    found = compare([Subject("a", add_one(), HERE), Subject("b", add_one(), HERE)], FEEDS, SHORT)
    report = found.report("b", {"x": (2, 3)}, frozen=False)
    assert report.status == found.pair("b").verdict
    assert report.before == found.latency("a")
    assert report.after == found.latency("b")
    assert report.shapes == {"x": [2, 3]}


@pytest.mark.ort
def test_a_subject_that_does_not_open_is_left_out_and_the_first_may_not():
    good, bad = Subject("good", add_one(), HERE), Subject("bad", b"no model", HERE)
    pair = compare([good, bad], FEEDS, SHORT).pair("bad")
    assert pair.verdict == "not faster"
    assert "cannot open the model" in pair.reason
    with pytest.raises(CannotRun, match="cannot open the model"):
        compare([bad, good], FEEDS, SHORT)
    assert gc.isenabled()


@pytest.mark.unit
@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_subjects_need_different_names(names: tuple[str, ...]):
    with pytest.raises(BadOption, match="different names"):
        compare([Subject(name, b"", HERE) for name in names], {})


@pytest.mark.unit
def test_a_subject_is_as_large_as_it_says_or_as_its_file(tmp_path: Path):
    path = tmp_path / "m"
    path.write_bytes(b"12345")
    assert Subject("a", path, HERE).bytes == 5
    assert Subject("a", b"123", HERE).bytes == 3
    assert Subject("a", path, HERE, size=7).bytes == 7


@pytest.mark.unit
def test_what_could_not_be_started_is_closed_and_whatever_happens_then_is_told() -> None:
    closed: list[int] = []

    class Session:
        def __init__(self, index: int) -> None:
            self.index = index

        def bind(self, feeds: object) -> None:
            raise CannotRun("no") if self.index == 0 else KeyboardInterrupt

        def close(self) -> None:
            closed.append(self.index)

    bench = Bench(lambda i: OpenModel(Session(i), {}), time.perf_counter, 0.001, 0.001)  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyboardInterrupt):
        bench.lanes([0, 1], lambda *_: None)
    assert set(closed) == {0, 1}
