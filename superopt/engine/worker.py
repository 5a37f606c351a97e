"""The child process: reads one job, works, reports in JSON lines. Run as `python -m superopt.engine.worker`."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO

from superopt.cost.turn import Turn
from superopt.engine.job import (
    CAREFUL,
    JOB,
    AnyEvent,
    AnyJob,
    AuditJob,
    CalibrateJob,
    CheckJob,
    DiffJob,
    Done,
    ExplainJob,
    Failed,
    Known,
    Offer,
    OptimizeJob,
    PageJob,
    SceneJob,
    Stage,
)
from superopt.engine.stages import WAITING, Stages
from superopt.engine.standing import Standing
from superopt.errors import SuperoptError
from superopt.options import from_json
from superopt.report import Report
from superopt.runtime.careful import be_careful
from superopt.runtime.heap import map_large_blocks
from superopt.search.ending import Ending

PR_SET_PDEATHSIG = 1


def main() -> None:
    _die_with_parent()
    map_large_blocks()
    if CAREFUL in sys.argv[2:]:
        be_careful()
    channel = _private_stdout()

    def send(event: AnyEvent) -> None:
        channel.write(event.model_dump_json() + "\n")
        channel.flush()

    job = JOB.validate_json(sys.stdin.buffer.readline())
    try:
        send(_work(job, send))
    except SuperoptError as error:
        send(Failed(error=type(error).__name__, message=str(error)))
    except MemoryError:
        send(Failed(error="LimitHit", message="the machine's memory ran out"))


def _work(job: AnyJob, send: Callable[[AnyEvent], None]) -> Done:
    options = from_json(job.options)

    standing = Standing()
    turn = Turn(job.turn if isinstance(job, OptimizeJob) else None, lambda: tell(standing.stage, WAITING))
    stages = Stages(standing.stage, lambda: turn.waited)

    def tell(stage: str, detail: str = "") -> None:
        standing.stage = stage
        stages.enter(stage)
        send(Stage(stage=stage, detail=detail, speedup=standing.speedup, basis=standing.basis, waited=turn.waited))

    # Each kind of job loads what it needs and no more: to load all of it takes longer than many a job.
    if isinstance(job, OptimizeJob):
        from superopt.search.optimize import Destination, optimize_model

        where = Destination(job.folder, job.name, job.data_name, job.share_data)
        outcome = optimize_model(
            job.model, where, options, tell,
            lambda facts, external, environment: send(Known(facts=facts, external=external, environment=environment)),
            _ending(send, standing), turn,
        )  # fmt: skip
        report = outcome.report.model_copy(update={"stages": stages.seconds()})
        return Done(
            report=report.model_dump(mode="json"), result=outcome.written.path,
            data_files=list(outcome.written.data_files), candidate=outcome.candidate,
        )  # fmt: skip
    if isinstance(job, CalibrateJob):
        from superopt.search.calibrating import calibrate_models

        measured = calibrate_models(job.models, options, job.seconds, tell, _ending(send, standing))
        return Done(report=measured.model_dump(mode="json"))
    if isinstance(job, CheckJob):
        from superopt.search.compare import check_models

        return Done(report=check_models(job.original, job.candidate, options, tell).model_dump(mode="json"))
    if isinstance(job, AuditJob):
        from superopt.search.audit import audit

        found = audit(job.original, job.optimized, job.audited, options.rules, job.specs, tell)
        return Done(report=found.model_dump(mode="json"))
    if isinstance(job, ExplainJob):
        from superopt.search.explain import explain

        report = None if job.report is None else Report.model_validate(job.report)
        return Done(report=explain(job.model, job.nodes, options, report, tell).model_dump(mode="json"))
    if isinstance(job, DiffJob):
        from superopt.search.page import diff_models

        return Done(report=diff_models(job.before, job.after, job.html, tell).model_dump(mode="json"))
    if isinstance(job, PageJob):
        from superopt.search.page import write_page

        report = Report.model_validate(job.report)
        profile = write_page(job.original, job.candidate, report, options, job.html, tell)
        return Done(report={"profile": None if profile is None else profile.model_dump(mode="json")})
    if isinstance(job, SceneJob):
        from superopt.search.page import write_scene

        write_scene(job.original, job.candidate, Report.model_validate(job.report), job.scene, tell)
        return Done(report={})
    from superopt.search.compare import bench_models

    return Done(report=bench_models(job.models, options, tell).model_dump(mode="json"))


def _ending(send: Callable[[AnyEvent], None], standing: Standing) -> Ending:
    """The parent asks for an end with SIGINT, once it was told that there is something to end with."""
    asked = threading.Event()
    offered = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: asked.set())

    def offer() -> None:
        if not offered.is_set():
            offered.set()
            send(Offer())

    return Ending(asked.is_set, offer, standing.hear)


def _private_stdout() -> IO[str]:
    """Keep the real stdout for events; whatever a library prints goes to stderr."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return channel


def _die_with_parent() -> None:
    """Ask Linux to end this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the parent is gone")


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    os._exit(0)  # all is sent and closed; taking thousands of rules apart, one by one, would keep the parent waiting
