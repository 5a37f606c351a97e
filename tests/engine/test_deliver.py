# pyright: basic
"""Whatever happens to the job, a whole model lies at the output path, or nothing does."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import superopt
from superopt.engine import deliver as module
from superopt.engine import pages
from superopt.engine.deliver import Delivered, deliver
from superopt.engine.job import Done, Known
from superopt.errors import BadModel, BadOption, CannotWrite, LimitHit, WorkerDied
from superopt.explain.scene import Scene
from superopt.options import Options
from tests.engine.test_watch import FACTS, PLACE

pytestmark = pytest.mark.ort

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }'
OPTIONS = Options(target="cpu", threads=1, budget=0.1)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    proto = parser.parse_model(TEXT)
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[3], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="sub/w.bin")
    (tmp_path / "in" / "sub").mkdir()
    (tmp_path / "in" / "sub" / "w.bin").write_bytes(np.ones(3, np.float32).tobytes())
    (tmp_path / "in" / "m.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "in" / "m.onnx"


def delivered(source: Path, out: Path | None) -> Delivered:
    return deliver(source, out, OPTIONS, lambda stage: None)


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def transposed_product() -> onnx.ModelProto:
    """onnxruntime 1.31.1 moves a cast past the Transpose, where a CPU has no products in float16, and crashes."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float16[4,5,6] x, float16[6,8] w) => (float16[5,4,8] y) {'
    proto = parser.parse_model(text + " a = Transpose<perm = [1, 0, 2]>(x) y = MatMul(a, w) }")
    del proto.graph.input[1]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((6, 8), np.float16), "w"))
    return proto


def test_what_onnxruntime_does_not_survive_costs_nothing_but_time(tmp_path: Path) -> None:
    """On a processor that has such products nothing crashes, and nothing is told."""
    source, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(transposed_product(), source)
    opening = f"import onnxruntime; onnxruntime.InferenceSession({str(source)!r}, providers=['CPUExecutionProvider'])"
    crashes = subprocess.run([sys.executable, "-c", opening], capture_output=True, check=False).returncode < 0
    found = delivered(source, out)
    assert found.stopped is None
    assert any("killed by SIG" in note and "begun again" in note for note in found.report.notes) == crashes
    assert "killed by SIG" in found.report.timing.reason or not crashes
    if crashes:
        assert out.read_bytes() == source.read_bytes()


def test_the_model_arrives_with_its_data_and_nothing_else(source: Path, tmp_path: Path) -> None:
    before = files(source.parent)
    found = delivered(source, tmp_path / "out" / "o.onnx")
    assert found.stopped is None
    assert found.report.after.path == str(tmp_path / "out" / "o.onnx")
    assert files(tmp_path / "out") == ["o.onnx", "sub/w.bin"]
    assert files(source.parent) == before
    assert (tmp_path / "out" / "o.onnx").read_bytes() == source.read_bytes()


def test_beside_the_original_the_data_is_shared(source: Path) -> None:
    delivered(source, source.parent / "o.onnx")
    assert files(source.parent) == ["m.onnx", "o.onnx", "sub/w.bin"]


def test_an_older_result_is_replaced(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "o.onnx").write_text("older")
    delivered(source, tmp_path / "out" / "o.onnx")
    assert (tmp_path / "out" / "o.onnx").read_bytes() == source.read_bytes()


def test_a_dry_run_writes_nothing(source: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    found = delivered(source, None)
    assert found.written is None
    assert found.report.rewrites
    assert files(tmp_path) == before


def test_paths_that_cannot_be_are_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "run_job", lambda *_, **__: pytest.fail("work was begun"))
    (tmp_path / "link.onnx").symlink_to(source)
    os.mkfifo(tmp_path / "pipe")
    for out, kind in (
        (source, BadOption),
        (tmp_path / "link.onnx", BadOption),
        (tmp_path / "out", CannotWrite),
        (tmp_path / "none" / "o.onnx", CannotWrite),
        (source / "o.onnx", CannotWrite),
        (tmp_path / "pipe", CannotWrite),
        (Path("/proc/o.onnx"), CannotWrite),
    ):
        with pytest.raises(kind):
            delivered(source, out)
    with pytest.raises(BadModel, match="no such file"):
        delivered(tmp_path / "none.onnx", tmp_path / "out" / "o.onnx")
    assert files(tmp_path / "out") == []


@pytest.mark.parametrize("stopped", [LimitHit("too long"), WorkerDied("was killed by SIGKILL")])
def test_when_the_job_is_stopped_the_original_is_kept(
    monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path, stopped: Exception
) -> None:
    def stop(job, limits, tell, watched, **_) -> Done:
        (job.folder / "candidate").mkdir()
        (job.folder / "candidate" / "half").write_text("written")
        watched.known = Known(facts=FACTS, external=["sub/w.bin"], environment=PLACE)
        raise stopped

    monkeypatch.setattr(module, "run_job", stop)
    found = delivered(source, tmp_path / "out" / "o.onnx")
    assert found.stopped is stopped
    assert found.report.returned == "original"
    assert str(stopped) in found.report.verdict
    assert found.report.check.status == "unchecked"
    assert files(tmp_path / "out") == ["o.onnx", "sub/w.bin"]
    assert (tmp_path / "out" / "o.onnx").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("error", [LimitHit("x"), WorkerDied("x"), KeyboardInterrupt(), BadModel("x")])
def test_when_nothing_is_known_yet_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path, error: BaseException
) -> None:
    def stop(*_, **__) -> Done:
        raise error

    monkeypatch.setattr(module, "run_job", stop)
    with pytest.raises(type(error)):
        delivered(source, tmp_path / "out" / "o.onnx")
    assert os.listdir(tmp_path / "out") == []


def test_a_full_disk_leaves_the_older_result_whole(
    monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "out" / "o.onnx").write_text("older")

    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CannotWrite, match="the disk is full"):
        delivered(source, tmp_path / "out" / "o.onnx")
    assert files(tmp_path / "out") == ["o.onnx"]
    assert (tmp_path / "out" / "o.onnx").read_text() == "older"


@pytest.mark.parametrize(
    "given", [Path, onnx.ModelProto, *(pytest.param(kind, marks=pytest.mark.thorough) for kind in (str, bytes))]
)
def test_the_library_takes_paths_bytes_and_messages(given: type, tmp_path: Path) -> None:
    path, proto = tmp_path / "m.onnx", parser.parse_model(TEXT)
    path.write_bytes(proto.SerializeToString())
    seen: list[str] = []
    model = {Path: path, str: str(path), bytes: path.read_bytes(), onnx.ModelProto: proto}[given]
    result = superopt.optimize(
        model, target="cpu", threads=1, budget=0.1, progress=lambda stage, detail: seen.append(stage)
    )
    assert onnx.load_from_string(result.model).graph.output[0].name == "y"
    assert result.report.check.status == "equal"
    assert {"loading", "rewriting", "checking", "timing"} <= set(seen)


def test_the_library_refuses_options_that_are_none() -> None:
    with pytest.raises(BadOption, match="unknown option 'speed'"):
        superopt.optimize(parser.parse_model(TEXT), speed=1)


def test_both_graphs_are_written_as_data(source: Path, tmp_path: Path) -> None:
    scene = tmp_path / "scene.json"
    deliver(source, tmp_path / "out" / "o.onnx", OPTIONS, lambda stage: None, scene=scene)
    found = Scene.model_validate_json(scene.read_bytes())
    assert [rule.name for rule in found.rules] == ["dead-constant", "identity"]
    assert [(region.place, region.removed) for region in found.regions] == [("Identity:a", 1)]
    assert not found.returned


def test_graphs_that_cannot_be_drawn_cost_the_drawing_alone(
    monkeypatch: pytest.MonkeyPatch, source: Path, tmp_path: Path
) -> None:
    def stop(job, *_) -> Done:
        job.scene.write_text("half")
        raise LimitHit("the job ran for more than 120 s")

    monkeypatch.setattr(pages, "run_job", stop)
    scene = tmp_path / "scene.json"
    found = deliver(source, tmp_path / "out" / "o.onnx", OPTIONS, lambda stage: None, scene=scene)
    assert found.stopped is None
    told = Scene.model_validate_json(scene.read_bytes())
    assert (told.before, told.note) == (None, "the graphs could not be drawn: the job ran for more than 120 s")
    assert [rule.name for rule in told.rules] == ["dead-constant", "identity"]
