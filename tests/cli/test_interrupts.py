# pyright: basic
"""Ctrl-C, on a real process: what was found so far comes back, a second one ends it, nothing is half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from superopt.report import Report
from tests.cli.test_main import HEAD, QUICK, TIDY, save

pytestmark = pytest.mark.ort

BARE = f"{HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ y = Relu(x) }}"
# A shell that starts this test in the background makes it ignore interrupts, and so its children.
HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


class Started:
    """`superopt optimize` under way; signals are sent when a stage is told."""

    def __init__(self, folder: Path, text: str, budget: float, *more: object) -> None:
        save(folder / "m.onnx", text)
        command = [
            sys.executable, "-c", f"{HEARD}; from superopt.cli import entry; entry()",
            "optimize", folder / "m.onnx", "-o", folder / "o.onnx", *QUICK[:4], "--budget", budget, *more,
        ]  # fmt: skip
        self.process = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []

    def signal(self, number: signal.Signals, stage: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if stage in line:
                self.process.send_signal(number)
                return
        pytest.fail(f"{stage!r} was never told: {''.join(self.lines)}")

    def end(self) -> tuple[int, str, list[str]]:
        with self.process:
            out, rest = self.process.communicate(timeout=120)
        self.lines += rest.splitlines()
        assert not any("Traceback" in line for line in self.lines), self.lines
        return self.process.returncode, out, self.lines


@pytest.mark.parametrize(
    ("number", "stage", "text"),
    [
        (signal.SIGINT, "loading", TIDY),
        (signal.SIGINT, "timing", BARE),  # nothing was found
        (signal.SIGTERM, "loading", TIDY),
        (signal.SIGTERM, "timing", TIDY),  # whoever asks to terminate does not wait
    ],
)
def test_an_interrupt_ends_cleanly(tmp_path: Path, number: signal.Signals, stage: str, text: str) -> None:
    started = Started(tmp_path, text, 60)
    started.signal(number, stage)
    code, out, lines = started.end()
    assert (code, out, lines[-1]) == (130, "", "superopt: interrupted")
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_an_interrupt_returns_what_was_found_so_far(tmp_path: Path) -> None:
    started = Started(tmp_path, TIDY, 8, "--accept", "not-slower", "--json", "--html", tmp_path / "p.html")
    started.signal(signal.SIGINT, "timing")
    code, out, lines = started.end()
    assert code == 0, lines
    assert any("ending: with what was found so far; Ctrl-C again ends at once" in line for line in lines)
    report = Report.model_validate_json(out)
    assert report.interrupted
    assert report.notes[0].startswith("interrupted: ")
    assert any(line.startswith("note: interrupted: ") for line in lines)
    assert report.check.status == "equal"
    assert report.timing.status != "untimed"
    assert report.deployment is not None
    assert not report.deployment.searched
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "o.onnx", "p.html"]
    operators = [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node]
    assert operators == (["Relu"] if report.returned == "optimized" else ["Identity", "Relu"])


def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    (tmp_path / "o.onnx").write_text("older")
    started = Started(tmp_path, TIDY, 600)
    started.signal(signal.SIGINT, "timing")
    started.signal(signal.SIGINT, "ending")
    code, out, lines = started.end()
    assert (code, out, lines[-1]) == (130, "", "superopt: interrupted")
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "o.onnx"]
    assert (tmp_path / "o.onnx").read_text() == "older"
