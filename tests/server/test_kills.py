"""kill -9 of the API, of workers and of jobs, at random, while clients work: nothing is lost, nothing changes twice.

The stand-in's answers are random, so that a job that was run twice to two answers would show.
"""

from __future__ import annotations

import hashlib
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import select

from server.database import open_database
from server.tables import idempotency, jobs
from tests.server.processes import Running, kill
from tests.server.shop import OCTETS, settings_for
from tests.server.world import tiny

if TYPE_CHECKING:
    from tests.server.postgres import Postgres

pytestmark = [pytest.mark.unit, pytest.mark.slow]

CLIENTS = 3
SERVICE = [sys.executable, "-P", str(Path(__file__).with_name("stand_in_service.py"))]


@dataclass
class Client:
    """Hands in one job after the other, under a name each, and looks at all of them again and again."""

    url: str
    number: int
    over: threading.Event
    answers: dict[str, str] = field(default_factory=dict[str, str])
    """Digest of the model that came back, by the job's id."""
    keys: dict[str, str] = field(default_factory=dict[str, str])
    wrong: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=300.0) as http:
            count = 0
            while not self.over.is_set():
                count += 1
                key = f"{self.number}-{count}"
                job = self._insist(http, "POST", "/v1/jobs", key)
                if job is None:
                    return
                self.keys[key] = job.json()["id"]
                self._follow(http, job.json()["id"])
                self._look_again(http)

    def settle(self) -> None:
        """After the last kill: everything that was taken must end."""
        with httpx.Client(base_url=self.url, timeout=300.0) as http:
            for id in self.keys.values():
                end = time.monotonic() + 300
                while id not in self.answers and time.monotonic() < end:
                    self._follow(http, id)
            self._look_again(http, everything=True)

    def _follow(self, http: httpx.Client, id: str) -> None:
        answer = self._insist(http, "GET", f"/v1/jobs/{id}", "", {"Prefer": "wait=5"})
        if answer is None:
            return
        job = answer.json()
        if job["state"] == "done":
            self._fetch(http, id)
        elif job["state"] not in ("queued", "running"):
            self.wrong.append(f"{id} ended {job['state']}: {job['error']}")
            self.answers[id] = "none"

    def _fetch(self, http: httpx.Client, id: str) -> None:
        answer = self._insist(http, "GET", f"/v1/jobs/{id}/model")
        if answer is None:
            return
        digest = hashlib.sha256(answer.content).hexdigest()
        if answer.headers["etag"] != f'"{digest}"':
            self.wrong.append(f"{id}: served other bytes than it says")
        if self.answers.setdefault(id, digest) != digest:
            self.wrong.append(f"{id}: ended with two answers")

    def _look_again(self, http: httpx.Client, everything: bool = False) -> None:
        known = list(self.answers)
        for id in known if everything else random.sample(known, min(2, len(known))):
            self._fetch(http, id)

    def _insist(
        self, http: httpx.Client, method: str, path: str, key: str = "", headers: dict[str, str] | None = None
    ) -> httpx.Response | None:
        """The answer, whoever is killed meanwhile; None when it is over and nobody answers."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                if method == "POST":
                    named = OCTETS | {"Idempotency-Key": key}
                    answer = http.post(path, content=tiny(key=key, sleep=0.2), headers=named)
                else:
                    answer = http.get(path, headers=headers)
                if answer.status_code < 400:
                    return answer
                self.wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
                return None
            except httpx.TransportError:
                time.sleep(0.05)
        self.wrong.append(f"{method} {path}: no answer")
        return None


def kill_one(service: Running, victim: str, rng: random.Random) -> bool:
    """Mostly when it is at work; now and then while it starts."""
    early = victim != "runner" and rng.random() < 0.1
    post = "worker" if victim == "runner" else victim
    end = time.monotonic() + 60
    while not early and not service.is_up(post) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(rng.random() * rng.choice((0.1, 1.0, 2.0)))
    while victim == "runner" and service.runner() is None and time.monotonic() < end:
        time.sleep(0.01)
    pid = service.runner() if victim == "runner" else service.pid(victim)
    if pid is None:
        return False
    was_up = service.is_up(post)
    if not kill(pid):
        return False
    if victim != "runner" and not was_up:
        service.killed_early[post] += 1
    return True


def rampage(folder: Path, kills: int, seed: int, **more: Any) -> None:
    rng = random.Random(seed)
    settings = settings_for(folder, port=0, devices="cpu", attempts=10_000, lease=3.0, **more)
    over = threading.Event()
    with Running(settings, SERVICE) as service:
        clients = [Client(service.url, n, over) for n in range(CLIENTS)]
        threads = [threading.Thread(target=c.run) for c in clients]
        for thread in threads:
            thread.start()
        killed = {"api": 0, "worker": 0, "runner": 0}
        while sum(killed.values()) < kills and any(t.is_alive() for t in threads):
            victim = rng.choice(tuple(killed))
            if kill_one(service, victim, rng):
                killed[victim] += 1
        over.set()
        for thread in threads:
            thread.join(600)
        for client in clients:
            client.settle()
    assert [w for c in clients for w in c.wrong] == []
    taken = {id for c in clients for id in c.keys.values()}
    assert len(taken) == sum(len(c.keys) for c in clients) > 0
    assert {id for c in clients for id in c.answers} == taken
    database = open_database(settings.database_url)
    with database.read() as connection:
        states = {row[0]: row[1] for row in connection.execute(select(jobs.c.id, jobs.c.state))}
        named = set(connection.execute(select(idempotency.c.job)).scalars())
    database.close()
    assert set(states) == named >= taken
    assert {states[id] for id in taken} == {"done"}
    print(f"killed {killed}, {len(taken)} jobs")
    assert len(taken) >= kills // 4, "too few jobs for the kills to mean much"


@pytest.mark.thorough
def test_a_few_kills(tmp_path: Path) -> None:
    rampage(tmp_path, kills=6, seed=1)


@pytest.mark.thorough
def test_a_hundred_kills(tmp_path: Path) -> None:
    rampage(tmp_path, kills=100, seed=2)


@pytest.mark.thorough
def test_kills_over_postgresql(tmp_path: Path, postgres: Postgres, migrated: str) -> None:
    rampage(tmp_path, kills=20, seed=3, database=postgres.url(postgres.create(like=migrated)))
