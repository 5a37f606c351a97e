"""From an input path to an output path: the job in its process, then the result moved into place.

Whatever happens to the job, the user ends with a whole model: the faster one, or the original.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from superopt.engine.interrupts import held_back
from superopt.engine.job import Known, OptimizeJob, Stage
from superopt.engine.pages import make_page, make_plain_page, make_scene
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.errors import BadModel, BadOption, CannotWrite, LimitHit, SuperoptError, WorkerDied
from superopt.ir.files import Written, clear_write_errors, free_data_name, place, refuse_unwritable
from superopt.options import Options
from superopt.report import CheckReport, Report, TimingReport

AGAIN = "the work was begun again, and every model opened and run in a process of its own first"


@dataclass(frozen=True)
class Delivered:
    written: Written | None
    """What now lies at the output path; None after a dry run."""
    report: Report
    stopped: SuperoptError | None
    """Why the job did not end by itself; the original was delivered then."""


def deliver(
    source: Path,
    out: Path | None,
    options: Options,
    tell: Callable[[Stage], None],
    html: Path | None = None,
    *,
    scene: Path | None = None,
    patient: bool = False,
    turn: Path | None = None,
) -> Delivered:
    """Optimize `source` into `out`; without `out` no model is written. With `html`, the page of the run as well.

    `scene`: where both graphs go as data, for a page that draws them.
    `turn`: a file whose lock says whose turn it is, where several work for one device.
    `patient`: on Ctrl-C what was found so far is delivered, if anything was; a second one ends it at once.
    """
    _refuse_bad_paths(source, out, options.keep_rules)
    if turn is not None:
        with clear_write_errors(turn), open(turn, "ab"):  # it stays: to remove it would be to give out a second turn
            pass
    watched = Watched()
    with _staging_folder(out) as folder:
        job = OptimizeJob(
            model=source,
            folder=folder,
            name=out.name if out is not None else source.name,
            data_name=free_data_name(out) if out is not None else f"{source.name}.data",
            share_data=out is not None and out.resolve().parent == source.resolve().parent,
            options=options.as_json(),
            turn=turn,
        )
        limits = Limits(options.time_limit, options.memory_limit << 20 or default_memory_limit())
        try:
            done = run_job(job, limits, tell, watched, patient=patient)
        except (LimitHit, WorkerDied) as stopped:
            if watched.known is None:
                raise
            kept = _keep_original(source, out, folder, job, watched.known)
            report = _report_of_kept(watched, stopped, options)
            if scene is not None:
                make_scene(source, None, report, options, scene, tell)
            return Delivered(kept, report if html is None else make_plain_page(report, html), stopped)
        report = Report.model_validate(done.report)
        if watched.crash:
            report = report.model_copy(update={"notes": [*report.notes, *_told(watched)], "seconds": watched.seconds})
        if html is not None:
            report = make_page(source, done.candidate, _with_path(report, out), options, html, tell)
        if scene is not None:
            make_scene(source, done.candidate, report, options, scene, tell)
        if out is None:
            return Delivered(None, report, None)
        assert done.result is not None
        with held_back():
            written = place(Written(done.result, tuple(done.data_files)), out)
        return Delivered(written, _with_path(report, out), None)


def _refuse_bad_paths(source: Path, out: Path | None, rules: Path | None) -> None:
    """Before the work, not after it."""
    if not source.exists():
        raise BadModel(f"{source}: no such file")
    if out is not None and rules is not None and out.absolute() == rules.absolute():
        raise BadOption(f"--keep-rules {rules}: would replace the result; choose another name")
    for path, what in ((out, "the result"), (rules, "the rules")):
        if path is None:
            continue
        if path.exists() and path.samefile(source):
            raise BadOption(f"{path}: {what} would replace the original; choose another name")
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CannotWrite(f"{path}: is no regular file; {what} would take its place")
        refuse_unwritable(path, what)


@contextmanager
def _staging_folder(out: Path | None) -> Generator[Path]:
    """A folder beside the output, so that moving into place is one step on one file system."""
    if out is None:
        folder = Path(tempfile.mkdtemp(prefix="superopt-"))
    else:
        with clear_write_errors(out):
            folder = Path(tempfile.mkdtemp(prefix=f".{out.name[:40]}.", dir=out.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_original(source: Path, out: Path | None, folder: Path, job: OptimizeJob, known: Known) -> Written | None:
    if out is None:
        return None
    staged = folder / "kept"
    data_files = () if job.share_data else tuple(known.external)
    with clear_write_errors(out):
        staged.mkdir()
        shutil.copyfile(source, staged / job.name)
        for name in data_files:
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.resolve().parent / name, staged / name)
    return place(Written(staged / job.name, data_files), out)


def _report_of_kept(watched: Watched, stopped: SuperoptError, options: Options) -> Report:
    known = watched.known
    assert known is not None
    reason = f"the job did not finish: {stopped}"
    return Report(
        verdict=f"{reason}; the original's own bytes are returned",
        returned="original",
        before=known.facts,
        after=known.facts,
        rewrites=[],
        candidate_nodes=known.facts.nodes,
        check=CheckReport(status="unchecked", reason=reason, runs=0, inputs=[], outputs=[]),
        timing=TimingReport.untimed(reason),
        environment=known.environment,
        options=options.as_json(),
        peak_memory_bytes=watched.largest,
        seconds=watched.seconds,
        notes=_told(watched),
    )


def _told(watched: Watched) -> list[str]:
    return [f"{watched.crash}; {AGAIN}"] if watched.crash else []


def _with_path(report: Report, out: Path | None) -> Report:
    path = None if out is None else str(out)
    return report.model_copy(update={"after": report.after.model_copy(update={"path": path})})
