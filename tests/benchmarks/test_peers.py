# pyright: basic
"""Peers may crash, hang, do nothing or be wrong: each is recorded as what it is, once."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import commandline, peers
from benchmarks.graphs import graph_digest
from benchmarks.peers import PEERS, Installed, Peers
from benchmarks.subjects import Subject

pytestmark = pytest.mark.unit

COPY = "import shutil; shutil.copy(sys.argv[2], sys.argv[3])"


def model(factor: float = 2.0) -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "factor"], ["y"], name="once")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([factor], dtype=np.float32), "factor")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    (tmp_path / "net.onnx").write_bytes(model())
    (tmp_path / "other.onnx").write_bytes(model(3.0))
    return Subject("net", tmp_path / "net.onnx")


@pytest.fixture
def behave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Peers that all do what one line of Python says, in this interpreter."""
    monkeypatch.setattr(peers, "install", lambda folder: {p.package: Installed("1.0") for p in PEERS})
    monkeypatch.setattr(peers, "WORKER", tmp_path / "worker.py")
    monkeypatch.setattr(peers, "PATIENCE", 20.0)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)

    def as_told(line: str, verdict: tuple[str, str] = ("ok", "")) -> Peers:
        (tmp_path / "worker.py").write_text(f"import sys, os, time\n{line}\n")
        monkeypatch.setattr(peers, "check", lambda subject, made, target: verdict)
        return Peers(tmp_path, tmp_path / "cache")

    return as_told


OTHER = "import shutil, pathlib; shutil.copy(pathlib.Path(sys.argv[2]).with_name('other.onnx'), sys.argv[3])"


def test_a_right_model_is_kept(behave, subject: Subject) -> None:
    found = behave(OTHER)
    outcome = found.outcome(PEERS[0], subject, "cpu")
    assert (outcome.status, outcome.nodes, outcome.version) == ("ok", 1, "1.0")
    assert found.model(PEERS[0].name, subject).read_bytes() == model(3.0)


def test_the_same_graph_is_unchanged(behave, subject: Subject) -> None:
    found = behave(COPY)
    assert found.outcome(PEERS[0], subject, "cpu").status == "unchanged"
    assert not found.model(PEERS[0].name, subject).exists()


def test_a_wrong_model_is_kept_as_such(behave, subject: Subject) -> None:
    found = behave(OTHER, ("wrong", "off by one"))
    outcome = found.outcome(PEERS[0], subject, "cpu")
    assert (outcome.status, outcome.detail) == ("wrong", "off by one")
    assert found.model(PEERS[0].name, subject).exists()


@pytest.mark.parametrize(
    ("line", "verdict", "status"),
    [
        ("sys.exit('cannot do it')", "", "crashed"),
        ("os.kill(os.getpid(), 11)", "", "crashed"),
        ("pass", "", "crashed"),  # it said nothing and wrote nothing
        ("open(sys.argv[3], 'wb').write(b'no model')", "", "crashed"),
        (OTHER, "unchecked", "unchecked"),
    ],
)
def test_a_bad_peer_is_recorded_and_its_model_is_gone(
    behave, subject: Subject, line: str, verdict: str, status: str
) -> None:
    found = behave(line, (verdict, "because"))
    outcome = found.outcome(PEERS[0], subject, "cpu")
    assert outcome.status == status
    assert outcome.detail
    assert not found.model(PEERS[0].name, subject).exists()


def test_a_peer_that_hangs_is_stopped(behave, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PATIENCE", 0.5)
    outcome = behave("time.sleep(600)").outcome(PEERS[0], subject, "cpu")
    assert (outcome.status, outcome.detail) == ("timed out", "stopped after 0 s")


def test_a_peer_runs_once_for_each_model(behave, subject: Subject) -> None:
    first = behave(OTHER).outcome(PEERS[0], subject, "cpu")
    assert behave("sys.exit('ran again')").outcome(PEERS[0], subject, "cpu") == first
    assert behave("sys.exit('ran again')").outcome(PEERS[1], subject, "cpu").status == "crashed"


def test_what_could_not_be_checked_is_tried_again(behave, subject: Subject) -> None:
    assert behave(OTHER, ("unchecked", "because")).outcome(PEERS[0], subject, "cpu").status == "unchecked"
    assert behave(OTHER).outcome(PEERS[0], subject, "cpu").status == "ok"


def test_a_peer_that_is_not_there_or_not_meant_is_not_run(behave, subject: Subject) -> None:
    found = behave("sys.exit('ran')")
    found.installed = {**found.installed, "onnxsim": Installed(problem="no wheel")}
    words = {o.peer: (o.status, o.detail) for o in found.outcomes(subject, "cpu")}
    assert words["onnxsim"] == ("not installable", "no wheel")
    assert words["ort.transformers"] == ("does not apply", "")
    assert words["onnxslim"] == ("crashed", "exit code 1: ran")


def test_a_process_that_is_stopped_takes_its_children_along(tmp_path: Path) -> None:
    child = f"import time; time.sleep(1.5); open({str(tmp_path / 'alive')!r}, 'w')"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    done = commandline.run((sys.executable, "-c", parent), timeout=0.5)
    assert done.returncode == commandline.TIMED_OUT
    time.sleep(1.5)
    assert not (tmp_path / "alive").exists()


def test_the_end_of_a_process_is_told_in_words() -> None:
    assert commandline.Done(-11, "").problem == "SIGSEGV: no message"
    assert commandline.Done(1, "first\nlast\n\n").problem == "exit code 1: last"


@pytest.mark.ort
def test_superopt_check_tells_right_from_wrong(subject: Subject) -> None:
    assert peers.check(subject, subject.path, "cpu") == ("ok", "")
    status, why = peers.check(subject, subject.path.with_name("other.onnx"), "cpu")
    assert status == "wrong"
    assert why
    assert peers.check(subject, subject.path.with_name("missing.onnx"), "cpu")[0] == "unchecked"


def test_names_and_notes_do_not_change_a_graph() -> None:
    first, second = onnx.load_from_string(model()), onnx.load_from_string(model())
    second.graph.node[0].name = "another"
    second.graph.doc_string = "says more"
    assert graph_digest(first.graph) == graph_digest(second.graph)
    second.graph.node[0].op_type = "Add"
    assert graph_digest(first.graph) != graph_digest(second.graph)
    assert graph_digest(first.graph) != graph_digest(onnx.load_from_string(model(3.0)).graph)
