"""Many clients at once: what the service answers while they post, how quick it stays, what it holds in memory.

    python benchmarks/load.py [--clients N] [--seconds N] [--jobs N] [--save]

An API process with SQLite, a database with so many jobs, and clients that post small models one after the other on
loopback. The queue has room for all, so that every post is work. Meanwhile another process asks for single jobs, and
measures how long that takes; it also does so before, when nobody posts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sqlalchemy import insert

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.serving import Serving, resident_mib, slope
from server.database import open_database
from server.records import MODEL, REPORT
from server.tables import blobs, events, job_files, jobs, result_files, results, tenants
from superopt.options import Options
from superopt.runtime.cores import usable_cores
from superopt.runtime.probe import relu_model
from superopt.version import __version__

RESULT = Path(__file__).parent / "results" / "service-load.txt"
ROOM = 10_000_000
CALM_SECONDS, PAUSE = 5.0, 0.01
WARM = 0.2
"""Share of the time after which memory is looked at."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Many clients at once.")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs that the database holds before")
    parser.add_argument("--save", action="store_true", help=f"write the numbers to {RESULT}")
    parser.add_argument("--ask", nargs=2, metavar=("URL", "IDS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(asyncio.run(ask(given.ask[0], Path(given.ask[1]), given.seconds))))
        return 0
    with tempfile.TemporaryDirectory(prefix="superopt-load-") as name:
        lines, fine = measure(Path(name), given.clients, given.seconds, given.jobs)
    print(*lines, sep="\n")
    if given.save:
        RESULT.write_text("\n".join(lines) + "\n")
    return 0 if fine else 1


def measure(folder: Path, clients: int, seconds: float, count: int) -> tuple[list[str], bool]:
    ids = folder / "ids"
    ids.write_text("\n".join(fill(folder, count)))
    with Serving(folder, role="api", queue=ROOM, tenant_queue=ROOM) as serving:
        calm = _asking(serving.url, ids, CALM_SECONDS)
        calm_times = json.loads(calm.communicate()[0])
        asking = _asking(serving.url, ids, seconds)
        posted = asyncio.run(post_all(serving, clients, seconds))
        loaded_times = json.loads(asking.communicate()[0])
        died = serving.deaths()
    errors = {s: n for s, n in posted.statuses.items() if s not in (202, 429)}
    warm = [(t, m) for t, m in posted.memory if t >= WARM * seconds]
    sent, grows = sum(posted.statuses.values()), slope(warm)
    answers = ", ".join(f"{n} × {s or 'no answer'}" for s, n in sorted(posted.statuses.items()))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("uvicorn", "fastapi", "sqlalchemy"))
    per_post = 1000 * grows / (sent / seconds)
    lines = [
        f"{platform.machine()}, {usable_cores()} cores, Python {platform.python_version()}, superopt {__version__}",
        f"SQLite {sqlite3.sqlite_version}, {libraries}",
        f"{clients} clients post models of {len(_model(0))} bytes for {seconds:.0f} s; {count} jobs before",
        f"  POST /v1/jobs           {sent / seconds:.0f} a second, {_times(posted.times)}",
        f"  answers                 {answers}",
        f"  GET /v1/jobs/{{id}}       nobody posts: {_times(calm_times)}",
        f"                          while they post: {_times(loaded_times)}",
        f"  memory of the API       {warm[0][1]:.1f} MiB, then {warm[-1][1]:.1f}: {60 * grows:+.2f} a minute",
        f"                          {per_post:+.3f} MiB for a thousand posts",
        f"  errors other than 429   {sum(errors.values())}; processes that died {died}",
    ]
    return lines, not errors and not died


def fill(folder: Path, count: int) -> list[str]:
    """Jobs that were done, each with its files, its result and what happened to it."""
    ids = [uuid.uuid4().hex for _ in range(count)]
    options, now = Options().as_json(), time.time()
    summary = {
        "verdict": "faster", "returned": "optimized", "speedup": 1.5, "speedup_interval": {"low": 1.4, "high": 1.6},
        "nodes_before": 3, "nodes_after": 2, "bytes_before": 100, "bytes_after": 90, "seconds_before": 0.1,
        "seconds_after": 0.07, "rewrites": 1, "device": "cpu", "stopped": None,
    }  # fmt: skip
    rows: dict[Any, list[dict[str, Any]]] = {t: [] for t in (blobs, results, result_files, jobs, job_files, events)}
    for k, id in enumerate(ids):
        digest, begun = uuid.uuid4().hex * 2, now - count + k
        rows[blobs].append({"digest": digest, "size": 100, "touched": begun})
        rows[results].append({"key": digest, "created": begun, "used": begun, "summary": summary})
        for name in (MODEL, REPORT):
            rows[result_files].append({"result": digest, "name": name, "digest": digest, "size": 100})
        rows[jobs].append(
            {
                "id": id, "tenant": "local", "state": "done", "request": digest, "target": "cpu", "options": options,
                "created": begun, "queued": begun, "started": begun, "ended": begun + 1, "result": digest,
                "speedup": 1.5, "basis": "measured", "progress": 1.0, "attempts": 1, "fence": 1, "last_event": 20,
            }
        )  # fmt: skip
        rows[job_files].append({"job": id, "name": MODEL, "digest": digest, "size": 100})
        for number in range(1, 21):
            data = {"stage": "timing", "detail": "explore, 3 of at most 20 s", "progress": 0.7}
            rows[events].append({"job": id, "number": number, "time": begun, "kind": "stage", "data": data})
    database = open_database(f"sqlite:///{folder / 'superopt.db'}")
    with database.write() as connection:
        connection.execute(insert(tenants).values(name="local", turn=0.0))
        for table, listed in rows.items():
            connection.execute(insert(table), listed)
    database.close()
    return ids


@dataclass
class Posted:
    statuses: Counter[int] = field(default_factory=Counter[int])
    times: list[float] = field(default_factory=list[float])
    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Seconds since the beginning, MiB."""


async def post_all(serving: Serving, clients: int, seconds: float) -> Posted:
    posted, began, numbers = Posted(), time.monotonic(), iter(range(1 << 60))
    until = began + seconds

    async def client() -> None:
        line = Line(serving.url)
        while time.monotonic() < until:
            model, sent = _model(next(numbers)), time.monotonic()
            status, _ = await line.request("POST", "/v1/jobs", model)
            posted.statuses[status] += 1
            posted.times.append(time.monotonic() - sent)
            if status == 429:
                await asyncio.sleep(0.1)
        line.close()

    async def weigh() -> None:
        while time.monotonic() < until:
            posted.memory.append((time.monotonic() - began, resident_mib(serving.pid("api"))))
            await asyncio.sleep(0.5)

    await asyncio.gather(weigh(), *(client() for _ in range(clients)))
    return posted


class Line:
    """One connection that is kept open; the least that a client can be, so that it costs little beside the service."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and content; 0 where no answer came."""
        try:
            self._open = self._open or await asyncio.open_connection(self._host, self._port)
            reader, writer = self._open
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = int(answer.partition("content-length:")[2].partition("\r\n")[0])
            content = await reader.readexactly(size)
            if "connection: close" in answer:
                self.close()
            return int(answer.split(" ", 2)[1]), content
        except (OSError, ValueError, asyncio.IncompleteReadError):
            self.close()
            return 0, b""

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None


def _asking(url: str, ids: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--ask", url, str(ids), "--seconds", str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


async def ask(url: str, ids: Path, seconds: float) -> list[float]:
    """Seconds that each look at a job took."""
    known, line, until = ids.read_text().split(), Line(url), time.monotonic() + seconds
    times: list[float] = []
    while time.monotonic() < until:
        began = time.monotonic()
        status, content = await line.request("GET", f"/v1/jobs/{random.choice(known)}")
        times.append(time.monotonic() - began)
        if status != 200 or json.loads(content)["state"] != "done":
            raise RuntimeError(f"found {status}: {content[:200]!r}")
        await asyncio.sleep(PAUSE)
    return times


def _model(number: int) -> bytes:
    """Each another, so that none is known already."""
    name = f"load {number:012}".encode()
    return relu_model(opset=13, ir_version=7) + b"\x12" + bytes([len(name)]) + name


def _times(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    at = {name: ordered[min(len(ordered) - 1, int(q * len(ordered)))] for name, q in (("p50", 0.5), ("p99", 0.99))}
    shown = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in at.items())
    return f"{shown}, most {1000 * ordered[-1]:.1f} ms, of {len(ordered)}"


if __name__ == "__main__":
    sys.exit(main())
