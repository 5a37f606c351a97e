# pyright: basic
"""One original at several sizes: each is checked and timed, and the report weighs them together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from superopt.cost.contest import Method
from superopt.errors import BadOption, CannotRun
from superopt.ir.onnx import load
from superopt.options import Options
from superopt.runtime.deployment import Target
from superopt.search.compare import bench_models
from superopt.search.trial import Trial

pytestmark = pytest.mark.ort

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 3] x, float[batch, width] z) => (float[batch, 3] y, float[batch, width] w) {
  y = Relu(x)
  w = Abs(z)
}"""
PICKY = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 2] x) => (float[m, 6] y) <int64[2] s = {-1, 6}> { y = Reshape(x, s) }"""


def trial(folder: Path, text: str = TEXT, **options: Any) -> Trial:
    path = folder / "model.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    given = {"target": "cpu", "threads": 1, "budget": 0.4, **options}
    return Trial(load(path), Options.of(**given), lambda *_: None)


def test_every_point_is_timed_and_weighed(tmp_path: Path) -> None:
    made = trial(tmp_path, dim={"batch": {2: 3, 64: 1}, "width": 5}, costs=tmp_path / "costs.db")
    report = made.race(made.model)
    assert report.status in ("faster", "not faster", "slower")
    assert [(p.sizes, p.weight) for p in report.points] == [
        ({"batch": 2, "width": 5}, 0.75),
        ({"batch": 64, "width": 5}, 0.25),
    ]
    assert report.shapes == {"x": [2, 3], "z": [2, 5]}
    first, second = (p.before for p in report.points)
    assert first is not None
    assert second is not None
    assert report.before is not None
    assert report.before.median == pytest.approx(0.75 * first.median + 0.25 * second.median)
    again = made.race(made.model)
    assert again.frozen
    assert again.points == report.points


def test_one_size_has_no_rows(tmp_path: Path) -> None:
    made = trial(tmp_path, dim={"batch": 2})
    assert made.race(made.model).points == []
    assert made.time_original().points == []


def test_the_original_alone_is_timed_at_every_point(tmp_path: Path) -> None:
    report = trial(tmp_path, dim={"batch": (2, 64)}).time_original()
    assert [p.speedup for p in report.points] == [None, None]
    assert report.before == report.after
    assert report.before is not None


def test_every_point_is_checked(tmp_path: Path) -> None:
    made = trial(tmp_path, dim={"batch": (2, 64), "width": (5, 7)})
    assert made.model.path is not None
    report = made.check(made.model.path)
    assert report.status == "equal"
    for sizes in ("batch=2, width=5", "batch=2, width=7", "batch=64, width=5", "batch=64, width=7"):
        assert any(line.endswith(sizes) for line in report.inputs), sizes


def test_a_size_sets_every_dim_of_its_name(tmp_path: Path) -> None:
    feeds = trial(tmp_path, dim={"batch": 9}).feeds
    assert [np.asarray(feeds[name]).shape[0] for name in ("x", "z")] == [9, 9]


def test_symbols_have_the_sizes_of_the_point(tmp_path: Path) -> None:
    made = trial(tmp_path, dim={"batch": (2, 64), "width": 5})
    assert made.symbol_sizes() == {"batch": 2, "batch#2": 2, "width": 5}
    assert made.symbol_sizes(1)["batch#2"] == 64


def test_a_size_that_does_not_run_is_named(tmp_path: Path) -> None:
    made = trial(tmp_path, PICKY, dim={"n": (3, 4)})
    assert made.race(made.model).reason.startswith("at n=4: ")
    assert made.model.path is not None
    report = made.check(made.model.path)
    assert report.status == "unchecked"
    assert report.reason.startswith("the original: at n=4: ")


def test_a_dim_that_is_not_there_is_refused(tmp_path: Path) -> None:
    made = trial(tmp_path, dim={"batch": (2, 4), "nope": (1, 2)})
    assert made.model.path is not None
    with pytest.raises(BadOption, match="no input has a dim of that name; the dims are batch, width"):
        made.check(made.model.path)


def test_bench_weighs_the_sizes_too(tmp_path: Path) -> None:
    made = trial(tmp_path)
    path = made.model.path
    assert path is not None
    other = tmp_path / "other.onnx"
    other.write_bytes(path.read_bytes())
    options = Options.of(target="cpu", threads=1, budget=0.4, dim={"batch": (2, 64)})
    rows = bench_models([path, other], options, lambda *_: None).rows
    assert [row.latency is None for row in rows] == [False, False]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_on_a_gpu_what_decides_waits_until_there_is_something_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target
) -> None:
    made = trial(tmp_path, options="fixed")
    made._feeds = [{"x": np.zeros((2, 3), np.float32), "z": np.zeros((2, 5), np.float32)}]
    made.deployment = replace(made.deployment, target=target)
    seen: list[Method] = []

    def noted(subjects: Any, feeds: Any, method: Method, **_: Any) -> None:
        seen.append(method)
        raise CannotRun("enough is known")

    monkeypatch.setattr("superopt.search.trial.compare", noted)
    made.race(made.model, 1.0, further=2.0)
    made.race(made.model, 1.0)
    path = made.model.path
    assert path is not None
    with pytest.raises(CannotRun):
        made.race_deployed((path, made.deployment), (path, made.deployment), 1.0)
    assert [method.patient for method in seen] == [target == "cuda", False, target == "cuda"]
