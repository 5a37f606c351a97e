"""A process that waits with what it has loaded goes on when it is told to, and does not outlive who started it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.commandline import TIMED_OUT
from benchmarks.waiting import Waiting

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
WORKER = """
import json, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from benchmarks.waiting import Gate
task = json.loads(Path(sys.argv[1]).read_text())
if task["fails"] == "before":
    sys.exit("no such network")
time.sleep(task["loads"])
Gate(Path(task["gate"])).wait()
if task["fails"] == "after":
    sys.exit("out of memory")
Path(sys.argv[2]).write_text(json.dumps({{"seen": time.time()}}))
"""


def begun(folder: Path, fails: str = "", loads: float = 0.0) -> Waiting:
    script = folder / "worker.py"
    script.write_text(WORKER.format(root=str(ROOT)))
    return Waiting((sys.executable, script), {"fails": fails, "loads": loads}, folder / "waiting")


def seconds(count: float) -> Callable[[], float]:
    until = time.monotonic() + count
    return lambda: until - time.monotonic()


def test_it_goes_on_when_it_is_told_to(tmp_path: Path) -> None:
    waiting = begun(tmp_path)
    assert waiting.until_ready(lambda: 30) is None
    time.sleep(0.2)
    told = time.time()
    done, answer = waiting.finish(30)
    assert done.returncode == 0
    assert answer is not None
    assert answer["seen"] >= told


def test_one_that_ends_before_says_why(tmp_path: Path) -> None:
    done = begun(tmp_path, "before").until_ready(lambda: 30)
    assert done is not None
    assert "no such network" in done.problem


def test_one_that_ends_after_says_why(tmp_path: Path) -> None:
    waiting = begun(tmp_path, "after")
    assert waiting.until_ready(lambda: 30) is None
    done, answer = waiting.finish(30)
    assert answer is None
    assert "out of memory" in done.problem


def test_one_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    done = begun(tmp_path, loads=60).until_ready(seconds(0.5))
    assert done is not None
    assert done.returncode == TIMED_OUT


@pytest.mark.parametrize("loads", [0.0, 1.0])
def test_it_ends_with_who_would_open_its_gate(tmp_path: Path, loads: float) -> None:
    """Who may be gone before it has come so far."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(root=str(ROOT)))
    starts = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from benchmarks.waiting import Waiting
task = {{"fails": "", "loads": {loads}}}
waiting = Waiting((sys.executable, {str(script)!r}), task, Path({str(tmp_path / "waiting")!r}))
assert {loads} or waiting.until_ready(lambda: 30) is None
print(waiting._process.pid)
"""
    told = subprocess.run([sys.executable, "-c", starts], capture_output=True, text=True, check=True)
    gone = Path(f"/proc/{int(told.stdout)}/exe")
    until = time.monotonic() + 30
    while gone.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not gone.exists()
    assert "nobody is left" in (tmp_path / "waiting" / "log").read_text()
