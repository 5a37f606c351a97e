# pyright: basic
"""Session options of real models: found by the clock, compared with the answers of the base, and told as code that
opens the model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from superopt.errors import CannotRun
from superopt.ir.onnx import load
from superopt.runtime.deployment import Deployment
from superopt.runtime.target import cuda_state
from superopt.search.choices import Contents, options_for
from superopt.search.deployments import metadata_of, search_deployment
from superopt.search.sameness import Sameness, reversed_values


@pytest.mark.unit
def test_reversed_values_are_the_same_values():
    feeds: dict[str, Any] = {"x": np.arange(6.0).reshape(2, 3), "n": np.array([3, 4]), "s": ["a"]}
    found: dict[str, Any] = reversed_values(feeds, "f")
    assert found["x"].tolist() == [[5, 4, 3], [2, 1, 0]]
    assert found["n"] is feeds["n"]
    assert found["s"] is feeds["s"]
    found = reversed_values(feeds, "fi")
    assert found["n"].tolist() == [4, 3]


def products(path: Path, steps: int = 6, width: int = 96) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(steps)]
    weights = [
        numpy_helper.from_array((rng.standard_normal((width, width)) / width**0.5).astype(np.float32), f"w{i}")
        for i in range(steps)
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, ["n", width])],
        [helper.make_tensor_value_info(f"t{steps}", TensorProto.FLOAT, ["n", width])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path)
    return {"t0": rng.standard_normal((4, width)).astype(np.float32)}


@pytest.mark.ort
def test_a_real_model_comes_back_with_options_that_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    feeds = products(tmp_path / "m.onnx")
    base = Deployment("cpu", 2)
    told: list[tuple[str, str]] = []
    found = search_deployment(
        tmp_path / "m.onnx", feeds, base, 1.5, further=[{"t0": feeds["t0"][:1]}],
        tell=lambda stage, detail: told.append((stage, detail)),
    )  # fmt: skip
    assert [row.change for row in found.tried] == ["threads=1", "level=extended", "level=basic"]
    assert all(row.verdict in ("faster", "not faster", "slower", "not tried") for row in found.tried)
    assert (found.speedup is None) == (found.best == base)
    assert told[0] == ("options", "threads, 1 of 2")
    report = found.report("m.onnx")
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    exec(compile(report.code, "pasted", "exec"), names)
    assert names["session"].run(None, feeds)[0].shape == (4, 96)
    assert report.options["intra_op_num_threads"] == str(names["options"].intra_op_num_threads)
    assert json.loads(metadata_of(found.best)["superopt.deployment"]) == report.options
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.ort
def test_answers_are_compared_within_tolerance(tmp_path: Path):
    feeds = products(tmp_path / "m.onnx")
    model = load(tmp_path / "m.onnx")
    same = Sameness(tmp_path / "m.onnx", model, feeds, Deployment("cpu", 2))
    assert same.difference(Deployment("cpu", 1, "basic")) == ""


@pytest.mark.ort
def test_another_answer_is_named(tmp_path: Path):
    feeds = products(tmp_path / "m.onnx")
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, Deployment("cpu", 1))
    assert same.difference(Deployment("cpu", 1)) == ""
    made = onnx.load(tmp_path / "m.onnx")
    weight = numpy_helper.to_array(made.graph.initializer[0]) * np.float32(1.01)
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w0"))
    onnx.save(made, tmp_path / "m.onnx")
    assert same.difference(Deployment("cpu", 1)).startswith("output t6: off by ")


@pytest.mark.gpu
def test_a_gpu_is_searched_and_no_option_is_an_error(tmp_path: Path):
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    feeds = products(tmp_path / "m.onnx")
    base = Deployment("cuda", 2)
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, base)
    for choice in options_for(base, Contents(opaque=True, convolves_sequences=True)):
        assert same.difference(choice.applied(base)) == "", choice.text
    found = search_deployment(tmp_path / "m.onnx", feeds, base, 10.0)
    assert [row.change for row in found.tried] == ["enable_cuda_graph=1", "level=extended", "level=basic"]
    assert {row.verdict for row in found.tried} <= {"faster", "not faster", "slower"}


@pytest.mark.gpu
def test_a_cuda_graph_that_would_freeze_an_input_is_skipped(tmp_path: Path):
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3] x, int64[2] s) => (float[m, n] y) { a = Exp(x)  y = Reshape(a, s) }"""
    )
    onnx.save(made, tmp_path / "m.onnx")
    feeds = {"x": np.ones((2, 3), np.float32), "s": np.array([3, 2])}
    base = Deployment("cuda", 2)
    same = Sameness(tmp_path / "m.onnx", load(tmp_path / "m.onnx"), feeds, base)
    with pytest.raises(CannotRun, match="input s is read on the CPU"):
        same.difference(Deployment("cuda", 2, provider_options=(("enable_cuda_graph", "1"),)))
