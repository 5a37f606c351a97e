"""One model from load to verdict: rewrite it, check it, time it, and return it only if it is right and faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.memory import peak_resident_bytes
from superopt.cost.turn import ALONE, Turn
from superopt.errors import BadOption, CannotRun
from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import Model, facts, load, stage
from superopt.ir.onnx.raised import raised
from superopt.ir.onnx.save import annotate
from superopt.ir.onnx.stats import added_operators
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import (
    CheckReport,
    DeploymentReport,
    Environment,
    ModelFacts,
    Portable,
    PredictionReport,
    Report,
    Rewrite,
    TimingReport,
)
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rule import Rule
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import flat_options
from superopt.search.aim import aim_of
from superopt.search.choosing import Chooser
from superopt.search.deployments import Deployed, metadata_of
from superopt.search.ending import Ending
from superopt.search.foretold import foretell, notes_of
from superopt.search.hunted import Hunted
from superopt.search.hunting import Ground, Hunting, search_report
from superopt.search.recorded_trial import RecordedTrial
from superopt.search.rivals import Rivals, refusal, rivals
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.sizes import NOT_SLOWER, slower_point
from superopt.search.stages import Tell
from superopt.search.trace import own_rules_used, told
from superopt.search.trial import Trial
from superopt.search.variants import TIDIED, Repairer, Variant, variants
from superopt.search.verdict import nothing_to_check, verdict
from superopt.search.workshop import Workshop

Found = Callable[[ModelFacts, list[str], Environment], None]

RACE, FURTHER, PORTABLE = 1.0, 2.0, 0.3
"""Shares of the budget: to compare the chosen variant with the original, which ends as soon as the two are told apart;
on top of that, while a small gain is still open; and to see what standard operators alone would give."""
ONLY_ANSWERS = "an exported or read-only file only answers: what was measured besides was not added"
INTERRUPTED = "interrupted: the search ended with what it had until then, which was checked in full and timed in short"
DEPLOY = {"cpu": 0.2, "cuda": 0.5}
"""And to find session options: a GPU has more of them, they are worth more, and its sessions take longer to open."""


@dataclass(frozen=True)
class Destination:
    """Where the result is staged, under the names it will have."""

    folder: Path
    name: str
    data_name: str
    share_data: bool


@dataclass(frozen=True)
class Outcome:
    written: Written
    report: Report
    candidate: Path | None
    """The rewritten model, returned or not; None when nothing was rewritten."""


def optimize_model(
    path: Path,
    where: Destination,
    options: Options,
    tell: Tell,
    found: Found,
    ending: Ending | None = None,
    turn: Turn = ALONE,
) -> Outcome:
    """Stage the faster model, or the original, and report. The device is used in a `turn`, the rest beside others."""
    return _Run(path, where, options, tell, found, ending or Ending(), turn).outcome()


class _Run:
    def __init__(
        self,
        path: Path,
        where: Destination,
        options: Options,
        tell: Tell,
        found: Found,
        ending: Ending,
        turn: Turn = ALONE,
    ) -> None:
        self.started = time.monotonic()
        tell("loading", str(path.name))
        self.model = load(path)
        _refuse_lost_data(self.model, where)
        self.where, self.options, self.tell, self.ending = where, options, tell, ending
        self.before = facts(self.model)
        self.trial = trial_of(self.model, options, tell, ending, turn)
        self.prediction: PredictionReport | None = None
        self.foreign = foreign_costs(self.trial)
        self.growth = None if options.growth < 0 else options.growth
        self.base = raised(self.model, options.opset) if options.opset else self.model
        found(self.before, list(self.model.external), self.trial.environment())
        self.staged = 0
        self.chooser = Chooser(self.trial, self.model, options.budget, ending, self._stage)

    def outcome(self) -> Outcome:
        self.tell("rewriting", "")
        for_cuda = self.trial.deployment.target == "cuda"
        tidied = normalize(self.base, growth_cap=self.growth, for_cuda=for_cuda)
        if tidied.rewrites:
            self.ending.is_worthwhile()
        book = open_rulebook(self.options.rules)
        self.mined, notes = self._mine(book)
        self.mining_notes = notes
        workshop = Workshop(self.base, tidied.graph, book, self._vocabulary(self.options.allow == "contrib"))
        with Ground(self.trial, self.options, self.tell, self.ending) as ground:
            hunting = ground.hunt(workshop)
            variant, files = self.chooser.of_all(workshop, tidied.rewrites, hunting.found, self._worth)
            repairer = Repairer(self.base, workshop, self.growth, self._check, self.tell, self.ending)
            checked = repairer.repaired(variant) if variant.is_changed or self.base is not self.model else None
            written = files.get(variant.name)
            if checked is not None and (written is None or checked.graph is not variant.graph):
                written = self._stage(checked.graph)
            timing = self._time(checked, written, hunting.found)
            if isinstance(self.trial, RecordedTrial):
                self.prediction = self._foretell(self.trial, ground, workshop, checked, hunting, files.get(TIDIED))
            accepted = checked is not None and _is_equal(checked) and self._accepts(timing)
            self._worth((self._speedup(timing) or 1.0) if accepted else 1.0)
            wanted = self.options.portable and accepted and not self.ending.is_asked()
            portable = self._portable(checked, tidied.rewrites, workshop, ground) if wanted else None
        return self._finish(checked, written, timing, accepted, repairer.workshop, hunting, portable)

    def _mine(self, book: Rulebook) -> tuple[Mapping[str, Rule], list[str]]:
        """The rules that the model itself teaches, which join the book; and what to tell of them."""
        if not self.options.mine:
            return {}, []
        self.tell("mining", "")
        try:
            from superopt.search.mining import mine_model  # with z3, which takes its time and need not be there
        except ImportError as error:
            return {}, [f"nothing was mined, because nothing could be proved: {error}"]
        seconds, keep = self.options.mine, self.options.keep_rules
        found = mine_model(self.base, book, seconds, keep, self.tell, self.ending)
        return found.rules, found.notes

    def _vocabulary(self, contrib: bool) -> Vocabulary:
        """What runs on CUDA alone could not be checked where there is none."""
        meant, here = self.trial.deployment.target, self.trial.here.target
        never = self.trial.never_empty
        return Vocabulary(contrib=contrib, cuda=here == "cuda", for_cuda=meant == "cuda", never_empty=never)

    def _foretell(
        self,
        trial: RecordedTrial,
        ground: Ground,
        workshop: Workshop,
        checked: Variant | None,
        hunting: Hunting,
        tidied: Written | None,
    ) -> PredictionReport | None:
        if not hunting.searched:
            return None
        gains = hunting.found.made(checked.trace) if checked is not None else []
        return foretell(trial, ground, workshop, gains, None if tidied is None else load(tidied.path), self.options)

    def _check(self, graph: Graph) -> CheckReport:
        return self.trial.check(self._stage(graph).path)

    def _portable(
        self, checked: Variant | None, passes: tuple[Rewrite, ...], workshop: Workshop, ground: Ground
    ) -> Portable | None:
        """What standard operators alone would have given, where the result has others that the original has not."""
        extra = {} if checked is None else added_operators(self.base, checked.graph)
        if not extra:
            return None
        if isinstance(self.trial, RecordedTrial):
            return Portable(operators=extra, speedup=None, interval=None, note=self.trial.reason)
        self.tell("searching", "standard operators alone")
        standard = Workshop(self.base, workshop.tidied, workshop.book, self._vocabulary(False))
        hunting = ground.hunt(standard, PORTABLE)
        variant, files = self.chooser.best(variants(standard, passes, hunting.found), hunting.found)
        if not variant.is_changed:
            return Portable(operators=extra, speedup=1.0, interval=None, note="nothing to improve: the original")
        report = self.trial.race(load(files[variant.name].path), PORTABLE * self.options.budget)
        note = "timed, not checked: `--allow standard` checks it" if report.status != "untimed" else report.reason
        return Portable(operators=extra, speedup=report.speedup, interval=report.speedup_interval, note=note)

    def _speedup(self, timing: TimingReport) -> float | None:
        return timing.speedup if self.prediction is None else self.prediction.speedup

    def _worth(self, speedup: float) -> None:
        self.ending.is_worth(speedup, "predicted" if isinstance(self.trial, RecordedTrial) else "measured")

    def _stage(self, graph: Graph) -> Written:
        self.staged += 1
        folder = self.where.folder / f"candidate{self.staged}"
        return stage(self.base, graph, folder, self.where.name, self.where.data_name)

    def _time(self, checked: Variant | None, written: Written | None, hunted: Hunted) -> TimingReport:
        """Only a candidate that was found equal is worth timing."""
        if checked is None or written is None:
            return self.trial.time_original()
        if not _is_equal(checked):
            return TimingReport.untimed("a model that was not found equal is not timed")
        budget, saving = self.options.budget, hunted.saving(checked.trace)
        candidate, own = load(written.path), checked.deployment
        return self.trial.race(candidate, RACE * budget, FURTHER * budget, saving, self._worth, own)

    def _accepts(self, timing: TimingReport) -> bool:
        if isinstance(self.trial, RecordedTrial):
            return self.prediction is not None and self.prediction.cautious >= self.prediction.least
        if timing.status == "faster":
            return True
        interval = timing.speedup_interval
        not_slower = interval is not None and interval.low >= NOT_SLOWER and slower_point(timing.points) is None
        return self.options.accept == "not-slower" and not_slower

    def _finish(
        self,
        checked: Variant | None,
        written: Written | None,
        timing: TimingReport,
        accepted: bool,
        workshop: Workshop,
        hunting: Hunting,
        portable: Portable | None,
    ) -> Outcome:
        own = checked.deployment if checked is not None else None
        final = self._rivals(written.path, own) if accepted and written is not None else None
        reason = refusal(final, own)
        if accepted and reason:
            accepted, timing = False, timing.model_copy(update={"status": "not faster", "reason": reason})
        if accepted and written is not None:
            deployed = final.ours if final is not None else None
            if deployed is not None:
                annotate(written.path, metadata_of(deployed.best))
            result, after = written, facts(load(written.path), file_bytes=written.total_bytes)
        else:
            name, data = self.where.name, self.where.data_name
            folder = self.where.folder / "original"
            result = stage(self.model, None, folder, name, data, share=self.where.share_data)
            # On a CPU the original was only timed with the other's options; its own have to be confirmed.
            asked = final is not None and self.trial.deployment.target == "cuda"
            deployed = final.theirs if final is not None and asked else self._deploy(self.model.path)
            after = self.before
        trace = checked.trace if checked is not None else ()
        rules = workshop.rewrites(trace, hunting.found)
        report = Report(
            verdict=verdict(checked, timing, accepted, self.prediction),
            returned="optimized" if accepted else "original",
            before=self.before,
            after=after,
            rewrites=[*(checked.passes if checked is not None else ()), *rules],
            candidate_nodes=_nodes(checked.graph if checked is not None else self.model.graph),
            check=checked.check if checked is not None and checked.check is not None else nothing_to_check(),
            timing=timing,
            prediction=self.prediction,
            search=search_report(hunting, workshop, self.options),
            trace=[told(record, workshop.book.digests) for record in trace],
            mutants=own_rules_used(trace, hunting.found.mutated.rules, workshop.book.digests),
            mined=own_rules_used(trace, self.mined, workshop.book.digests),
            left_out=list(checked.left_out) if checked is not None else [],
            deployment=None if deployed is None else self._deployment(deployed, final),
            portable=portable,
            environment=self.trial.environment(),
            options=self.options.as_json(),
            peak_memory_bytes=peak_resident_bytes(),
            seconds=time.monotonic() - self.started,
            interrupted=self.ending.is_asked(),
            notes=[
                *self._notes(accepted),
                *self.mining_notes,
                *_told(final),
                *workshop.book.notes,
                *hunting.notes,
                *(checked.notes if checked else ()),
            ],
        )
        return Outcome(result, report, None if written is None else written.path)

    def _deployment(self, deployed: Deployed, final: Rivals | None) -> DeploymentReport:
        """On a CPU the original's own options were not searched for."""
        report = deployed.report(self.where.name)
        if final is None or not final.theirs.searched or self.trial.deployment.target != "cuda":
            return report
        return report.model_copy(update={"original": flat_options(final.theirs.best)})

    def _notes(self, accepted: bool) -> list[str]:
        told = [INTERRUPTED] if self.ending.is_asked() else []
        if isinstance(self.trial, RecordedTrial):
            told += [] if self.prediction is None else notes_of(self.prediction, accepted)
            return [*told, *self._raised(accepted)]
        told += [*filter(None, (self.trial.settled_note,)), *self.foreign]
        costs = self.trial.costs
        told += [] if costs is None or costs.grows else [f"{costs.file}: {ONLY_ANSWERS}"]
        return [*told, *self._raised(accepted)]

    def _raised(self, accepted: bool) -> list[str]:
        if not accepted or self.base is self.model:
            return []
        before, after = self.model, self.base
        note = f"opset raised from {before.opset} to {after.opset}, as --opset asked"
        if after.ir_version != before.ir_version:
            note += f"; IR version from {before.ir_version} to {after.ir_version}"
        return [note]

    def _rivals(self, written: Path, known: Deployment | None) -> Rivals | None:
        """The rewritten model and the original, each with the session options that suit it."""
        assert self.model.path is not None
        ours = self._deploy(written, known)
        if ours is None:
            return None
        share = DEPLOY[self.trial.deployment.target] * self.options.budget
        return rivals(self.trial, ours, written, self.model.path, share, lambda: self._deploy(self.model.path), known)

    def _deploy(self, path: Path | None, known: Deployment | None = None) -> Deployed | None:
        assert path is not None
        try:
            return self.trial.deploy(path, DEPLOY[self.trial.deployment.target] * self.options.budget, known)
        except CannotRun:
            return None


def trial_of(model: Model, options: Options, tell: Tell, ending: Ending, turn: Turn) -> Trial:
    """Of the device that is here, or of one that a cost file tells of."""
    machine = aim_of(options).machine
    if machine is not None:
        return RecordedTrial(model, options, machine, tell, ending, turn)
    return Trial(model, options, tell, ending, turn)


def foreign_costs(trial: Trial) -> list[str]:
    """What to tell where a cost file was given that is about other machines alone."""
    if trial.costs is None or not trial.costs.file.exists():
        return []
    machines = trial.costs.contents().machines
    if not machines or trial.machine in machines:
        return []
    others = "; ".join(machine.text for machine in machines)
    return [f"{trial.costs.file}: holds no costs of {trial.machine.text}, and those of others are not used: {others}"]


def _told(found: Rivals | None) -> list[str]:
    return [found.text] if found is not None and found.text else []


def _is_equal(variant: Variant) -> bool:
    return variant.check is not None and variant.check.status == "equal"


def _refuse_lost_data(model: Model, where: Destination) -> None:
    """The result may neither replace the original's data files nor need one under its own name."""
    out = where.folder.parent / where.name
    for location in model.external:
        assert model.folder is not None
        if Path(location) == Path(where.name) or (out.exists() and out.samefile(model.folder / location)):
            raise BadOption(f"{where.name}: the model keeps its weights in a file of that name; choose another")


def _nodes(graph: Graph) -> int:
    return sum(1 for _ in graph.all_nodes())
