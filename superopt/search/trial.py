"""One original on one device: candidates are checked against it and timed against it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from superopt.check import Request, check, make_feeds
from superopt.cost.cache import CostCache, CostKey, Input
from superopt.cost.contest import Method, Progress
from superopt.cost.measure import Subject, compare
from superopt.cost.result import Comparison
from superopt.errors import BadModel, CannotRun
from superopt.ir.onnx import Model
from superopt.ir.onnx.stats import content_digest, total_bytes
from superopt.options import Options
from superopt.report import CheckReport, Environment, TimingReport
from superopt.runtime.cores import usable_cores
from superopt.runtime.deployment import Deployment
from superopt.runtime.facts import device_facts, runtime_facts
from superopt.runtime.session import Session
from superopt.runtime.target import resolve_target
from superopt.version import __version__

Tell = Callable[[str, str], None]
ORIGINAL, CANDIDATE = "original", "candidate"


class Trial:
    """Raises `BadModel` at once for a model that this onnxruntime is too old for."""

    def __init__(self, model: Model, options: Options, tell: Tell) -> None:
        refuse_future(model)
        self.model, self.options, self._tell = model, options, tell
        target = resolve_target(options.target)
        self.deployment = Deployment(target, threads=options.threads or usable_cores())
        self._request = Request(
            seed=options.seed, inputs=options.inputs, dims=dict(options.dim), shapes=dict(options.shape)
        )

    def check(self, candidate: Path) -> CheckReport:
        self._tell("checking", "")
        return check(
            self.model, candidate, self._request, deployment=self.deployment,
            progress=lambda text: self._tell("checking", text),
        )  # fmt: skip

    def race(self, candidate: Model) -> TimingReport:
        """The candidate against the original, interleaved."""
        try:
            comparison, frozen = self._compare({ORIGINAL: self.model, CANDIDATE: candidate})
        except CannotRun as error:
            return TimingReport.untimed(str(error))
        return comparison.report(CANDIDATE, self.shapes, frozen)

    def time_original(self) -> TimingReport:
        """The original alone, for the table of a run that changed nothing."""
        try:
            comparison, frozen = self._compare({ORIGINAL: self.model})
        except CannotRun as error:
            return TimingReport.untimed(str(error))
        return TimingReport(
            status="not faster", reason="nothing was changed", before=comparison.latency(ORIGINAL),
            after=comparison.latency(ORIGINAL), speedup=None, speedup_interval=None, shapes=self.shapes, frozen=frozen,
        )  # fmt: skip

    def compare_all(self, models: Mapping[str, Model]) -> tuple[Comparison, bool]:
        """All models against the first; whether the answer came from the cost file."""
        return self._compare(models)

    def _compare(self, models: Mapping[str, Model]) -> tuple[Comparison, bool]:
        feeds = self.feeds
        subjects = [Subject(n, _source(m), self.deployment, size=total_bytes(m)) for n, m in models.items()]
        method = Method(seconds=self.options.budget if len(models) > 1 else min(2.0, self.options.budget))

        def measure() -> Comparison:
            return compare(subjects, feeds, method, tell=self._show)

        if self.options.costs is None:
            return measure(), False
        with CostCache(self.options.costs) as cache:
            return cache.get_or_measure(self._key(models), measure)

    def _show(self, progress: Progress) -> None:
        self._tell("timing", f"{progress.phase}, {progress.seconds:.0f} of at most {progress.limit:.0f} s")

    def _key(self, models: Mapping[str, Model]) -> CostKey:
        device = device_facts(self.deployment.target)
        return CostKey(
            models=tuple(content_digest(m) for m in models.values()),
            deployments=(self.deployment.text,) * len(models),
            inputs=tuple(
                Input(name, str(getattr(v, "dtype", type(v).__name__)), tuple(getattr(v, "shape", ())))
                for name, v in self.feeds.items()
            ),
            device=device.name,
            driver=device.driver,
            runtime=runtime_facts().version,
        )

    @cached_property
    def feeds(self) -> Mapping[str, Any]:
        """One representative input set; the session that found it is closed before anything is timed."""
        self._tell("timing", "looking for input sizes that run")
        with Session(_source(self.model), self.deployment) as session:
            return make_feeds(self.model, session, self._request)

    @property
    def shapes(self) -> dict[str, list[int]]:
        return {name: list(v.shape) for name, v in self.feeds.items() if hasattr(v, "shape")}

    def environment(self) -> Environment:
        device = device_facts(self.deployment.target)
        return Environment(
            superopt=__version__,
            python=platform.python_version(),
            onnx=version("onnx"),
            onnxruntime=runtime_facts().version,
            target=self.deployment.target,
            device=device.name,
            driver=device.driver,
            threads=self.deployment.threads,
            platform=platform.platform(),
        )


def _source(model: Model) -> Path | bytes:
    return model.path if model.path is not None else model.data


def refuse_future(model: Model) -> None:
    runtime = runtime_facts()
    if model.opset > runtime.max_opset:
        raise BadModel(
            f"{model.path}: uses opset {model.opset}; onnxruntime {runtime.version} supports up to {runtime.max_opset}"
        )
    if model.ir_version > runtime.max_ir_version:
        raise BadModel(
            f"{model.path}: has IR version {model.ir_version}; "
            f"onnxruntime {runtime.version} supports up to {runtime.max_ir_version}"
        )
