# pyright: basic
"""`superopt calibrate` and `superopt costs` as people and scripts meet them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from superopt.cost.contents import Contents
from superopt.cost.costs import read_costs
from superopt.cost.portable import write_portable
from superopt.cost.shipping import write_costs
from superopt.report import CalibrationReport, CostsReport
from tests.cli.test_interrupts import HEARD
from tests.cli.test_main import TIDY, run, save
from tests.cost.test_portable import CPU, GPU, entry, some

pytestmark = pytest.mark.ort


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_costs(some(), tmp_path / "c.sqlite")
    return tmp_path


def test_a_file_is_listed_device_by_device(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("costs", "list", "c.sqlite") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Big Core, onnxruntime 1.31.1 (until 2026-11-16)",
        "       1 times of regions with cpu threads=2 level=all",
        "       2 comparisons of whole models",
        "       1 regions that could not be run",
        "NVIDIA Fake, driver 9.1, onnxruntime 1.31.1 (until 2026-11-16)",
        "       1 times of regions with cuda threads=16 level=all enable_cuda_graph=1 use_tf32=1",
        "       0 comparisons of whole models",
    ]
    assert run("costs", "list", "c.sqlite", "--json", "--report", "r.json") == 0
    out = capsys.readouterr().out
    assert [m.device for m in CostsReport.model_validate_json(out).machines] == ["Big Core", "NVIDIA Fake"]
    assert json.loads((here / "r.json").read_text()) == json.loads(out)


def test_one_device_is_exported_and_merged_back(here: Path) -> None:
    assert run("costs", "export", "c.sqlite", "-o", "gpu.json", "--device", "fake") == 0
    assert set(read_costs(here / "gpu.json").regions) == {GPU}
    assert run("costs", "export", "c.sqlite", "-o", "cpu.json", "--device", "big core") == 0
    assert run("costs", "merge", "gpu.json", "cpu.json", "-o", "both.sqlite") == 0
    assert read_costs(here / "both.sqlite") == some()
    assert run("costs", "merge", "both.sqlite", "-o", "both.json") == 0
    assert run("costs", "export", "c.sqlite", "-o", "all.json") == 0
    assert (here / "both.json").read_bytes() == (here / "all.json").read_bytes()


def test_what_files_disagree_about_is_counted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_portable(Contents.of([entry(CPU, 2.5e-4)], []), here / "other.json")
    assert run("costs", "merge", "c.sqlite", "other.json", "-o", "m.json") == 0
    told = "1 questions were answered otherwise by a later file, by a factor of up to 2.00; the first file's answers"
    assert told in capsys.readouterr().err
    assert read_costs(here / "m.json").regions[CPU].time.seconds == 1.25e-4


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["costs", "list", "none"], "none: there is no such cost file"),
        (["costs", "list", "m.onnx"], "m.onnx: cannot be used as a cost file: file is not a database"),
        (["costs", "export", "c.sqlite"], "the following arguments are required: -o/--output"),
        (["costs", "export", "c.sqlite", "-o", "c.sqlite"], "would replace c.sqlite; choose another name"),
        (["costs", "export", "c.sqlite", "-o", "no/c.json"], "the folder no does not exist"),
        (["costs", "export", "c.sqlite", "-o", "o.json", "--device", "A100"], "holds no costs of it, but of: Big Core"),
        (["costs", "merge", "c.sqlite", "none", "-o", "o.json"], "none: there is no such cost file"),
        (["calibrate"], "the following arguments are required: MODEL.onnx"),
        (["calibrate", "none.onnx"], "none.onnx: no such file"),
        (["calibrate", "m.onnx", "--time-limit", "0"], "--time-limit: expected seconds above 0, found 0.0"),
        (["calibrate", "m.onnx", "--costs", "m.onnx", "--target", "cpu"], "cannot be used as a cost file"),
        (["optimize", "m.onnx", "-o", "o.onnx", "--device", "Fake"], "give the file with --costs"),
        (["optimize", "m.onnx", "-o", "o.onnx", "--costs", "c.sqlite", "--device", "A100"], "holds no costs of it"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    save(here / "m.onnx", TIDY)
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert any(complaint in line and line.startswith("superopt: ") for line in err.splitlines()), err
    assert sorted(os.listdir(here)) == ["c.sqlite", "m.onnx"]


def calibrating(folder: Path, seconds: float) -> list[str]:
    save(folder / "m.onnx", TIDY)
    given = ("--target", "cpu", "--threads", "1", "--costs", "new.sqlite", "--json", "--time-limit", str(seconds))
    return ["calibrate", "m.onnx", *given]


def test_calibrate_ends_in_time_and_says_what_it_has(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*calibrating(here, 3)) == 0
    out, err = capsys.readouterr()
    report = CalibrationReport.model_validate_json(out)
    assert not report.interrupted
    assert report.seconds < 60
    assert report.samples.measured + report.samples.left > 100
    assert "sample operators: 0 known, " in err
    assert f"new.sqlite: {report.environment.device}" in err
    assert run("costs", "list", "new.sqlite", "--json") == 0


def test_an_interrupt_keeps_what_was_measured(here: Path) -> None:
    command = [sys.executable, "-c", f"{HEARD}; from superopt.cli import entry; entry()", *calibrating(here, 600)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "calibrating: " in line:
            process.send_signal(signal.SIGINT)
            break
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    report = CalibrationReport.model_validate_json(out)
    assert report.interrupted
    assert report.samples.left > 0
    assert "interrupted after" in err
    assert read_costs(here / "new.sqlite") is not None
