"""What one job costs the service apart from the work itself: statements and CPU time of the database and of the API.

    python benchmarks/capacity.py [--save] [--jobs N] [--database URL]

Nothing is optimized here: jobs are handed in over HTTP, claimed, told of and ended as workers do it. CPU time is
counted, not time: it is the same on a machine that does other things too. Without --database it is SQLite in a
temporary folder. The database's CPU time is counted where its processes are on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import event, text

from server.blobs import Blobs
from server.claims import Claim, Claims, Outcome
from server.database import Database, open_database
from server.fleet import Fleet
from server.records import MODEL, REPORT, File
from server.settings import Settings, read_settings
from server.spool import Allowance, Sink
from server.stages import Reached
from server.store import open_store
from superopt.runtime.probe import relu_model
from superopt.version import __version__

RESULT = Path(__file__).parent / "results" / "capacity.txt"
OCTETS = {"Content-Type": "application/octet-stream"}
TELLS = 60
"""Of a job that takes a minute: what it does is told once a second."""
LARGE = 32 << 20
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a job costs the service.")
    parser.add_argument("--save", action="store_true", help=f"add the numbers to {RESULT}")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--database", default="", help="URL; empty = SQLite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="superopt-capacity-") as folder:
        room = {"queue": 10**6, "tenant_queue": 10**6}
        where = {"data": folder, "database": given.database, "port": 0, "role": "api"}
        settings = read_settings(where | room, environment={})
        lines = [*_machine(settings), *measure(settings, given.jobs)]
    print(*lines, sep="\n")
    if given.save:
        before = RESULT.read_text() + "\n" if RESULT.exists() else ""
        RESULT.write_text(before + "\n".join(lines) + "\n")


def measure(settings: Settings, count: int) -> list[str]:
    database = open_database(settings.database_url)
    meter = Meter(database)
    shop = Shop(settings, database)
    empty = _bytes(database)
    with api(settings) as (http, pid):
        ids = [_post(http, number) for number in range(3)]  # what is done once is done
        lines = [meter.row("POST /v1/jobs, a new model", count, lambda n: ids.append(_post(http, n + 3)), pid)]
        lines.append(meter.row("POST again under its key", count, lambda n: _post(http, n + 3), pid))
        lines.append(meter.row("GET /v1/jobs/{id}", count, lambda n: http.get(f"/v1/jobs/{ids[n]}"), pid))
        lines.append(meter.row("GET /v1/jobs, 50 of them", count // 4, lambda n: http.get("/v1/jobs"), pid))
        claims: list[Claim] = []
        lines.append(meter.row("claim", count, lambda n: claims.append(shop.claim(n))))
        lines.append(meter.row("look whether it is still ours", count, lambda n: shop.claims.holds(claims[n])))
        lines.append(meter.row("renew a lease", count, lambda n: shop.claims.renew(claims[n])))
        lines.append(meter.row("tell a stage", count * TELLS, lambda n: shop.tell(claims[n // TELLS], n)))
        lines.append(meter.row("keep two files and complete", count, lambda n: shop.complete(claims[n])))
        lines.append(meter.row("GET /v1/jobs/{id}/model", count, lambda n: http.get(f"/v1/jobs/{ids[n]}/model"), pid))
        grown = (_bytes(database) - empty) / count
        size = f"{LARGE >> 20} MiB"
        posted: list[str] = []
        lines.append(meter.row(f"POST of {size}", 5, lambda n: posted.append(_post(http, -1 - n, LARGE)), pid))
        while (claim := shop.claim(1)).job.id != posted[0]:
            pass
        shop.complete(claim, LARGE)
        lines.append(meter.row(f"GET of {size}", 5, lambda _: http.get(f"/v1/jobs/{posted[0]}/model"), pid))
    database.close()
    return [Meter.HEAD, *lines, f"bytes in the database for each job that told {TELLS} stages: {grown:,.0f}"]


class Meter:
    HEAD = f"{'':34s} {'statements':>10s} {'commits':>8s} {'API ms':>8s} {'database ms':>12s} {'caller ms':>10s}"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._counts: Counter[str] = Counter()
        event.listen(database.engine, "before_cursor_execute", lambda *_: self._counts.update(["statements"]))
        event.listen(database.engine, "commit", lambda *_: self._counts.update(["commits"]))

    def row(self, name: str, count: int, act: Callable[[int], Any], pid: int | None = None) -> str:
        """CPU milliseconds of each; statements where they are made in this process."""
        self._counts.clear()
        before = (_cpu(pid), self._database_cpu(), time.process_time())
        for number in range(count):
            act(number)
        after = (_cpu(pid), self._database_cpu(), time.process_time())
        api, server, own = (1000 * (b - a) / count for a, b in zip(before, after, strict=True))
        made = [f"{self._counts[kind] / count:.1f}" if pid is None else "" for kind in ("statements", "commits")]
        shown = "" if self._database.is_sqlite else f"{server:.2f}"
        return f"{name:34s} {made[0]:>10s} {made[1]:>8s} {f'{api:.2f}' if pid else '':>8s} {shown:>12s} {own:10.2f}"

    def _database_cpu(self) -> float:
        """Of the server and all its processes, where they are here."""
        if self._database.is_sqlite:
            return 0.0
        with self._database.engine.connect() as connection:
            backend = int(connection.execute(text("select pg_backend_pid()")).scalar_one())
        try:
            postmaster = int(_stat(backend)[1])
        except OSError:
            return 0.0
        pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
        # A process that ends hands its time to its parent.
        return _cpu(postmaster, ended=True) + sum(_cpu(p) for p in pids if _parent(p) == postmaster)


@dataclass(frozen=True)
class Shop:
    """What a worker has."""

    settings: Settings
    database: Database

    @property
    def claims(self) -> Claims:
        return Claims(self.database, self.settings.lease, self.settings.attempts)

    def claim(self, number: int) -> Claim:
        if number == 0:
            Fleet(self.database, 60.0).register("w", "cpu", {"auto": "f"}, {"rules": 1})
        claim = self.claims.claim("w", {"auto": "f"})
        assert claim is not None
        return claim

    def tell(self, claim: Claim, number: int) -> None:
        self.claims.tell(claim, Reached("timing regions", f"{number} of 60 s, the 12th of 40 candidates", 0.4))

    def complete(self, claim: Claim, size: int = 2000) -> None:
        files = (self._keep(MODEL, os.urandom(size)), self._keep(REPORT, b"{}" + os.urandom(2000)))
        names = ("loading", "rewriting", "calibrating", "searching", "timing regions", "checking", "timing")
        stages = dict.fromkeys(map(str, names), 1.5)
        summary = {"speedup": 1.1, "verdict": "1.1× faster", "returned": "optimized", "device": "cpu"}
        assert self.claims.complete(claim, Outcome(files, summary, True, stages))

    def _keep(self, name: str, content: bytes) -> File:
        sink = Sink(self.settings.folder, Allowance.of(2 * LARGE))
        sink.write(content)
        file = sink.finish()
        Blobs(self.database, open_store(self.settings.store_url)).keep(file)
        return File(name, file.digest, file.size)


@contextmanager
def api(settings: Settings) -> Generator[tuple[httpx.Client, int]]:
    """One API process and somebody who talks to it."""
    environment = {**os.environ, **settings.as_environment(), "PYTHONPATH": os.pathsep.join(sys.path)}
    log = settings.folder / "log"
    with open(log, "w") as noise:
        process = subprocess.Popen([sys.executable, "-m", "superopt", "serve"], env=environment, stderr=noise)
    try:
        while "startup complete" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        lines = {line["message"]: line for line in map(json.loads, log.read_text().splitlines())}
        with httpx.Client(base_url=lines["listening"]["url"], timeout=120.0) as http:
            yield http, lines["started"]["pid"]
    finally:
        process.terminate()
        process.wait()


def _post(http: httpx.Client, number: int, size: int = 0) -> str:
    """A model of a few hundred bytes; with a long documentation, of a given size."""
    told = f"{number}".encode()
    model = relu_model(opset=13, ir_version=7) + b"\x12" + bytes([len(told)]) + told
    if size:
        length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
        model += b"\x32" + length + bytes(size)
    answer = http.post("/v1/jobs", content=model, headers=OCTETS | {"Idempotency-Key": f"{number}"})
    assert answer.status_code in (200, 202), answer.text
    return answer.json()["id"]


def _bytes(database: Database) -> int:
    """Without what the next jobs will use again."""
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("pragma wal_checkpoint(truncate)" if database.is_sqlite else "vacuum full"))
    if database.is_sqlite:
        return sum(f.stat().st_size for f in Path(database.url.database or "").parent.glob("*.db*"))
    with database.read() as connection:
        return int(connection.execute(text("select pg_database_size(current_database())")).scalar_one())


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int:
    try:
        return int(_stat(pid)[1])
    except OSError:
        return 0


def _cpu(pid: int | None, ended: bool = False) -> float:
    """Seconds; with those of its children that have `ended`."""
    try:
        fields = _stat(pid) if pid else ["0"] * 20
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if ended else 13])) / TICK


def _machine(settings: Settings) -> list[str]:
    url = Database(settings.database_url).url
    kind = "SQLite" if url.get_backend_name() == "sqlite" else "PostgreSQL"
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, superopt {__version__}"
    return [f"{kind}; {where}; CPU milliseconds of each"]


if __name__ == "__main__":
    main()
