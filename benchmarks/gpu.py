"""superopt on a GPU, against everything else: one command that goes on where it was stopped.

    python benchmarks/gpu.py --time-limit 540 --resume benchmarks/results/gpu.json --out benchmarks/results/gpu.json
    python benchmarks/gpu.py --only 'bert|resnet' --settings fp16-b1,fp16-b16 --methods superopt,torch.compile

Networks of torchvision and transformers with random weights, networks of built.py, and the real models of models.toml
that are there, each in float32 and float16, one and sixteen at a time. Methods: onnxruntime's default session; the best
session options on the original graph, found as superopt finds them; superopt with the options it finds; what was merged
by hand, under the default or those best options, whichever is faster; the other optimizers under those best options, or
the default ones where they do not run so; torch as it is, torch.compile in its modes reduce-overhead and max-autotune.
Most valuable first (gpu_plan.py), until the time is over.

Every step is a process of its own with a limit. A step that fails is written down with its reason and not tried again.
Answers are compared with the original's on onnxruntime's CPU provider (tolerances in gpu_race.py); TF32 is on for
everyone, as onnxruntime has it by default. With --side-by-side N so many models are optimized at once, and beside them
so many as --others-at-once says by other optimizers and torch, each on cores of its own; one at a time is timed. What
the table shows is timed alone, when all are done or no more of them can wait, and opened once, ahead of that. Words
after `--` go to `superopt optimize`.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import gpu_plan, gpu_table, peer_wheels
from benchmarks.examination import code_digest, now
from benchmarks.gpu_cells import BEST, CORE, HAND, METHODS, DType, Ledger, Run
from benchmarks.gpu_jobs import Workplace
from benchmarks.gpu_models import real_models
from benchmarks.gpu_plan import Job, Pace
from benchmarks.gpu_race import TOLERANCES
from benchmarks.gpu_steps import OutOfTime, StepFailed
from benchmarks.slots import Kind, side_by_side
from benchmarks.texts import without_folders
from superopt.runtime.deployment import Target
from superopt.runtime.facts import device_facts
from superopt.runtime.target import resolve_target

HERE = Path(__file__).parent
PACKAGES = ("onnx", "torch", "torchvision", "transformers", "triton")
MARGIN = 10.0  # seconds kept for the end
STARTING = 1.0  # seconds that a race takes beside its own, which waits with all that it needs


def parse(words: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """Our own options, and those after `--`."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--time-limit", type=float, default=float("inf"), metavar="SECONDS", help="stop before that")
    parser.add_argument("--resume", type=Path, action="append", default=[], metavar="FILE", help="cells known already")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "gpu.json", metavar="FILE")
    parser.add_argument("--only", type=regex, default="", metavar="REGEX", help="only networks whose name matches")
    parser.add_argument("--settings", type=settings, default=gpu_plan.SETTINGS, metavar="fp32-b1,…")
    parser.add_argument("--methods", type=methods, default=(), metavar="NAME,…", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--budget", type=float, default=20.0, metavar="SECONDS", help="of superopt optimize")
    parser.add_argument("--timing", type=float, default=8.0, metavar="SECONDS", help="for one interleaved run")
    parser.add_argument("--stale", action="store_true", help="keep superopt's cells of another state of its code")
    parser.add_argument(
        "--again",
        type=regex,
        default="",
        metavar="REGEX",
        help="jobs as --list tells them, measured again though they are known; the old cells stay until then",
    )
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="networks made at once, before any timing")
    parser.add_argument(
        "--side-by-side", type=int, default=1, metavar="N", help="jobs of superopt at once, taking turns to measure"
    )
    parser.add_argument(
        "--others-at-once",
        type=int,
        default=2,
        metavar="N",
        help="jobs of all others, beside those of superopt where these are several",
    )
    parser.add_argument(
        "--weight", type=int, default=1, metavar="N", help="cores of a job of superopt for one of another's"
    )
    parser.add_argument("--work", type=Path, default=HERE / ".cache" / "gpu", metavar="DIR", help="files on the way")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="wheels of the other optimizers (peer_wheels.py)")
    parser.add_argument("--list", action="store_true", help="say what would be done, and stop")
    return parser.parse_args(words[:cut]), tuple(words[cut + 1 :])


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: no regular expression: {error}") from None
    return text


def settings(text: str) -> tuple[tuple[DType, int], ...]:
    known: dict[str, tuple[DType, int]] = {
        f"{dtype}-b{batch}": (dtype, batch) for dtype, batch in gpu_plan.ALL_SETTINGS
    }
    if unknown := [word for word in text.split(",") if word not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    return tuple(known[word] for word in text.split(","))


def methods(text: str) -> tuple[str, ...]:
    if unknown := [word for word in text.split(",") if word not in METHODS]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(METHODS)}")
    return tuple(text.split(","))


def this_run(command: str, target: Target, code: str, peers: dict[str, str], extra: Sequence[str]) -> Run:
    device = device_facts(target, 0)
    found = {"python": platform.python_version(), "onnxruntime": _version("onnxruntime-gpu") or _version("onnxruntime")}
    found |= {package: _version(package) for package in PACKAGES} | peers
    notes = [
        "TF32 is on: onnxruntime's default, and torch.set_float32_matmul_precision('high')",
        "answers against the original's on the CPU, relative error at most "
        + ", ".join(f"{error:g} in {dtype}" for dtype, error in TOLERANCES.items()),
    ]
    versions = {package: v for package, v in found.items() if v}
    notes += [f"superopt optimize {shlex.join(extra)}"] if extra else []
    return Run(
        command=command, date=now(), device=device.name, driver=device.driver, versions=versions, code=code, notes=notes
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def prepare(place: Workplace, jobs: Sequence[Job], workers: int) -> None:
    """Makes the networks of these jobs, several at once: nothing is timed meanwhile."""

    def make(job: Job) -> None:
        try:
            place.made(job.place)
        except (StepFailed, OutOfTime):
            return  # the job itself will say so

    wanted = list({job.place: job for job in jobs}.values())
    with ThreadPoolExecutor(max(1, workers)) as pool:
        list(pool.map(make, wanted))


def measure(place: Workplace, ledger: Ledger, planned: Sequence[Job], pace: Pace, weight: int = 1) -> None:
    """Those that no longer fit are left for another time. Models are optimized and compiled side by side, where that is
    asked for, until there is no room for more of them; what the table shows is timed when nothing else runs."""
    todo = list(planned)
    while place.beside > 1 and todo:
        untried = [job for job in todo if job.methods != (HAND,) and not place.has_failed(job)]
        work_ahead(place, untried, pace, weight)
        ready = sorted(
            (job for job in todo if place.is_ahead(job)), key=lambda job: job.methods != CORE
        )  # took longest
        done = [*ready, *(job for job in todo if place.has_failed(job) and not place.has_been_slow(job))]
        for job in done:
            finish(place, ledger, job)
        todo = [job for job in todo if job not in done]
        if not ready:
            break
    for job in todo:
        place.forget(job)
        started = time.monotonic()
        if pace.fits(job, place.left()) and finish(place, ledger, job):
            pace.took(job, time.monotonic() - started)


def finish(place: Workplace, ledger: Ledger, job: Job) -> bool:
    """Its cells, if there is time for them."""
    try:
        cells = place.cells(job)
    except OutOfTime:
        return False
    ledger.add(*cells)
    said = ", ".join(f"{c.method} {gpu_table.microseconds(c)} µs {c.status} {c.detail}".rstrip() for c in cells)
    left = f"{place.left():5.0f} s left"
    print(f"{left}  {job.model} {job.dtype} b{job.batch}: {said}", file=sys.stderr, flush=True)
    return True


def work_ahead(place: Workplace, planned: Sequence[Job], pace: Pace, weight: int = 1) -> None:
    """As many as leave time for their races, and room for those that wait."""
    writing = threading.Lock()

    def do(job: Job) -> None:
        race = place.timing + STARTING
        with writing:
            if not pace.fits(job, place.left() - race) or place.room.is_full:
                return
            place.reserved += race
        started = time.monotonic()
        with suppress(OutOfTime):
            place.work_ahead(job)
        with writing:
            did = place.steps_of(job.place)
            if place.is_ahead(job):
                pace.took(job, time.monotonic() - started)
                print(f"{place.left():5.0f} s left  {job.text}: ready to be timed ({did})", file=sys.stderr, flush=True)
            else:
                place.reserved -= race

    mine = [job for job in planned if job.methods == CORE]
    theirs = [job for job in planned if job.methods != CORE]
    kinds = (Kind(mine, place.beside, weight), Kind(theirs, place.others))
    side_by_side([kind for kind in kinds if kind.tasks], do)
    place.reserved = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    started = time.monotonic()
    words = sys.argv[1:] if arguments is None else list(arguments)
    given, extra = parse(words)
    code = code_digest()
    real = [name for name in real_models() if name]
    planned = gpu_plan.jobs(real, given.only, given.settings, given.methods)
    if given.list:
        print("\n".join(job.text for job in planned))
        return 0
    target = resolve_target(given.target)
    site = peer_wheels.unpacked(given.peers, given.work / "peers") if given.peers else None
    command = shlex.join(["python", "benchmarks/gpu.py", *(without_folders(os.path.expandvars(w)) for w in words)])
    run = this_run(command, target, code, peer_wheels.versions(given.peers) if given.peers else {}, extra)
    ledger = Ledger.opened(given.out, given.resume, run)
    until = started + given.time_limit - MARGIN
    place = Workplace(
        given.work.resolve(), target, given.budget, given.timing, code, until, site, extra,
        beside=given.side_by_side, others=given.others_at_once,
    )  # fmt: skip
    place.best.update({c.place: c.options for c in ledger.cells.values() if c.method == BEST})
    pace = Pace()
    todo = list(gpu_plan.left(planned, lambda key: ledger.is_done(key, code, given.stale), given.again))
    print(f"{len(todo)} jobs of {len(planned)} to do", file=sys.stderr, flush=True)
    if place.beside == 1:
        prepare(place, pace.affordable(todo, place.left()), given.workers)
    try:
        measure(place, ledger, todo, pace, given.weight)
    finally:
        place.room.dismiss()
    ledger.save()
    print("times over superopt's: above 1 superopt is faster, ! slower beyond noise")
    print(gpu_table.table(ledger.cells))
    for line in (*gpu_table.lost(ledger.cells), *gpu_table.troubles(ledger.cells)):
        print(line)
    remaining = list(gpu_plan.left(planned, lambda key: ledger.is_done(key, code, given.stale), given.again))
    print(f"{len(remaining)} jobs left" + (f", next: {remaining[0].text}" if remaining else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
