"""The other optimizers, in a virtual environment of their own.

One that is not installable on this machine, crashes, hangs or gives a wrong model is recorded as such, and the
benchmark goes on. What a peer made of a model is kept by the model's digest, so that each runs once.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import graphs, subjects
from benchmarks.commandline import SUPEROPT, TIMED_OUT, Done, run
from benchmarks.records import PeerOutcome, Status
from benchmarks.subjects import Subject
from benchmarks.texts import without_folders
from superopt.report import CheckReport

WORKER = Path(__file__).with_name("peer_worker.py")
# What the peers stand on. onnxruntime.transformers asks torch for its version, and any will do.
SHARED = ("onnx", "onnxruntime", "sympy", "torch==2.13.0")
TIMED = ("ok", "wrong")
PATIENCE = 120.0
INSTALL_PATIENCE = 900.0
CHECK_PATIENCE = 900.0


@dataclass(frozen=True)
class Peer:
    name: str
    package: str
    worker: str  # the function of peer_worker.py


PEERS = (
    Peer("onnxsim", "onnxsim", "onnxsim"),
    Peer("onnxslim", "onnxslim", "onnxslim"),
    Peer("onnxoptimizer", "onnxoptimizer", "onnxoptimizer"),
    Peer("onnxscript", "onnxscript", "onnxscript"),
    Peer("ort.transformers", "onnxruntime", "transformers"),
)


@dataclass(frozen=True)
class Installed:
    """A package of the peers' environment, or why it is not there."""

    version: str = ""
    problem: str = ""


def install(folder: Path) -> dict[str, Installed]:
    """Make the environment if it is not there. What could not be installed is not tried again; remove the folder."""
    python, record = folder / "bin" / "python", folder / "installed.json"
    if not python.exists():
        done = run((sys.executable, "-m", "venv", folder), INSTALL_PATIENCE)
        if done.returncode:
            return {name: Installed(problem=done.problem) for name in _requirements()}
    known = {k: Installed(**v) for k, v in json.loads(record.read_text()).items()} if record.exists() else {}
    for name, requirement in _requirements().items():
        if name not in known:
            known[name] = _install_one(python, name, requirement)
            record.write_text(json.dumps({k: vars(v) for k, v in known.items()}, indent=2) + "\n")
    return known


def _requirements() -> dict[str, str]:
    """Each package by name, in the order they are installed."""
    return {wanted.partition("==")[0]: wanted for wanted in (*SHARED, *(p.package for p in PEERS))}


def _install_one(python: Path, name: str, requirement: str) -> Installed:
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary", requirement)
    done = run(pip, INSTALL_PATIENCE)
    if done.returncode:
        return Installed(problem=done.problem)
    ask = f"from importlib.metadata import version; print(version({name!r}))"
    asked = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return Installed(version=asked.stdout.strip())


class Peers:
    """Runs peers on models, and remembers what came of it in the cache."""

    def __init__(self, environment: Path, cache: Path) -> None:
        self.installed: Mapping[str, Installed] = install(environment)
        self._python, self._cache = environment / "bin" / "python", cache

    def outcomes(self, subject: Subject, target: str) -> list[PeerOutcome]:
        return [self.outcome(peer, subject, target) for peer in PEERS]

    def model(self, peer: str, subject: Subject) -> Path:
        """Where the model is that a peer made of this subject, if it is one to be timed."""
        return self._files(next(p for p in PEERS if p.name == peer), subject)[0]

    def outcome(self, peer: Peer, subject: Subject, target: str) -> PeerOutcome:
        found = self.installed[peer.package]
        if found.problem:
            return _without_run(peer, found, "not installable", found.problem)
        if peer.worker == "transformers" and not subject.transformer:
            return _without_run(peer, found, "does not apply", "")
        made, record = self._files(peer, subject)
        if record.exists():
            return PeerOutcome.model_validate_json(record.read_text())
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            outcome = self._run(peer, subject, target, made)
        except Exception as error:  # noqa: BLE001 - a peer may leave behind a file that nothing can read
            why = without_folders(f"{type(error).__name__}: {error}")[:300]
            outcome = _without_run(peer, found, "crashed", why)
        if outcome.status not in TIMED:
            made.unlink(missing_ok=True)
        if outcome.status != "unchecked":  # the fault may be the check's, and mended next time
            record.write_text(outcome.model_dump_json(indent=2) + "\n")
        return outcome

    def _files(self, peer: Peer, subject: Subject) -> tuple[Path, Path]:
        told = json.dumps(subject.transformer, sort_keys=True) if peer.worker == "transformers" else ""
        tag = hashlib.sha256(told.encode()).hexdigest()[:6] if told else "plain"
        folder = self._cache / graphs.digest(subject.path)[:16]
        name = f"{peer.name}-{self.installed[peer.package].version}-{tag}"
        return folder / f"{name}.onnx", folder / f"{name}.json"

    def _run(self, peer: Peer, subject: Subject, target: str, made: Path) -> PeerOutcome:
        told = [json.dumps(subject.transformer)] if peer.worker == "transformers" else []
        start = time.perf_counter()
        done = run((self._python, WORKER, peer.worker, subject.path, made, *told), PATIENCE)
        seconds = time.perf_counter() - start
        version = self.installed[peer.package].version
        if done.returncode or not made.exists():
            status: Status = "timed out" if done.returncode == TIMED_OUT else "crashed"
            return PeerOutcome(peer=peer.name, version=version, status=status, detail=done.problem, seconds=seconds)
        seen = graphs.facts(made)
        if seen.graph == graphs.facts(subject.path).graph:
            status, detail = "unchanged", ""
        else:
            status, detail = check(subject, made, target)
        return PeerOutcome(
            peer=peer.name, version=version, status=status, detail=detail, seconds=seconds,
            nodes=seen.nodes, file_bytes=seen.file_bytes, graph=seen.graph,
        )  # fmt: skip


def _without_run(peer: Peer, found: Installed, status: Status, detail: str) -> PeerOutcome:
    return PeerOutcome(peer=peer.name, version=found.version, status=status, detail=detail)


def check(subject: Subject, made: Path, target: str) -> tuple[Status, str]:
    """Whether a model computes what the subject does, by `superopt check`."""
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "check.json"
        words = subjects.arguments(subject, Path(name))
        command = (*SUPEROPT, "check", subject.path, made, "--target", target, "--report", report, "--quiet", *words)
        return check_status(run(command, CHECK_PATIENCE), report)


def check_status(done: Done, report: Path) -> tuple[Status, str]:
    if not report.exists():
        return "unchecked", done.problem
    found = CheckReport.model_validate_json(report.read_text())
    words: dict[str, Status] = {"equal": "ok", "different": "wrong", "unchecked": "unchecked"}
    return words[found.status], without_folders(found.reason)
