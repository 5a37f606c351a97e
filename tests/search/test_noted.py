# pyright: basic
"""What a model's metadata says of how it is best run: told, where it is ours and was not done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import parser

from superopt.ir.onnx import Model, parse
from superopt.options import Options
from superopt.runtime.deployment import Deployment
from superopt.search.compare import bench_models
from superopt.search.deployments import metadata_of
from superopt.search.noted import NOTE, noted_options, unused_options

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
BASE = Deployment("cpu", 2)
SPINNING = replace(BASE, config=(("session.intra_op.allow_spinning", "1"),))
CUDA = Deployment("cuda", 2, provider_options=(("enable_cuda_graph", "1"),))


def data(note: str | None) -> bytes:
    proto = parser.parse_model(TEXT)
    if note is not None:
        proto.metadata_props.add(key=NOTE, value=note)
    return proto.SerializeToString()


def model(note: str | None) -> Model:
    return parse(data(note))


def of(deployment: Deployment) -> str:
    return metadata_of(deployment)[NOTE]


@pytest.mark.unit
def test_what_was_not_done_is_named() -> None:
    assert unused_options(model(of(SPINNING)), BASE) == "session.intra_op.allow_spinning=1"
    assert unused_options(model(of(SPINNING)), SPINNING) == ""
    assert unused_options(model(of(replace(SPINNING, threads=7))), SPINNING) == "", "threads are the machine's"
    fused = replace(CUDA, provider_options=(*CUDA.provider_options, ("fuse_conv_bias", "1")))
    assert unused_options(model(of(fused)), CUDA) == "cuda.fuse_conv_bias=1"
    assert unused_options(model(of(CUDA)), fused) == ""


@pytest.mark.unit
def test_what_is_for_another_device_or_for_nobody_is_not_told() -> None:
    assert unused_options(model(of(CUDA)), BASE) == ""
    assert unused_options(model(None), BASE) == ""


@pytest.mark.unit
@pytest.mark.parametrize(
    "note",
    [
        "", "no json", "[1, 2]", "7", '{"execution_provider": 3}', "[" * 5000, "[" * 100_000,
        json.dumps({"execution_provider": "CPUExecutionProvider", "x": "y" * 20_000}),
    ],
)  # fmt: skip
def test_a_note_that_is_not_ours_is_none(note: str) -> None:
    assert noted_options(model(note)) == {}
    assert unused_options(model(note), BASE) == ""


@pytest.mark.unit
def test_nobody_writes_to_the_terminal() -> None:
    asked = {"execution_provider": "CPUExecutionProvider", "a": "\x1b[2Jgone", "\x1b]0;b": "1", "c": "[red]", "d": "1"}
    assert unused_options(model(json.dumps(asked)), BASE) == "d=1"


@pytest.mark.ort
def test_bench_says_so(tmp_path: Path) -> None:
    plain, noted = tmp_path / "plain.onnx", tmp_path / "noted.onnx"
    plain.write_bytes(data(None))
    noted.write_bytes(data(of(replace(SPINNING, threads=1))))
    options = Options(target="cpu", threads=1, budget=0.2)
    [note] = bench_models([plain, noted], options, lambda *_: None).notes
    assert note.startswith(f"{noted}: optimized to be run with session.intra_op.allow_spinning=1 besides")
    assert not bench_models([plain], options, lambda *_: None).notes
