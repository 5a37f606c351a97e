"""A process that dies in this one's place: what onnxruntime survives stays as it was, what it does not is an error."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from superopt.errors import CannotRun
from superopt.runtime import careful
from superopt.runtime.careful import OPENER, Elsewhere, Opening, be_careful, elsewhere
from superopt.runtime.deployment import Deployment
from superopt.runtime.failure import is_of_memory
from superopt.runtime.session import Session
from tests.runtime.models import add_one

pytestmark = pytest.mark.ort

HERE = Deployment(threads=1)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
DYING = """
import os, signal, sys
from multiprocessing.connection import Connection
line = Connection(int(sys.argv[1]))
while True:
    try:
        opening, feeds = line.recv()
    except EOFError:
        break
    if {on}:
        {how}
    line.send(None)
"""


@pytest.fixture
def careful_here(monkeypatch: pytest.MonkeyPatch) -> Generator[Elsewhere]:
    monkeypatch.setattr(careful, "_elsewhere", None)
    be_careful()
    found = elsewhere()
    assert found is not None
    yield found
    child, line = found._child, found._line  # pyright: ignore[reportPrivateUsage]
    if child is not None and line is not None:
        line.close()
        assert child.wait(30) == 0


def dies(monkeypatch: pytest.MonkeyPatch, on: str, how: str = "os.kill(os.getpid(), signal.SIGSEGV)") -> None:
    monkeypatch.setattr(careful, "OPENER", (sys.executable, "-c", DYING.format(on=on, how=how)))


def test_nobody_is_careful_unless_told_to() -> None:
    assert elsewhere() is None


def test_what_onnxruntime_survives_is_as_it_was(careful_here: Elsewhere, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(add_one())
    for source in (add_one(), tmp_path / "m.onnx"):
        with Session(source, HERE) as session:
            for factor in (1, 2):
                np.testing.assert_array_equal(session.run({"x": factor * X})["y"], factor * X + 1)
    with pytest.raises(CannotRun, match="cannot open the model: "):
        Session(b"no model", HERE)
    with Session(add_one(), HERE) as session, pytest.raises(CannotRun, match="Got: 7 Expected: 3"):
        session.run({"x": np.ones((2, 7), np.float32)})


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGFPE)", "it was killed by SIGFPE"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "it was killed by SIGKILL, perhaps for being out of memory"),
        ("os._exit(3)", "it ended with exit code 3, perhaps for being out of memory"),
    ],
)
def test_a_crash_on_opening_is_an_error_and_the_next_model_has_another_process(
    monkeypatch: pytest.MonkeyPatch, careful_here: Elsewhere, how: str, told: str
) -> None:
    dies(monkeypatch, "opening.model == b'bad'", how)
    for _ in range(2):
        with pytest.raises(CannotRun, match=f"^onnxruntime cannot open the model: {told}$") as caught:
            Session(b"bad", HERE)
        assert is_of_memory(str(caught.value)) == ("memory" in told)  # who says so is asked again another time
        with Session(add_one(), HERE) as session:
            np.testing.assert_array_equal(session.run({"x": X})["y"], X + 1)


def test_a_crash_on_running_is_one_too_and_binding_is_running(
    monkeypatch: pytest.MonkeyPatch, careful_here: Elsewhere
) -> None:
    dies(monkeypatch, "feeds is not None")
    session = Session(add_one(), HERE)
    for run in (session.run, session.run, session.bind):
        with pytest.raises(CannotRun, match="cannot run the model: it was killed by SIGSEGV"):
            run({"x": X})


def test_the_process_ends_when_nobody_asks_any_more() -> None:
    tried = Elsewhere()
    tried.open(Opening(add_one(), HERE, None, {}))
    child, line = tried._child, tried._line  # pyright: ignore[reportPrivateUsage]
    assert child is not None
    assert line is not None
    line.close()
    assert child.wait(30) == 0


def test_the_process_ends_with_the_one_that_started_it_although_its_line_is_open() -> None:
    """As where a process that was forked in between has it, or a model runs for long."""
    ours, theirs = socket.socketpair()
    with theirs:
        another = "4194304"  # no process has this number, so that the one that started it is gone
        child = subprocess.Popen([*OPENER, str(theirs.fileno()), another], pass_fds=(theirs.fileno(),))
    with Connection(ours.detach()):
        assert child.wait(30) == 1


def test_what_cannot_be_started_cannot_run(monkeypatch: pytest.MonkeyPatch, careful_here: Elsewhere) -> None:
    monkeypatch.setattr(careful, "OPENER", ("/no/such/program",))
    with pytest.raises(CannotRun, match=r"cannot open the model: .*No such file"):
        Session(add_one(), HERE)
