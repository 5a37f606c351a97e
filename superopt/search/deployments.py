"""The session options a model runs best with: dimension by dimension, by the clock.

The choices of a dimension are timed against what is best so far, interleaved; the fastest that helps is kept, if the
model still answers the same. In the end all that was kept is timed once more against the base, in sittings of its own:
it is returned if it is faster with confidence, and slower at none of the further sizes. Where it is not, the same is
asked of those choices alone that were sure when they were tried. Everything tried is told, with its number or with the
reason why there is none.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from superopt.cost.contest import Method
from superopt.cost.measure import Subject, compare, running
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.cost.turn import ALONE, Turn
from superopt.errors import CannotRun
from superopt.ir.onnx import load
from superopt.ir.onnx.stats import total_bytes
from superopt.report import DeploymentReport, DeploymentTrial, Interval
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import flat_options, python_code
from superopt.runtime.values import Value
from superopt.search.choices import Choice, contents_of, options_for
from superopt.search.noted import NOTE
from superopt.search.sameness import Sameness
from superopt.search.stages import Tell

Hurried: TypeAlias = Callable[[], bool]
Measure: TypeAlias = Callable[[Sequence[Subject], Mapping[str, Value], Method], Comparison]

EXPLORING = 0.6
"""Share of the time for the single choices; the rest is for what was kept."""
WORTH = 1.01
"""An option that gives less is not worth a line of its own."""
LIKELY = 1.02
"""From here on a choice is kept until the end although its time was too short to be sure."""
OBVIOUS = 1.3
"""From here on one look is enough to keep a choice until the end."""
AGAIN = 30.0
"""Seconds on top, at most, for the one choice of a dimension that is likely to help and was seen too briefly."""
CONFIRMING = 60.0
"""Seconds on top, at most, where the rest was too little to confirm what was kept: a session may take long to open."""
_GRAPH = "a CUDA graph holds inputs of one shape: the code captures one for each set of shapes"
_TF32 = "TF32 is on, onnxruntime's default: times are with it, answers were compared without it"


@dataclass(frozen=True)
class Deployed:
    """What the search found; `speedup` is the base's time over the best's, none where the base is the best."""

    best: Deployment
    base: Deployment
    speedup: float | None = None
    interval: Interval | None = None
    tried: tuple[DeploymentTrial, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    searched: bool = True

    @property
    def is_settled(self) -> bool:
        """Whether more time would hardly find anything else: nothing was left untried, or given up while it looked
        better."""
        given_up = self.best == self.base and any(row.kept for row in self.tried)
        return not given_up and not any(row.verdict == "not tried" or _is_open(row) for row in self.tried)

    def report(self, model: str = "model.onnx") -> DeploymentReport:
        return DeploymentReport(
            options=flat_options(self.best),
            code=python_code(self.best, model),
            base=flat_options(self.base),
            searched=self.searched,
            verdict="base" if self.best == self.base else "faster",
            speedup=self.speedup,
            interval=self.interval,
            tried=list(self.tried),
            notes=list(self.notes),
            seconds=self.seconds,
        )


def metadata_of(deployment: Deployment) -> dict[str, str]:
    """The options as one note in a model's metadata; no times, so that equal models stay equal files."""
    return metadata_of_options(flat_options(deployment))


def metadata_of_options(options: Mapping[str, str]) -> dict[str, str]:
    """The same from the options as a report has them."""
    return {NOTE: json.dumps(dict(options), sort_keys=True)}


def comparison_of(found: Deployed) -> Comparison:
    """What a cost file keeps of a search: how much faster the best is than the base."""
    pair = PairTiming(
        name="best", verdict="not faster" if found.speedup is None else "faster", reason="session options",
        speedup=found.speedup or 1.0, interval=found.interval, sittings=0, pairs=0,
    )  # fmt: skip
    subjects = (SubjectTiming(name="base", latency=None), SubjectTiming(name="best", latency=None))
    return Comparison(subjects=subjects, pairs=(pair,), seconds=found.seconds, one_at_a_time=False)


def search_deployment(
    path: Path,
    feeds: Mapping[str, Value],
    base: Deployment,
    seconds: float,
    *,
    further: Sequence[Mapping[str, Value]] = (),
    seed: int = 0,
    tell: Tell = lambda stage, detail: None,
    measure: Measure = compare,
    hurried: Hurried = lambda: False,
    turn: Turn = ALONE,
    ladder: Sequence[Deployment] = (),
) -> Deployed:
    """The best deployment of the model on these inputs, in about so many seconds, of what was tried until it is
    `hurried`; `further` inputs are other sizes, at which it must not be slower. A model that does not run at all comes
    back with its base and the reason. On a CPU answers are compared in a `turn`; `measure` sees to its own. The search
    starts from the last deployment of the `ladder` under which the model answers the same as under the base."""
    model = load(path)
    all_feeds = (feeds, *further)
    sameness = tuple(Sameness(path, model, inputs, base) for inputs in all_feeds)
    stand = OnDevice(path, total_bytes(model), all_feeds, sameness, seed, measure, turn)
    choices = options_for(base, contents_of(model))
    return Search(stand, base, choices, seconds, len(further), tell, hurried, tuple(ladder)).run()


class Stand(Protocol):
    """Where deployments of one model are tried."""

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        """All on the numbered inputs, each against the first, under the names of their texts; in `further` seconds
        where that is too little to tell."""
        ...

    def difference(self, deployment: Deployment) -> str:
        """How its answers differ from the base's, empty where they do not."""
        ...


@dataclass(frozen=True)
class OnDevice:
    path: Path
    size: int
    feeds: tuple[Mapping[str, Value], ...]
    sameness: tuple[Sameness, ...]
    seed: int
    measure: Measure
    turn: Turn = ALONE

    def race(self, deployments: Sequence[Deployment], seconds: float, feeds: int, further: float = 0.0) -> Comparison:
        subjects = [Subject(d.text, self.path, d, size=self.size) for d in deployments]
        seconds = max(round(seconds, 1), 0.1)
        method = Method(seconds=seconds, further=further, negligible=WORTH - 1, seed=self.seed)
        return self.measure(subjects, self.feeds[feeds], method)

    def difference(self, deployment: Deployment) -> str:
        with running(self.turn, deployment):
            return next(filter(None, (s.difference(deployment) for s in self.sameness)), "")


@dataclass
class Search:
    stand: Stand
    base: Deployment
    choices: tuple[Choice, ...]
    seconds: float
    further: int = 0
    tell: Tell = lambda stage, detail: None
    hurried: Hurried = lambda: False
    ladder: tuple[Deployment, ...] = ()
    _spent: float = 0.0
    _on_top: float = 0.0
    """Of what was spent: for second looks, which take nothing from the other choices."""
    _sure: Deployment | None = None
    """With those choices alone that were faster with confidence when they were tried."""
    _tried: list[DeploymentTrial] = field(default_factory=list[DeploymentTrial])
    _notes: list[str] = field(default_factory=list[str])

    def run(self) -> Deployed:
        if self.base.target == "cuda" and self.base.provider_settings["use_tf32"] == "1":
            self._notes.append(_TF32)
        try:
            best = self._explored()
            together = [d for d in dict.fromkeys((best, self._sure)) if d is not None and d != self.base]
            found = next(filter(None, map(self._confirmed, together)), None)
        except CannotRun as error:
            self._notes.append(f"the model could not be timed: {error}")
            found = None
        if found is None:
            return Deployed(
                self.base, self.base, tried=tuple(self._tried), notes=tuple(self._notes), seconds=self._spent
            )
        return found

    def _explored(self) -> Deployment:
        best = self._started()
        open_ = [choice for choice in self.choices if choice.applied(best) != best]
        groups = [(name, list(group)) for name, group in itertools.groupby(open_, key=lambda c: c.dimension)]
        for number, (dimension, choices) in enumerate(groups):
            left = self._left()
            if left <= 0 or self.hurried():
                self._tried += [_row(c, best, "not tried", "the time was over") for c in choices]
                continue
            self.tell("options", f"{dimension}, {number + 1} of {len(groups)}")
            best = self._step(best, choices, left / (len(groups) - number))
        return best

    def _started(self) -> Deployment:
        """The highest rung on which the model answers the same."""
        for rung in reversed(self.ladder):
            if rung == self.base:
                break
            verdict, note = self._same(rung)
            self._tried.append(_settled(rung, self.base, verdict, note))
            if verdict is None:
                self._sure = rung
                return rung
        return self.base

    def _left(self) -> float:
        """Seconds for single choices."""
        return EXPLORING * self.seconds - (self._spent - self._on_top)

    def _step(self, best: Deployment, choices: Sequence[Choice], seconds: float) -> Deployment:
        """The best after one dimension."""
        by_name = {c.applied(best).text: c for c in choices if c.applied(best) != best}
        comparison = self._race([best, *(c.applied(best) for c in by_name.values())], seconds)
        rows = {name: _timed(choice, best, comparison.pair(name)) for name, choice in by_name.items()}
        open_ = max(filter(_is_open, rows.values()), key=lambda row: row.speedup or 0.0, default=None)
        late = self.hurried() or self._spent - self._on_top > self.seconds
        if open_ is not None and not late and not any(map(_helps, rows.values())):
            name = next(name for name, row in rows.items() if row is open_)
            again = self._race([best, by_name[name].applied(best)], seconds, further=AGAIN)
            self._on_top += again.seconds
            rows[name] = _timed(by_name[name], best, again.pair(name))
        following = best
        for name in sorted(rows, key=lambda name: -(rows[name].speedup or 0.0)):
            if not _helps(rows[name]):
                continue
            candidate = by_name[name].applied(best)
            verdict, note = self._same(candidate)
            if verdict is None:
                if rows[name].verdict == "faster":
                    self._sure = by_name[name].applied(self._sure or self.base)
                rows[name] = rows[name].model_copy(update={"kept": True})
                following = candidate
                break
            rows[name] = rows[name].model_copy(update={"verdict": verdict, "note": note})
        self._tried += rows.values()
        return following

    def _same(self, candidate: Deployment) -> tuple[Literal["failed", "different"] | None, str]:
        try:
            reason = self.stand.difference(candidate)
        except CannotRun as error:
            return "failed", str(error)
        return ("different", f"skipped: {reason}") if reason else (None, "")

    def _confirmed(self, best: Deployment) -> Deployed | None:
        self.tell("options", f"all together: {best.text}")
        left = max(self.seconds - self._spent + self._on_top, (1 - EXPLORING) * self.seconds)
        share = left / (1 + self.further)
        pair = self._race([self.base, best], share, further=CONFIRMING).pair(best.text)
        if pair.verdict != "faster" or pair.speedup is None or pair.speedup < WORTH:
            self._notes.append(f"{best.text}: promising one by one, together not faster with confidence")
            return None
        for feeds in range(1, 1 + self.further):
            other = self._race([self.base, best], share, feeds).pair(best.text)
            if other.verdict == "slower" or other.speedup is None:
                self._notes.append(f"{best.text}: faster at the first sizes, {other.verdict} at others: {other.reason}")
                return None
        if best.captures_cuda_graph:
            self._notes.append(_GRAPH)
        return Deployed(
            best, self.base, pair.speedup, pair.interval, tuple(self._tried), tuple(self._notes), self._spent
        )

    def _race(
        self, deployments: Sequence[Deployment], seconds: float, feeds: int = 0, further: float = 0.0
    ) -> Comparison:
        comparison = self.stand.race(deployments, seconds, feeds, further)
        self._spent += comparison.seconds
        return comparison


def _row(choice: Choice, against: Deployment, verdict: Literal["failed", "not tried"], note: str) -> DeploymentTrial:
    return DeploymentTrial(
        change=choice.text, dimension=choice.dimension, against=against.text, verdict=verdict,
        speedup=None, interval=None, kept=False, note=note,
    )  # fmt: skip


def _settled(
    rung: Deployment, base: Deployment, verdict: Literal["failed", "different"] | None, note: str
) -> DeploymentTrial:
    known = base.text.split(" ")
    added = [word for word in rung.text.split(" ") if word not in known]
    return DeploymentTrial(
        change=" ".join(added), dimension="settled before", against=base.text, verdict=verdict or "faster",
        speedup=None, interval=None, kept=verdict is None, note=note or "the original gains by it",
    )  # fmt: skip


def _timed(choice: Choice, against: Deployment, pair: PairTiming) -> DeploymentTrial:
    if pair.speedup is None:
        return _row(choice, against, "failed", pair.reason)
    return DeploymentTrial(
        change=choice.text, dimension=choice.dimension, against=against.text, verdict=pair.verdict,
        speedup=pair.speedup, interval=pair.interval, kept=False, note=pair.reason,
    )  # fmt: skip


def _is_open(row: DeploymentTrial) -> bool:
    """Whether it may help, and a longer look would tell."""
    return row.verdict == "not faster" and row.speedup is not None and row.speedup >= LIKELY and not _helps(row)


def _helps(row: DeploymentTrial) -> bool:
    if row.speedup is None or row.speedup < WORTH:
        return False
    seen = row.interval is not None and row.interval.low > 1 and row.speedup >= LIKELY
    # Two sittings make an interval so wide that it says nothing.
    glimpsed = row.speedup >= OBVIOUS
    return row.verdict == "faster" or (row.verdict == "not faster" and (seen or glimpsed))
