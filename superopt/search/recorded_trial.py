"""One original meant for a device that is not here: run on the CPU to be checked, and never timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path

from superopt.cost.cache import CostCache, CostKey
from superopt.cost.contents import Contents, machine_of
from superopt.cost.costs import read_costs
from superopt.cost.machine import Machine
from superopt.cost.measure import METHOD_VERSION
from superopt.cost.recorded import RecordedTimer
from superopt.cost.result import Comparison, PairTiming
from superopt.cost.turn import ALONE, Turn
from superopt.errors import BadOption, CannotRun
from superopt.ir.onnx import Model, load
from superopt.ir.onnx.stats import content_digest
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import CheckReport, TimingReport
from superopt.runtime.cores import usable_cores
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.search.choices import contents_of, convolves, is_hasty
from superopt.search.deployments import LIKELY, Deployed
from superopt.search.ending import Ending
from superopt.search.foreseen_options import Foreseen, alternatives, foresee, rungs
from superopt.search.settling import least, unsettled
from superopt.search.stages import Tell
from superopt.search.trial import Heard, Trial

PREDICTED = "predicted, not measured"
UNKNOWN = "which are best for this model there is unknown"
USUAL = f"these are the options that the recorded times belong to; {UNKNOWN}"
ON_THE_CPU = "compared on onnxruntime's CPU provider, not on the device that it is for: its kernels were not seen"


class RecordedTrial(Trial):
    def __init__(
        self,
        model: Model,
        options: Options,
        machine: Machine,
        tell: Tell,
        ending: Ending | None = None,
        turn: Turn = ALONE,
    ) -> None:
        assert options.costs is not None
        self.contents = read_costs(options.costs)
        deployment = usual_deployment(self.contents, machine, options)
        super().__init__(model, options, tell, ending, turn, deployment, machine)
        self.here = Deployment("cpu", threads=options.threads or usable_cores(), level="basic")
        """Whatever onnxruntime fuses for a CPU is none of that device's."""

    @cached_property
    def ladder(self) -> tuple[Deployment, ...]:
        return rungs(self._usual, self.foreseen.best)

    @cached_property
    def _usual(self) -> tuple[Deployment, ...]:
        """As recorded of this model, or else as most times were taken."""
        return self._settled()

    @cached_property
    def foreseen(self) -> Foreseen:
        """What of the options that suit convolutions should be best for a model that was not compared with them."""
        usual = self._usual[-1]
        if self.options.options == "fixed" or not convolves(contents_of(self.model)):
            return Foreseen(usual)
        others = alternatives(usual, map(parse_deployment, self.contents.deployments(self.machine)))
        if not others or self._was_compared({other.text for other in others}):
            return Foreseen(usual)
        growth = None if self.options.growth < 0 else self.options.growth
        for_cuda = self.deployment.target == "cuda"
        tidied, costs = normalize(self.model, growth_cap=growth, for_cuda=for_cuda).graph, self.costs
        assert costs is not None
        with costs.opened() as cache:
            return foresee(tidied, self.symbol_sizes(), usual, others, lambda d: RecordedTimer(d, cache, self.machine))

    def _was_compared(self, deployments: Set[str]) -> bool:
        """Whether this very model was, with any of them."""
        digest = content_digest(self.model)
        found = (k for k in self.contents.comparisons if set(k.models) == {digest} and self._is_ours(k))
        return any(deployments & set(key.deployments) for key in found)

    def _gains(self, best: Deployment, others: Sequence[Deployment]) -> Sequence[float | None]:
        """As recorded of this model; of one that was not there, options pay that most times were taken with."""
        told = [self._recorded(self._key([self.model], [best, *others], feeds)) for feeds in self._feeds]
        known = [comparison for comparison in told if comparison is not None]
        if not known:
            counts = self.contents.deployments(self.machine)
            return [counts.get(d.text, 0) / counts.get(best.text, 1) * LIKELY for d in others]
        if len(known) < len(told):
            return [None] * len(others)
        columns = zip(*([pair.speedup for pair in comparison.pairs] for comparison in known), strict=True)
        return [least(column) for column in columns]

    @property
    def _is_hasty(self) -> bool:
        """Where this model was compared so; of one that was not there, where most times were taken so."""
        digest = content_digest(self.model)
        told = [key.deployments for key in self.contents.comparisons if set(key.models) == {digest}]
        if told:
            return any(is_hasty(parse_deployment(first)) for first, *_ in told)
        counts = self.contents.deployments(self.machine)
        return 2 * sum(n for text, n in counts.items() if is_hasty(parse_deployment(text))) > sum(counts.values())

    def timer(self, cache: CostCache) -> RecordedTimer:
        plain, *further = self.ladder
        timer = RecordedTimer(plain, cache, self.machine)
        for deployment in further:
            timer = RecordedTimer(deployment, cache, self.machine, timer)
        return timer

    def check(self, candidate: Path) -> CheckReport:
        found = super().check(candidate)
        return found.model_copy(update={"notes": [*found.notes, ON_THE_CPU]})

    def race(
        self,
        candidate: Model,
        seconds: float | None = None,
        further: float = 0.0,
        saving: float = 0.0,
        heard: Heard | None = None,
        deployment: Deployment | None = None,
    ) -> TimingReport:
        return self.time_original()

    def time_original(self) -> TimingReport:
        untimed = TimingReport.untimed(self.reason)
        try:
            return untimed.model_copy(update={"shapes": self.shapes})
        except CannotRun:  # the check says so too
            return untimed

    @property
    def reason(self) -> str:
        """Why nothing is timed."""
        return f"{PREDICTED}: from times recorded on {self.machine.device}"

    def compare_all(
        self, models: Mapping[str, Model], seconds: float | None = None, heard: Heard | None = None
    ) -> tuple[Comparison, bool]:
        raise CannotRun(self.reason)

    def race_deployed(
        self, original: tuple[Path, Deployment], candidate: tuple[Path, Deployment], seconds: float
    ) -> PairTiming:
        raise CannotRun(self.reason)

    def deploy(self, path: Path, seconds: float, known: Deployment | None = None) -> Deployed:
        """What was recorded as best for the very same model; else what is foreseen, or usual."""
        if self.options.options == "fixed":
            return Deployed(self.deployment, self.deployment, searched=False)
        digest = content_digest(load(path))
        itself = [e for k, e in self.contents.comparisons.items() if k.models == (digest, digest)]
        found = [e for e in itself if self._is_ours(e.key) and len(e.key.deployments) == 2]
        if not found:
            return Deployed(self.timed, self.timed, searched=False, notes=self._unknown)
        latest = max(found, key=lambda entry: entry.measured)
        base, best = map(parse_deployment, latest.key.deployments)
        pair = latest.comparison.pairs[0]
        speedup = None if best == base else pair.speedup
        notes = (f"recorded on {self.machine.text}; not measured in this run",)
        return Deployed(best, base, speedup, pair.interval if speedup else None, notes=notes)

    @property
    def _unknown(self) -> tuple[str, ...]:
        """What to tell of options that nobody timed."""
        foreseen = self.foreseen
        if foreseen.best != foreseen.usual:
            return (f"{PREDICTED}: {foreseen.text}; {UNKNOWN}",)
        return (USUAL, f"{PREDICTED}: {foreseen.text}") if foreseen.others else (USUAL,)

    def latency(self, tidied: Model | None = None) -> float | None:
        """Seconds of the original, where a run of it was recorded."""
        for models in ([self.model], [self.model, tidied]):
            known = [m for m in models if m is not None]
            found = self._recorded(self._key(known, [self.timed] * len(known), self.feeds))
            if found is not None and found.subjects[0].latency is not None:
                return found.subjects[0].latency.median
        return None

    def passes(self, tidied: Model | None) -> float | None:
        """What the tidied model gains alone, where that was recorded."""
        if tidied is None:
            return None
        found = self._recorded(self._key([self.model, tidied], [self.timed] * 2, self.feeds))
        if found is None:
            return None
        pair = found.pairs[0]
        return pair.speedup if pair.verdict != "not faster" else 1.0

    def _recorded(self, key: CostKey) -> Comparison | None:
        entry = self.contents.comparisons.get(key)
        return None if entry is None else entry.comparison

    def _is_ours(self, key: CostKey) -> bool:
        inputs = self._key((), (), self.feeds).inputs
        return machine_of(key) == self.machine and key.inputs == inputs and key.method == METHOD_VERSION


def usual_deployment(contents: Contents, machine: Machine, options: Options) -> Deployment:
    """What most of a machine's times were taken with, apart from what is settled for each model."""
    counts: Counter[str] = Counter()
    for text, count in contents.deployments(machine).items():
        deployment = unsettled(parse_deployment(text))
        if not options.threads or deployment.threads == options.threads:
            counts[deployment.text] += count
    if not counts:
        threads = f" with {options.threads} threads" if options.threads else ""
        raise BadOption(
            f"{options.costs}: holds no times of regions on {machine.text}{threads}: superopt calibrate measures them"
        )
    return parse_deployment(min(counts, key=lambda text: (-counts[text], text)))
