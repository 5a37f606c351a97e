# pyright: basic
"""A device whose clock counts nodes, and cost files of it under another name: what was recorded is known exactly."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from superopt.cost.cache import RegionTime
from superopt.cost.contents import Contents
from superopt.cost.costs import read_costs
from superopt.cost.portable import write_portable
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.cost.shipping import write_costs
from superopt.options import Options
from superopt.report import CalibrationReport, Interval, Latency, Report
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.runtime.target import CudaState
from superopt.search.calibrating import calibrate_models
from superopt.search.ending import Ending
from superopt.search.optimize import Destination, optimize_model
from tests.search.clocks import seconds_of
from tests.search.written import written_book

GPU, DRIVER = "NVIDIA Fake", "9.1"
GIVEN = {"threads": 1, "options": "fixed", "budget": 30.0, "candidates": 40}


class World:
    """What was put on the clock: keys of regions in order, and how often whole models were."""

    def __init__(self) -> None:
        self.regions: list[str] = []
        self.whole = 0
        self.speedup = 1.0

    def time_regions(self, subjects, deployment, seconds, tell=None, *, hurried=lambda: False, **_):
        self.regions += [s.key for s in subjects]
        return [None if hurried() else seconds_of(onnx.load_from_string(s.model())) for s in subjects]

    def compare(self, subjects, feeds, method=None, **_) -> Comparison:
        self.whole += 1
        times = [seconds_of(onnx.load(s.model)) for s in subjects]
        pairs = tuple(
            PairTiming(name=s.name, verdict="not faster", reason="", speedup=1.0, interval=None, sittings=2, pairs=2)
            for s in subjects[1:]
        )
        timings = tuple(SubjectTiming(name=s.name, latency=latency(t)) for s, t in zip(subjects, times, strict=True))
        return Comparison(subjects=timings, pairs=pairs, seconds=0.1, one_at_a_time=False)


def latency(seconds: float) -> Latency:
    return Latency(median=seconds, interval=Interval(low=seconds, high=seconds), spread=0.0, runs=9)


def counting_world(monkeypatch: pytest.MonkeyPatch) -> World:
    """From now on nothing is timed but counted, with rules that people wrote; and there is no GPU."""
    found = World()
    monkeypatch.setattr("superopt.cost.timer.time_regions", found.time_regions)
    monkeypatch.setattr("superopt.cost.timer.time_yardstick", lambda *_: 1e-4)
    monkeypatch.setattr("superopt.search.trial.compare", found.compare)
    monkeypatch.setattr("superopt.cost.calibration.fit", lambda seen, start, trust: start)
    for module in ("calibrating", "optimize", "audit"):
        monkeypatch.setattr(f"superopt.search.{module}.open_rulebook", lambda *_: written_book())
    monkeypatch.setattr("superopt.search.aim.cuda_state", lambda: CudaState(False, "no CUDA device answered"))
    return found


def saved(path: Path, proto: onnx.ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString(deterministic=True))
    return path


def calibrated(
    *models: Path, costs: Path, seconds: float = 100.0, ending: Ending | None = None, tell=lambda *_: None, **given
) -> CalibrationReport:
    options = Options.of(**{**GIVEN, "target": "cpu", "costs": costs, **given})
    return calibrate_models(models, options, seconds, tell, ending)


def as_gpu(contents: Contents, device: str = GPU, runtime: str | None = None, **provider: str) -> Contents:
    """The same times, under the name of a GPU that nobody has, with these options of its provider."""

    def there(text: str) -> str:
        d = parse_deployment(text)
        return Deployment("cuda", d.threads, d.level, provider_options=tuple(provider.items())).text

    def moved(key, **more):
        return dataclasses.replace(key, device=device, driver=DRIVER, runtime=runtime or key.runtime, **more)

    regions = [
        dataclasses.replace(e, key=moved(e.key, deployment=there(e.key.deployment))) for e in contents.regions.values()
    ]
    whole = [
        dataclasses.replace(e, key=moved(e.key, deployments=tuple(map(there, e.key.deployments))))
        for e in contents.comparisons.values()
    ]
    return Contents.of(regions, whole)


def changed(contents: Contents, time: Callable[[str, RegionTime], RegionTime | None]) -> Contents:
    """With other times of regions; None leaves one out."""
    found = {}
    for key, entry in contents.regions.items():
        other = time(key.structure, entry.time)
        if other is not None:
            found[key] = dataclasses.replace(entry, time=other)
    return Contents(found, contents.comparisons)


_COUNTED: dict[bytes, Contents] = {}
"""What the counting clock said of models, by their bytes: it says the same every time."""


def gpu_file(model: Path, folder: Path) -> Path:
    """What was recorded of a model on the GPU, as it would be shipped; beside it what was recorded here."""
    data = model.read_bytes()
    if data not in _COUNTED:
        calibrated(model, costs=folder / "counted.sqlite")
        _COUNTED[data] = read_costs(folder / "counted.sqlite")
    write_costs(_COUNTED[data], folder / "here.sqlite")
    write_portable(as_gpu(_COUNTED[data]), folder / "gpu.json")
    return folder / "gpu.json"


def predicted(model: Path, folder: Path, costs: Path, **given) -> Report:
    options = Options.of(**{**GIVEN, "threads": 0, "target": "cuda", "costs": costs, "options": "search", **given})
    staging = Path(tempfile.mkdtemp(dir=folder))
    where = Destination(staging, "out.onnx", "out.onnx.data", False)
    outcome = optimize_model(model, where, options, lambda *_: None, lambda *_: None)
    (folder / "out.onnx").write_bytes(outcome.written.path.read_bytes())
    report = outcome.report.model_copy(
        update={"after": outcome.report.after.model_copy(update={"path": str(folder / "out.onnx")})}
    )
    (folder / "report.json").write_text(report.model_dump_json())
    return report
