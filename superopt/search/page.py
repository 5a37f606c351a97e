"""Pages for people: the report of a run, and two models side by side; the same as data, for a page that draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from superopt.errors import BadInput, CannotRun
from superopt.explain.difference import Difference, compare
from superopt.explain.page import diff_page, report_page
from superopt.explain.staging import stage
from superopt.explain.summary import summarize
from superopt.ir.files import clear_write_errors
from superopt.ir.onnx import Model, load
from superopt.options import Options
from superopt.report import DiffReport, Profile, Report
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.rewrite.text import format_rule
from superopt.runtime.profile import OperatorTimes, profile
from superopt.search import stages
from superopt.search.trial import Trial

Tell = Callable[[str, str], None]

ON_CUDA = "On CUDA it sees how long launches take, not kernels."


def write_page(
    original: Path, candidate: Path | None, report: Report, options: Options, out: Path, tell: Tell
) -> Profile | None:
    """Write the page of a run and return the profile that was made for it; `candidate`: returned or not."""
    model = load(original)
    other = None if candidate is None else load(candidate)
    profiled = None if report.prediction is not None else _profile(model, other, options, tell)
    tell("drawing", "")
    difference = None if other is None else compare(model.graph, other.graph)
    told = report.model_copy(update={"profile": profiled})
    with clear_write_errors(out):
        out.write_text(report_page(told, difference, _rule_texts(report, options)), encoding="utf-8")
    return profiled


def write_scene(original: Path, candidate: Path, report: Report, out: Path, tell: stages.Tell) -> None:
    """Write both graphs of a run as data; `candidate`: returned or not."""
    tell("drawing", "")
    difference = compare(load(original).graph, load(candidate).graph)
    with clear_write_errors(out):
        out.write_text(stage(report, difference).model_dump_json(), encoding="utf-8")


def diff_models(before: Path, after: Path, out: Path | None, tell: Tell) -> DiffReport:
    """Compare two models; with `out`, draw them side by side as well."""
    tell("loading", before.name)
    old, new = load(before), load(after)
    tell("comparing", "")
    difference = compare(old.graph, new.graph)
    report = summarize(old, new, difference)
    if out is not None:
        _write_diff(out, report, difference, tell)
    return report


def _write_diff(out: Path, report: DiffReport, difference: Difference, tell: Tell) -> None:
    tell("drawing", "")
    with clear_write_errors(out):
        out.write_text(diff_page(report, difference), encoding="utf-8")


def _profile(before: Model, after: Model | None, options: Options, tell: Tell) -> Profile | None:
    """None where onnxruntime cannot run one of the models; the report has said why."""
    tell("profiling", "")
    try:
        trial = Trial(before, options, lambda stage, detail: tell("profiling", detail))
        first = _operator_times(before, trial)
        second = first if after is None else _operator_times(after, trial)
    except (BadInput, CannotRun):
        return None
    return Profile(
        before=dict(first.microseconds),
        after=dict(second.microseconds),
        runs=min(first.runs, second.runs),
        note=ON_CUDA if trial.deployment.target == "cuda" else "",
    )


def _operator_times(model: Model, trial: Trial) -> OperatorTimes:
    return profile(model.path if model.path is not None else model.data, trial.deployment, trial.feeds)


def _rule_texts(report: Report, options: Options) -> Mapping[str, str]:
    """Texts of the rules that were used, as far as their files are still there."""
    own = {mutant.name: mutant.text for mutant in (*report.mutants, *report.mined)}
    used = {rewrite.name for rewrite in report.rewrites if rewrite.kind != "pass"} - own.keys()
    if not used:
        return own
    try:
        rules = load_rules([*rule_files(), *(rule_files(options.rules) if options.rules else ())], repeated=True)
    except BadInput:
        return own
    return own | {rule.name: format_rule(rule) for rule in rules if rule.name in used}
