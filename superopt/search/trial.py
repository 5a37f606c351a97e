"""One original on one device: candidates are checked against it and timed against it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from superopt.check import Checker, Request, make_feeds
from superopt.cost.cache import CostKey, Input
from superopt.cost.contest import Method, Progress
from superopt.cost.costs import Costs
from superopt.cost.machine import Machine, machine_here
from superopt.cost.measure import Subject, compare, running
from superopt.cost.result import Comparison, PairTiming
from superopt.cost.turn import ALONE, Turn
from superopt.errors import BadModel, CannotRun
from superopt.ir.onnx import Model, load
from superopt.ir.onnx.sized import symbol_sizes
from superopt.ir.onnx.stats import content_digest, total_bytes
from superopt.ir.types import TensorType, Type
from superopt.options import Options
from superopt.report import CheckReport, Environment, TimingReport
from superopt.runtime.cores import usable_cores
from superopt.runtime.deployment import Deployment
from superopt.runtime.facts import runtime_facts
from superopt.runtime.session import Session
from superopt.runtime.target import resolve_target
from superopt.search.choices import HEURISTIC, contents_of
from superopt.search.deployments import Deployed, comparison_of, search_deployment
from superopt.search.ending import Ending
from superopt.search.settling import chooses_kernels, measured_gains, note, settled
from superopt.search.sizes import Point, points_of, rows, weigh
from superopt.search.stages import Tell
from superopt.version import __version__

Heard = Callable[[float], None]
"""Told the speed-up of the fastest candidate while it is timed."""
ORIGINAL, CANDIDATE = "original", "candidate"
LONGER, PATIENT = 1, 2
"""Looks beyond the first, as cost files number them."""


class Trial:
    """Raises `BadModel` at once for a model that this onnxruntime is too old for."""

    def __init__(
        self,
        model: Model,
        options: Options,
        tell: Tell,
        ending: Ending | None = None,
        turn: Turn = ALONE,
        deployment: Deployment | None = None,
        machine: Machine | None = None,
    ) -> None:
        """Whatever is timed waits for its `turn`; on a CPU whatever runs, checks included.

        `deployment` and `machine` are what the model is meant for, where that is not the device of the options.
        """
        refuse_future(model)
        self.model, self.options, self._tell, self.turn = model, options, tell, turn
        self._hurried = (ending or Ending()).is_asked
        threads = options.threads or usable_cores()
        self.deployment = deployment or Deployment(resolve_target(options.target), threads=threads)
        self.here = self.deployment
        """What models are run with on this machine."""
        self.machine = machine or machine_here(self.deployment)
        """Whose times count."""
        self.costs = None if options.costs is None else Costs(options.costs)
        self.points = points_of(options.dim)
        first, *others = (dict(point.sizes) for point in self.points)
        self._request = Request(
            seed=options.seed, inputs=options.inputs, dims=first, shapes=dict(options.shape), also=tuple(others)
        )

    @property
    def timed(self) -> Deployment:
        """What models and regions are timed with: the deployment, with the options that the original gains most by."""
        return self.ladder[-1]

    @cached_property
    def ladder(self) -> tuple[Deployment, ...]:
        """From the deployment to that: what does not run under one may under the one before."""
        return self._settled()

    def _settled(self) -> tuple[Deployment, ...]:
        if self.options.options == "fixed":
            return (self.deployment,)
        return settled(self.deployment, contents_of(self.model), self._gains, self._is_hasty)

    @property
    def _is_hasty(self) -> bool:
        """Whether sessions that open sooner are asked for."""
        return True

    def _gains(self, best: Deployment, others: Sequence[Deployment]) -> Sequence[float | None]:
        subject = Subject(ORIGINAL, _source(self.model), best, size=total_bytes(self.model))
        self._tell("timing", "which session options matter most")
        return measured_gains(subject, others, self._feeds, self._cached, self.options.seed)

    @property
    def settled_note(self) -> str:
        """How models were timed, where that is not as they were given."""
        return note(self.deployment, self.timed) if "ladder" in self.__dict__ else ""

    @cached_property
    def _checker(self) -> Checker:
        return Checker(self.model, self._request, self.here)

    @cached_property
    def never_empty(self) -> frozenset[str] | None:
        """Names of sizes that are never 0; None where none may be, as far as the original was seen to answer."""
        if not _has_open_sizes(self.model):
            return None
        self._tell("checking", "what the original takes")
        with running(self.turn, self.here):
            return self._checker.never_empty(lambda text: self._tell("checking", text))

    def check(self, candidate: Path) -> CheckReport:
        self._tell("checking", "")
        with running(self.turn, self.here):
            return self._checker.check(candidate, lambda text: self._tell("checking", text))

    def race(
        self,
        candidate: Model,
        seconds: float | None = None,
        further: float = 0.0,
        saving: float = 0.0,
        heard: Heard | None = None,
        deployment: Deployment | None = None,
    ) -> TimingReport:
        """The candidate against the original, interleaved, at every point; the figures weigh the points together. The
        candidate may be timed with a `deployment` of its own.

        It takes `further` seconds where a small gain is still open. A `saving` is what the candidate's regions, timed
        at the first point, say that a run of it takes less.
        """
        try:
            models = {ORIGINAL: self.model, CANDIDATE: candidate}
            own = {} if deployment is None else {CANDIDATE: deployment}
            found, frozen = self._compare(models, seconds, further, saving, heard, own)
        except CannotRun as error:
            return TimingReport.untimed(str(error))
        report = weigh(self.points, found).report(CANDIDATE, self.shapes, frozen)
        return report.model_copy(update={"points": rows(self.points, found, CANDIDATE)})

    def time_original(self) -> TimingReport:
        """The original alone, for the table of a run that changed nothing."""
        try:
            found, frozen = self._compare({ORIGINAL: self.model})
        except CannotRun as error:
            return TimingReport.untimed(str(error))
        latency = weigh(self.points, found).latency(ORIGINAL)
        return TimingReport(
            status="not faster", reason="nothing was changed", before=latency, after=latency, speedup=None,
            speedup_interval=None, shapes=self.shapes, frozen=frozen, points=rows(self.points, found, ORIGINAL),
        )  # fmt: skip

    def compare_all(
        self, models: Mapping[str, Model], seconds: float | None = None, heard: Heard | None = None
    ) -> tuple[Comparison, bool]:
        """All models against the first, all points together; whether the answer came from the cost file."""
        found, frozen = self._compare(models, seconds, heard=heard)
        return weigh(self.points, found), frozen

    def deploy(self, path: Path, seconds: float, known: Deployment | None = None) -> Deployed:
        """The session options that a model runs best with; those given where no search is wanted. The search starts
        from those that are `known` to be good for it."""
        if self.options.options == "fixed" or self._hurried():
            return Deployed(self.deployment, self.deployment, searched=False)
        found = search_deployment(
            path, self._feeds[0], self.deployment, seconds, further=self._feeds[1:], seed=self.options.seed,
            tell=self._tell, measure=self._cached, hurried=self._hurried, turn=self.turn,
            ladder=(*self.ladder, *(() if known is None else (known,))),
        )  # fmt: skip
        if self.costs is not None and not self._hurried() and found.is_settled:
            with self.costs.opened() as cache:
                cache.put(self._key_of_best(load(path), found.best), comparison_of(found))
        return found

    def _key_of_best(self, model: Model, best: Deployment) -> CostKey:
        """Of a model against itself: with the options that it was found to run best with, and without. Those answer the
        same, which of a choice that was merely timed nobody has said."""
        return self._key((model, model), (self.deployment, best), self._feeds[0])

    def race_deployed(
        self, original: tuple[Path, Deployment], candidate: tuple[Path, Deployment], seconds: float
    ) -> PairTiming:
        """The candidate with its session options against the original with its own, at the first point."""
        (before, theirs), (after, ours) = original, candidate
        subjects = [Subject(ORIGINAL, before, theirs), Subject(CANDIDATE, after, ours)]
        method = Method(seconds=seconds, further=seconds, patient=self._opens_slowly, seed=self.options.seed)
        return self._cached(subjects, self._feeds[0], method).pair(CANDIDATE)

    @property
    def _opens_slowly(self) -> bool:
        """On a GPU that takes longer than anything else, and what decides over a result lasts until there is something
        to tell."""
        return self.deployment.target == "cuda"

    def _cached(self, subjects: Sequence[Subject], feeds: Mapping[str, Any], method: Method) -> Comparison:
        """A comparison of deployments, from the cost file where it is there."""
        measure = partial(compare, subjects, feeds, method, hurried=self._hurried, turn=self.turn)
        if self.costs is None:
            return measure()
        with self.costs.opened() as cache:
            key = replace(self._key_of_subjects(subjects, feeds), look=_look(method))
            found, _ = cache.get_or_measure(key, measure, self._hurried)
            return found.renamed([s.name for s in subjects])

    def _key_of_subjects(self, subjects: Sequence[Subject], feeds: Mapping[str, Any]) -> CostKey:
        files = dict.fromkeys(s.model for s in subjects)
        models = {f"{k}": load(f) if isinstance(f, Path) else self.model for k, f in enumerate(files)}
        return self._key(models.values(), [s.deployment for s in subjects], feeds)

    def _compare(
        self,
        models: Mapping[str, Model],
        seconds: float | None = None,
        further: float = 0.0,
        saving: float = 0.0,
        heard: Heard | None = None,
        own: Mapping[str, Deployment] = MappingProxyType({}),
    ) -> tuple[list[Comparison], bool]:
        """One comparison for each point; whether the cost file had them all. Some models have deployments of their
        `own`."""
        if seconds is None:
            seconds = self.options.budget if len(models) > 1 else min(2.0, self.options.budget)
        shares = len(self.points)
        method = Method(seconds / shares, further / shares, patient=further > 0 and self._opens_slowly)
        methods = [replace(method, saving=0.0 if i else saving) for i in range(len(self.points))]
        timed = self.timed
        subjects = [Subject(n, _source(m), own.get(n, timed), size=total_bytes(m)) for n, m in models.items()]
        heard = heard if len(self.points) == 1 else None  # one of several sizes does not speak for all
        found = [self._compare_at(i, models, subjects, methods[i], heard) for i in range(len(self.points))]
        return [comparison for comparison, _ in found], all(frozen for _, frozen in found)

    def _compare_at(
        self, point: int, models: Mapping[str, Model], subjects: Sequence[Subject], method: Method, heard: Heard | None
    ) -> tuple[Comparison, bool]:
        feeds, where = self._feeds[point], self.points[point].text if len(self.points) > 1 else ""

        def measure() -> Comparison:
            tell = partial(self._show, where, heard)
            return compare(subjects, feeds, method, tell=tell, hurried=self._hurried, turn=self.turn)

        if self.costs is None:
            return measure(), False
        with self.costs.opened() as cache:
            key = self._key(models.values(), [s.deployment for s in subjects], feeds)
            key = replace(key, look=PATIENT if method.patient else 0)
            found, frozen = cache.get_or_measure(key, measure, self._hurried)
            return found.renamed(list(models)), frozen

    def _show(self, where: str, heard: Heard | None, progress: Progress) -> None:
        if heard is not None and progress.speedup is not None:
            heard(progress.speedup)
        text = f"{progress.phase}, {progress.seconds:.0f} of at most {progress.limit:.0f} s"
        self._tell("timing", f"{where}: {text}" if where else text)

    def _key(self, models: Iterable[Model], deployments: Iterable[Deployment], feeds: Mapping[str, Any]) -> CostKey:
        return CostKey(
            models=tuple(content_digest(m) for m in models),
            deployments=tuple(d.text for d in deployments),
            inputs=tuple(
                Input(name, str(getattr(v, "dtype", type(v).__name__)), tuple(getattr(v, "shape", ())))
                for name, v in feeds.items()
            ),
            device=self.machine.device,
            driver=self.machine.driver,
            runtime=self.machine.runtime,
        )

    @cached_property
    def _feeds(self) -> list[Mapping[str, Any]]:
        """One input set for each point; the session that found them is closed before anything is timed. The first that
        runs will do: a search for kernels would take longer at each size that is tried."""
        self._tell("timing", "looking for input sizes that run")
        quick = HEURISTIC.applied(self.here) if chooses_kernels(self.here, contents_of(self.model)) else self.here
        try:
            return self._feeds_under(quick)
        except CannotRun:
            if quick == self.here:
                raise
            return self._feeds_under(self.here)

    def _feeds_under(self, deployment: Deployment) -> list[Mapping[str, Any]]:
        with running(self.turn, deployment), Session(_source(self.model), deployment) as session:
            return [self._feeds_at(point, session) for point in self.points]

    def _feeds_at(self, point: Point, session: Session) -> Mapping[str, Any]:
        try:
            return make_feeds(self.model, session, replace(self._request, dims=dict(point.sizes), also=()))
        except CannotRun as error:
            raise CannotRun(f"at {point.text}: {error}" if point.text else str(error)) from None

    @property
    def feeds(self) -> Mapping[str, Any]:
        """Those of the first point."""
        return self._feeds[0]

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Of the inputs at the first point."""
        return _shapes(self.feeds)

    def symbol_sizes(self, point: int = 0) -> dict[str, int]:
        """Sizes of the graph's symbols at a point, inner ones included, as far as they follow from shapes."""
        return symbol_sizes(self.model, _shapes(self._feeds[point]))

    def environment(self) -> Environment:
        return Environment(
            superopt=__version__,
            python=platform.python_version(),
            onnx=version("onnx"),
            onnxruntime=runtime_facts().version,
            target=self.deployment.target,
            device=self.machine.device,
            driver=self.machine.driver,
            threads=self.deployment.threads,
            platform=platform.platform(),
        )


def _shapes(feeds: Mapping[str, Any]) -> dict[str, list[int]]:
    return {name: list(v.shape) for name, v in feeds.items() if hasattr(v, "shape")}


def _look(method: Method) -> int:
    """Which look at the same models it is: a cost file does not answer a longer one with a shorter."""
    return PATIENT if method.patient else LONGER if method.further else 0


def _source(model: Model) -> Path | bytes:
    return model.path if model.path is not None else model.data


def _has_open_sizes(model: Model) -> bool:
    return any(not _is_fixed(parameter.type) for parameter in model.graph.inputs)


def _is_fixed(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.shape is not None and all(isinstance(d, int) for d in type_.shape)


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
