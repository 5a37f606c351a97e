"""The service under uploads gone wrong: what it answers, whether anything breaks, what is left behind.

    python benchmarks/fuzz_service.py [--uploads N] [--worked N] [--seed N] [--save]

First the API alone, which receives, looks at and stores what comes; then a worker as well, which has the real engine
work on those that were taken. Both are `superopt serve` as people start it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fuzzing import Upload, uploads
from benchmarks.serving import Serving, open_files, resident_mib, slope, wait_for
from server.blobs import Blobs
from server.database import open_database
from server.store import open_store
from server.tables import blobs, job_files, result_files
from superopt.runtime.cores import usable_cores
from superopt.version import __version__

RESULT = Path(__file__).parent / "results" / "service-fuzz.txt"
CLIENTS = 4
ROOM = 10_000_000
WAIT = 0.1
"""Seconds that a request is kept waiting for its job, whatever it asks for."""
QUICK = "budget=0.1&threads=1&target=cpu&options=fixed&time_limit=120&memory_limit=2000"
ALLOWED = {200, 202, 303, 400, 404, 405, 409, 413, 415, 422}


@dataclass
class Answers:
    statuses: Counter[int] = field(default_factory=Counter[int])
    wrong: list[str] = field(default_factory=list[str])
    taken: list[str] = field(default_factory=list[str])
    """Ids of the jobs that were made."""

    def hear(self, upload: Upload, answer: httpx.Response) -> None:
        self.statuses[answer.status_code] += 1
        kind = answer.headers.get("content-type", "")
        if answer.status_code not in ALLOWED or (answer.status_code >= 400 and kind != "application/problem+json"):
            self.wrong.append(f"{answer.status_code} {kind} for {upload.kind}: {answer.text[:200]}")
        if answer.status_code in (200, 202, 303):
            self.taken.append(answer.headers.get("location", "").rpartition("/")[2])

    @property
    def table(self) -> str:
        return ", ".join(f"{count} × {status}" for status, count in sorted(self.statuses.items()))


async def send(url: str, wanted: Iterator[Upload], clients: int, answers: Answers) -> None:
    async def client() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=120.0) as http:
            for upload in wanted:
                headers = {"Prefer": "wait=0", **upload.headers}
                try:
                    answers.hear(upload, await http.post(upload.path, content=upload.body, headers=headers))
                except httpx.TransportError as error:
                    answers.statuses[0] += 1
                    answers.wrong.append(f"{type(error).__name__} for {upload.kind} ({len(upload.body)} bytes)")

    await asyncio.gather(*(client() for _ in range(clients)))


def left_over(folder: Path) -> list[str]:
    """What lies about that nobody refers to, or is referred to and does not lie there, once the service has swept."""
    database = open_database(f"sqlite:///{folder / 'superopt.db'}")
    try:
        Blobs(database, open_store(str(folder / "store"))).collect(grace=-1.0)
        with database.read() as connection:
            rows = set(connection.execute(select(blobs.c.digest)).scalars())
            used = set(connection.execute(select(job_files.c.digest).union(select(result_files.c.digest))).scalars())
    finally:
        database.close()
    stored = {f"{path.parent.name}{path.name}" for path in (folder / "store").glob("*/*")}
    found = [f"spool: {path.name}" for path in (folder / "spool").iterdir()]
    found += [f"work: {path.name}" for path in folder.glob("work/*/*")]
    found += [f"store, without a row: {d}" for d in stored - rows]
    found += [f"row, without a file: {d}" for d in rows - stored]
    return found + [f"a job's, without a row: {d}" for d in used - rows]


def api_alone(count: int, seed: int) -> tuple[list[str], bool]:
    with tempfile.TemporaryDirectory(prefix="superopt-fuzz-") as name:
        folder = Path(name)
        with Serving(folder, role="api", queue=ROOM, tenant_queue=ROOM, wait_limit=WAIT) as serving:
            answers, pid = Answers(), serving.pid("api")
            wanted = uploads(seed)
            asyncio.run(send(serving.url, itertools.islice(wanted, max(1, count // 10)), CLIENTS, answers))
            files, memory, done = open_files(pid), [(0.1 * count, resident_mib(pid))], count // 10
            started = time.monotonic()
            for _ in range(9):
                asyncio.run(send(serving.url, itertools.islice(wanted, count // 10), CLIENTS, answers))
                done += count // 10
                memory.append((float(done), resident_mib(pid)))
            seconds = time.monotonic() - started
            wait_for(lambda: open_files(pid) <= files + CLIENTS, 30.0)
            grown = open_files(pid) - files
            children = list(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        lost = left_over(folder)
        died, sent, trouble = serving.deaths(), sum(answers.statuses.values()), serving.trouble
        grows = 1000 * slope(memory)
        lines = [
            f"API alone: {sent} uploads from seed {seed}, {0.9 * count / seconds:.0f} a second",
            f"  answers: {answers.table}",
            f"  5xx or not as described: {len(answers.wrong)}; processes that died: {died}; in the log: {len(trouble)}",
            f"  left behind: {len(lost)} files or rows, {len(children)} processes, {max(0, grown)} open files",
            f"  memory: {memory[0][1]:.1f} MiB after a tenth, {memory[-1][1]:.1f} at the end, {grows:+.2f} a thousand",
        ]
        shown = [*answers.wrong[:10], *lost[:10], *trouble[:10]]
        return [*lines, *(f"  ! {t}" for t in shown)], not shown and not died and not children


def with_worker(count: int, seed: int) -> tuple[list[str], bool]:
    """Those uploads are sent until so many were taken; what they become is counted."""
    with tempfile.TemporaryDirectory(prefix="superopt-fuzz-") as name:
        folder = Path(name)
        settings = {"devices": "cpu", "queue": ROOM, "tenant_queue": ROOM, "attempts": 2, "wait_limit": WAIT}
        with Serving(folder, **settings) as serving, httpx.Client(base_url=serving.url, timeout=120.0) as http:
            answers = Answers()
            wanted = (u for u in uploads(seed, QUICK) if QUICK in u.path)
            started = time.monotonic()
            asyncio.run(send(serving.url, _until_taken(wanted, answers, count), 1, answers))
            ended = [_ended(http, id) for id in dict.fromkeys(answers.taken) if id]
            seconds = time.monotonic() - started
        lost = left_over(folder)
        states = Counter(_fate(job) for job in ended)
        odd = [f"{job['state']}: {job['error']['detail']}" for job in ended if _gave_up(job)]
        died, sent = serving.deaths(), sum(answers.statuses.values())
        lines = [
            f"with a worker: {len(ended)} jobs of {sent} uploads in {seconds:.0f} s",
            *(f"  {count} × {fate}" for fate, count in states.most_common()),
            f"  5xx or not as described: {len(answers.wrong)}; processes of the service that died: {died}",
            f"  jobs given up: {len(odd)}; left behind: {len(lost)} files or rows",
        ]
        shown = [*answers.wrong[:10], *odd[:10], *lost[:10]]
        return [*lines, *(f"  ! {t}" for t in shown)], not shown and not died


def _until_taken(wanted: Iterator[Upload], answers: Answers, count: int) -> Iterator[Upload]:
    while len(set(answers.taken)) < count:
        yield next(wanted)


def _ended(http: httpx.Client, id: str) -> dict[str, Any]:
    while True:
        job = http.get(f"/v1/jobs/{id}").json()
        if job["ended"] is not None:
            return job
        time.sleep(1.0)


def _fate(job: dict[str, Any]) -> str:
    if job["state"] != "done":
        return f"{job['state']}: {job['error']['title']}"
    stopped = job["result"]["stopped"]
    died = "done: its process died or hit a limit, the original came back"
    return died if stopped else f"done: {job['result']['returned']}"


def _gave_up(job: dict[str, Any]) -> bool:
    """A job may fail because of its model, which is 422; not because of the service."""
    return job["state"] not in ("done", "failed") or (job["state"] == "failed" and job["error"]["status"] != 422)


def main() -> int:
    parser = argparse.ArgumentParser(description="The service under uploads gone wrong.")
    parser.add_argument("--uploads", type=int, default=10_000, help="to the API alone")
    parser.add_argument("--worked", type=int, default=300, help="jobs to have done by a real worker")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help=f"write the numbers to {RESULT}")
    given = parser.parse_args()
    machine = (
        f"{platform.machine()}, {usable_cores()} cores, Python {platform.python_version()}, superopt {__version__}"
    )
    lines, fine = [machine], True
    print(machine)
    for what, count in ((api_alone, given.uploads), (with_worker, given.worked)):
        if count:
            found, good = what(count, given.seed)
            lines, fine = [*lines, *found], fine and good
            print(*found, sep="\n", flush=True)
    if given.save:
        RESULT.write_text("\n".join(lines) + "\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
