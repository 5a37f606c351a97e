# pyright: basic
"""The command line as people and scripts meet it: exit codes, one clear line, stdout for machines alone."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from superopt.cli import main
from superopt.report import BenchReport, CheckReport, Report

pytestmark = pytest.mark.ort

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
TIDY = f"{HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ a = Identity(x) y = Relu(a) }}"
QUICK = ("--target", "cpu", "--threads", "1", "--budget", "0.1")


def save(path: Path, text: str) -> Path:
    path.write_bytes(parser.parse_model(text).SerializeToString())
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(tmp_path / "m.onnx", TIDY)


def run(*arguments: object) -> int:
    try:
        return main([str(a) for a in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)


def test_optimize_prints_a_table_for_people_and_nothing_for_machines(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("optimize", model, "-o", tmp_path / "o.onnx", *QUICK) == 0
    out, err = capsys.readouterr()
    assert out == ""
    for word in ("before", "after", "Identity", "nodes", "size", "latency", "check: equal on", "timed: "):
        assert word in err
    assert "\x1b" not in err
    assert re.search(r"^\[ +\d+\.\d s\] loading: m\.onnx$", err, flags=re.MULTILINE)


def test_json_goes_to_stdout_alone_and_fits_the_schema(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "r.json"
    assert run("optimize", model, "-o", tmp_path / "o.onnx", "--json", "--report", report, "--quiet", *QUICK) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = Report.model_validate_json(out)
    assert json.loads(report.read_text()) == json.loads(out)
    assert run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    assert set(json.loads(out)) == set(schema["properties"])
    assert found.options["threads"] == 1
    assert found.after.path == str(tmp_path / "o.onnx")


def test_check_answers_with_its_exit_code(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = save(tmp_path / "same.onnx", TIDY.replace("a = Identity(x) y = Relu(a)", "y = Relu(x)"))
    other = save(tmp_path / "other.onnx", TIDY.replace("Relu", "Abs"))
    custom = save(tmp_path / "custom.onnx", TIDY.replace("Relu", "Nope"))
    for candidate, code, status in ((same, 0, "equal"), (other, 1, "different"), (custom, 2, "unchecked")):
        assert run("check", model, candidate, "--json", *QUICK[:4]) == code
        assert CheckReport.model_validate_json(capsys.readouterr().out).status == status


def test_infinite_differences_travel_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (
        save(tmp_path / f"{op}.onnx", f"{HEAD} g (float[2] x) => (float[2] y) {{ z = Exp(x) y = {op}(x, z) }}")
        for op in ("Mul", "Div")
    )
    inf = f"{HEAD} g (float[2] x) => (float[2] y) <float[1] w = {{0}}> {{ y = Div(x, w) }}"
    for a, b in ((one, two), (one, save(tmp_path / "inf.onnx", inf)), (tmp_path / "inf.onnx", one)):
        assert run("check", a, b, "--json", *QUICK[:4]) == 1
        assert CheckReport.model_validate_json(capsys.readouterr().out).status == "different"


def test_bench_times_every_model(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = save(tmp_path / "other.onnx", TIDY.replace("Relu", "Abs"))
    assert run("bench", model, other, "--json", *QUICK) == 0
    out, err = capsys.readouterr()
    assert [row.model for row in BenchReport.model_validate_json(out).rows] == [str(model), str(other)]
    assert "median" in err
    custom = save(tmp_path / "custom.onnx", TIDY.replace("Relu", "Nope"))
    assert run("bench", model, custom, "--json", *QUICK) == 2
    assert "Nope" in BenchReport.model_validate_json(capsys.readouterr().out).rows[1].verdict


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["optimize", "M"], "say where the result goes"),
        (["optimize", "none.onnx", "-o", "O"], "no such file"),
        (["optimize", "M", "-o", "M"], "would replace the original"),
        (["optimize", "M", "-o", "."], "is a folder"),
        (["optimize", "M", "-o", "no/o.onnx"], "the folder no does not exist"),
        (["optimize", "M", "-o", "O", "--report", "no/r.json"], "the folder no does not exist"),
        (["optimize", "M", "-o", "O", "--report", "M"], "would replace"),
        (["optimize", "M", "-o", "O", "--report", "O"], "would replace"),
        (["optimize", "M", "-o", "O", "--budget", "0"], "expected seconds above 0"),
        (["optimize", "M", "-o", "O", "--budget", "soon"], "invalid float value: 'soon'"),
        (["optimize", "M", "-o", "O", "--threads", "-1"], "expected 0 or more, found -1"),
        (["optimize", "M", "-o", "O", "--shape", "x"], "expected NAME=D0,D1"),
        (["optimize", "M", "-o", "O", "--shape", "x=1,3", "--shape", "x=2,3"], "given twice"),
        (["optimize", "M", "-o", "O", "--dim", "n=-3"], "expected NAME=SIZE"),
        (["optimize", "M", "-o", "O", "--target", "tpu"], "invalid choice: 'tpu'"),
        (["optimize", "M", "-o", "b\udcff.onnx"], "expected a file name in UTF-8"),
        (["check", "M"], "the following arguments are required: B.onnx"),
        (["check", "M", "M", "--report", "M"], "would replace"),
        (["bench", "M", "--report", "M"], "would replace"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_bad_usage_is_refused_at_once(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str],
    complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(model.parent)
    before = model.read_bytes()
    assert run(*("m.onnx" if a == "M" else "o.onnx" if a == "O" else a for a in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err.splitlines()[0]
    assert err.startswith("superopt: ")
    assert os.listdir(model.parent) == ["m.onnx"]
    assert model.read_bytes() == before


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"--shape": "z=1,3"}, "no such input; the inputs are x"),
        ({"--shape": "x=1"}, "the input has 2 dims, found 1"),
        ({"--shape": "x=1,4"}, "fixed at 3, found 4"),
        ({"--dim": "m=1"}, "no input has a dim of that name"),
        ({"--inputs": "m.onnx"}, "expected an .npz file"),
        ({"--inputs": "pickled.npz"}, "holds Python objects"),
        ({"--inputs": "named.npz"}, "the model has no input 'z'"),
        ({"--costs": "m.onnx"}, "cannot be used as a cost file"),
    ],
)
def test_options_that_do_not_fit_the_model_are_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: dict[str, str],
    complaint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(model.parent)
    np.savez("pickled.npz", x=np.array([{}], object))
    np.savez("named.npz", z=np.zeros((1, 3), np.float32))
    before = sorted(os.listdir())
    extra = [word for pair in given.items() for word in pair]
    assert run("optimize", "m.onnx", "-o", "o.onnx", *QUICK, *extra, "--quiet") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert complaint in err
    assert sorted(os.listdir()) == before


def test_a_custom_operator_comes_back_untouched_and_unchecked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TIDY.replace('"" : 17', '"" : 17, "my" : 1').replace("Relu", "my.Op")
    path = save(tmp_path / "m.onnx", text)
    assert run("optimize", path, "-o", tmp_path / "o.onnx", "--json", *QUICK) == 0
    report = Report.model_validate_json(capsys.readouterr().out)
    assert (report.returned, report.check.status) == ("original", "unchecked")
    assert "my:Op" in report.check.reason
    assert (tmp_path / "o.onnx").read_bytes() == path.read_bytes()


def test_a_limit_keeps_the_original_and_exits_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """g (float[2] x) => (float[2] y) <int64 n = {1000000000}, bool t = {1}> {
      y = Loop(n, t, x) <
        body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Add(v, x) }
      >
    }"""
    path = save(tmp_path / "m.onnx", f"{HEAD} {text}")
    assert run("optimize", path, "-o", tmp_path / "o.onnx", *QUICK, "--time-limit", "4") == 3
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("superopt: the job ran for more than 4 s, while ")
    assert err.splitlines()[-1].endswith("; the original was kept")
    assert (tmp_path / "o.onnx").read_bytes() == path.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "o.onnx"]


def test_a_file_size_limit_is_told_in_one_line(tmp_path: Path) -> None:
    """`ulimit -f` stands in for a full disk: the write fails in the working process."""
    path = save(tmp_path / "m.onnx", TIDY)
    path.write_bytes(path.read_bytes() + b"\xfa\x3f\x80\x80\x40" + bytes(1 << 20))  # an unknown field of 1 MiB
    command = (
        f"ulimit -f 100; exec {sys.executable} -m superopt optimize {path} -o {tmp_path / 'o.onnx'} {' '.join(QUICK)}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert re.search(r"^superopt: .*cannot be written: File too large$", done.stderr, flags=re.MULTILINE)
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("command", ["rules list", "rules check", "ops list", "ops show Relu"])
def test_commands_without_a_report_answer_on_stdout(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command.split()) in (0, 1)  # 1: a rule is not proved
    out, err = capsys.readouterr()
    assert out
    assert err == ""


@pytest.mark.parametrize("command", ["", "optimize", "check", "bench", "schema"])
def test_help_names_every_exit_code_and_explains_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command.split(), "--help") == 0
    out, err = capsys.readouterr()
    assert err == ""
    for code in ("  0 ", "  1 ", "  2 ", "  3 ", "  130 "):
        assert f"\n{code}" in out
    assert max(map(len, out.splitlines())) <= 120


def test_help_needs_no_heavy_module() -> None:
    code = (
        "import sys, contextlib\nfrom superopt.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'pydantic', 'rich', 'z3'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m superopt schema | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_colours_follow_the_terminal_and_no_color(model: Path, tmp_path: Path) -> None:
    """A pseudo-terminal gets colours, unless NO_COLOR is set."""

    def said(**environment: str) -> str:
        master, slave = pty.openpty()
        command = [sys.executable, "-m", "superopt", "check", str(model), str(model), *QUICK[:4]]
        variables = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", **environment}
        with subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL, env=variables) as process:
            os.close(slave)
            text = b""
            try:
                while chunk := os.read(master, 4096):
                    text += chunk
            except OSError:
                pass
            os.close(master)
            assert process.wait() == 0
        return text.decode()

    assert re.search(r"\x1b\[[\d;]*3\dm", said())
    assert not re.search(r"\x1b\[[\d;]*3\dm", said(NO_COLOR="1"))
