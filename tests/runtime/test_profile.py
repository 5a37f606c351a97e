# pyright: basic
"""Microseconds by operator, as onnxruntime's profiler has them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.profile import profile

pytestmark = pytest.mark.ort

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
PLAIN = f"{HEAD} g (float[64] x) => (float[64] y, float[64] z) {{ y = Erf(x) z = Softmax(x) }}"
BODY = f"""{HEAD} g (bool c, float[64] x) => (float[64] y) {{
  y = If(c) <then_branch = t () => (float[64] r) {{ r = Erf(x) }},
             else_branch = e () => (float[64] r) {{ r = Softmax(x) }}>
}}"""
X = np.ones(64, np.float32)
CPU = Deployment("cpu", threads=1)


def model(text: str) -> bytes:
    return parser.parse_model(text).SerializeToString()


def test_every_operator_that_ran_has_its_time() -> None:
    found = profile(model(PLAIN), CPU, {"x": X}, runs=3)
    assert found.microseconds.keys() == {"Erf", "Softmax"}
    assert found.runs == 3
    assert list(found.microseconds.values()) == sorted(found.microseconds.values(), reverse=True)


def test_a_body_counts_by_its_nodes_and_only_once() -> None:
    found = profile(model(BODY), CPU, {"c": np.array(True), "x": X}, runs=2)
    assert found.microseconds.keys() == {"Erf"}


def test_operators_are_those_of_the_optimized_graph() -> None:
    text = f"""{HEAD} g (float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y) <float[1, 1, 1, 1] w = {{2}}> {{
      a = Conv(x, w) y = Relu(a)
    }}"""
    found = profile(model(text), CPU, {"x": np.ones((1, 1, 4, 4), np.float32)}, runs=1)
    assert "Relu" not in found.microseconds


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    profile(model(PLAIN), CPU, {"x": X}, runs=1)
    with pytest.raises(CannotRun):
        profile(model(PLAIN.replace("Erf", "Nope")), CPU, {"x": X})
    assert os.listdir(tmp_path) == []
