"""What is pasted opens the very session that was measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import flat_options, python_code
from superopt.runtime.target import cuda_state
from tests.runtime.models import add_one

X = np.arange(6, dtype=np.float32).reshape(2, 3)
GRAPH = Deployment("cuda", 2, provider_options=(("enable_cuda_graph", "1"), ("prefer_nhwc", "1")))


def pasted(code: str, folder: Path) -> dict[str, Any]:
    (folder / "model.onnx").write_bytes(add_one())
    before = Path.cwd()
    os.chdir(folder)
    try:
        names: dict[str, Any] = {}
        exec(compile(code, "pasted", "exec"), names)
        return names
    finally:
        os.chdir(before)


@pytest.mark.ort
def test_pasted_code_opens_the_session(tmp_path: Path):
    deployment = Deployment("cpu", 1, "extended", config=(("session.dynamic_block_base", "4"),), free_dims=(("n", 2),))
    names = pasted(python_code(deployment), tmp_path)
    options, session = names["options"], names["session"]
    assert options.intra_op_num_threads == 1
    assert options.use_deterministic_compute
    assert options.graph_optimization_level.name == "ORT_ENABLE_EXTENDED"
    assert options.get_session_config_entry("session.dynamic_block_base") == "4"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_inputs()[0].shape == [2, 3]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X + 1)


@pytest.mark.ort
def test_the_code_around_a_cuda_graph_gives_new_inputs_to_old_addresses(tmp_path: Path):
    """On the CPU, where the same calls work and nothing is captured."""
    around = python_code(GRAPH).partition("graphs = ")
    on_cpu = "import itertools\n" + python_code(Deployment("cpu", 1)) + around[1] + around[2].replace('"cuda"', '"cpu"')
    names = pasted(on_cpu, tmp_path)
    two, three = names["capture"]({"x": X.copy()}), names["capture"]({"x": np.zeros((3, 3), np.float32)})
    for factor in (1, 2, 3):
        (found,) = two({"x": factor * X})
        np.testing.assert_array_equal(found, factor * X + 1)
        (found,) = three({"x": np.full((3, 3), factor, np.float32)})
        np.testing.assert_array_equal(found, np.full((3, 3), factor + 1, np.float32))


@pytest.mark.gpu
def test_pasted_code_captures_a_cuda_graph(tmp_path: Path):
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    names = pasted(python_code(GRAPH), tmp_path)
    run = names["capture"]({"x": X})
    for factor in (1, 2, 3, 4):
        np.testing.assert_array_equal(run({"x": factor * X})[0], factor * X + 1)


@pytest.mark.unit
def test_only_what_is_not_the_default_is_said():
    plain = python_code(Deployment("cpu", 2), 'my "best" model.onnx')
    assert "graph_optimization_level" not in plain
    assert '"my \\"best\\" model.onnx"' in plain
    cuda = python_code(Deployment("cuda", 2))
    assert "use_tf32" not in cuda
    assert "capture" not in cuda
    assert "deterministic" in cuda
    free = Deployment("cuda", 2, deterministic=False)
    assert "deterministic" not in python_code(free)
    assert flat_options(free)["use_deterministic_compute"] == "0"
    assert '"use_tf32": "0"' in python_code(Deployment("cuda", 2, tf32=False))


@pytest.mark.unit
def test_the_table_has_every_setting_once_as_text():
    assert flat_options(GRAPH) == {
        "execution_provider": "CUDAExecutionProvider",
        "intra_op_num_threads": "2",
        "graph_optimization_level": "ORT_ENABLE_ALL",
        "use_deterministic_compute": "1",
        "session.intra_op.allow_spinning": "0",
        "cuda.enable_cuda_graph": "1",
        "cuda.prefer_nhwc": "1",
    }
    assert flat_options(Deployment("cpu", 1, free_dims=(("n", 2),)))["free_dimension.n"] == "2"
