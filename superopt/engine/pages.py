"""Comparing and drawing, in a process of their own: a page that fails costs the page, not the result."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from superopt.engine.job import DiffJob, PageJob, SceneJob, Stage
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.errors import SuperoptError
from superopt.ir.files import clear_write_errors
from superopt.options import Options
from superopt.report import DiffReport, Profile, Report

Tell = Callable[[Stage], None]

SCENE_SECONDS = 120.0
"""Most that a scene may take: it is worth less than the place of the next job."""


def make_page(source: Path, candidate: Path | None, report: Report, options: Options, html: Path, tell: Tell) -> Report:
    """Write the page of a run. The report comes back with the profile that was made for it, or with a note."""
    with tempfile.TemporaryDirectory(prefix="superopt-page-") as folder:
        staged = Path(folder) / "page.html"
        job = PageJob(
            original=source, candidate=candidate, report=report.model_dump(mode="json"), html=staged,
            options=options.as_json(),
        )  # fmt: skip
        try:
            done = run_job(job, _limits(options), tell, Watched())
        except SuperoptError as error:
            return make_plain_page(_noted(report, f"the graphs could not be drawn: {error}"), html)
        _copy(staged, html)
    profile = done.report["profile"]
    return report.model_copy(update={"profile": None if profile is None else Profile.model_validate(profile)})


def make_plain_page(report: Report, html: Path) -> Report:
    """The page without graphs, for a run that did not finish."""
    from superopt.explain.page import report_page  # few runs have a page of this process

    with clear_write_errors(html):
        html.write_text(report_page(report, None, {}), encoding="utf-8")
    return report


def make_scene(source: Path, candidate: Path | None, report: Report, options: Options, out: Path, tell: Tell) -> None:
    """Write both graphs of a run, and what each rule gained, as data."""
    note = ""
    if candidate is not None and report.rewrites:
        limits = _limits(options)
        job = SceneJob(
            original=source, candidate=candidate, report=report.model_dump(mode="json"), scene=out,
            options=options.as_json(),
        )  # fmt: skip
        try:
            run_job(job, Limits(min(limits.seconds, SCENE_SECONDS), limits.memory_bytes), tell, Watched())
            return
        except SuperoptError as error:
            note = f"the graphs could not be drawn: {error}"
    from superopt.explain.staging import stage  # nor a scene

    with clear_write_errors(out):
        out.write_text(stage(report, None, note).model_dump_json(), encoding="utf-8")


def diff(before: Path, after: Path, options: Options, tell: Tell, html: Path | None) -> DiffReport:
    with tempfile.TemporaryDirectory(prefix="superopt-page-") as folder:
        staged = None if html is None else Path(folder) / "page.html"
        job = DiffJob(before=before, after=after, html=staged, options=options.as_json())
        done = run_job(job, _limits(options), tell, Watched())
        if staged is not None and html is not None:
            _copy(staged, html)
    return DiffReport.model_validate(done.report)


def _copy(staged: Path, html: Path) -> None:
    with clear_write_errors(html):
        shutil.copyfile(staged, html)


def _limits(options: Options) -> Limits:
    return Limits(options.time_limit, options.memory_limit << 20 or default_memory_limit())


def _noted(report: Report, note: str) -> Report:
    return report.model_copy(update={"notes": [*report.notes, note]})
