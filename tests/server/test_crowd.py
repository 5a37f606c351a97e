"""Everybody at once, as several API replicas and many workers are: clients hand in, cancel and look, workers claim,
tell and end, die and are swept, and housekeepers give up what is old. Nothing fails, and each job ends once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from server import events
from server.problems import Problem
from server.records import Job
from server.retention import expire
from server.stages import Reached
from server.tables import jobs, tallies
from tests.server.conftest import MakeWorld
from tests.server.world import TARGETS, World

pytestmark = pytest.mark.unit

JOBS, CLIENTS, WORKERS = 12, 3, 4


class Crowd:
    def __init__(self, make_world: MakeWorld) -> None:
        self._make_world, self._shared = make_world, make_world(attempts=1000)
        self.handed_in = threading.Event()
        self.made: list[Job] = []
        self.ends: list[str] = []
        self.failures: list[BaseException] = []

    def client(self, number: int) -> None:
        world, rng = self._own_connections(), random.Random(number)
        for i in range(JOBS):
            # Every third model is one that the others hand in too.
            model = f"{i}" if i % 3 == 0 else f"{number} {i}"
            job = world.submit(model.encode(), tenant="abc"[number % 3], key=f"{number}-{i}")
            assert world.submit(model.encode(), tenant="abc"[number % 3], key=f"{number}-{i}").id == job.id
            self.made.append(job)
            if rng.random() < 0.2:
                mine = rng.choice([j for j in self.made if j.tenant == job.tenant])
                try:
                    world.jobs.cancel(mine.tenant, mine.id)
                except Problem as problem:
                    if problem.status != 410:
                        raise

    def worker(self, number: int) -> None:
        world, rng = self._own_connections(), random.Random(100 + number)
        while True:
            over = self.handed_in.is_set()
            claim = world.claims.claim(f"w{number}", TARGETS)
            if claim is None:
                if over and not world.claims.sweep():
                    return
                time.sleep(0.01)
                continue
            world.claims.tell(claim, Reached("timing", "1 of 2", 0.5))
            fate = rng.random()
            if fate < 0.15:
                world.claims.abandon(claim)  # it died
            elif fate < 0.25:
                world.claims.release(claim)
            elif fate < 0.35:
                if world.claims.fail(claim, {"detail": "no"}):
                    self.ends.append(claim.job.id)
            else:
                outcome = world.outcome(claim.job.request.encode())
                if world.claims.complete(claim, outcome):
                    self.ends.append(claim.job.id)
                assert not world.claims.complete(claim, outcome)

    def housekeeper(self, _: int) -> None:
        world = self._own_connections()
        while not self.handed_in.wait(0.05):
            world.claims.sweep()
            expire(world.database, world.blobs, retention=3600.0)

    def start(self, act: Callable[[int], None], count: int) -> list[threading.Thread]:
        def guarded(number: int) -> None:
            try:
                act(number)
            except (AssertionError, SQLAlchemyError, Problem) as error:
                self.failures.append(error)

        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def _own_connections(self) -> World:
        """As a process of its own has them. SQLite's writers would spend their time waiting for a turn."""
        return self._shared if self._shared.database.is_sqlite else self._make_world(attempts=1000)


def test_a_crowd_loses_nothing_and_ends_nothing_twice(make_world: MakeWorld) -> None:
    crowd = Crowd(make_world)
    clients = crowd.start(crowd.client, CLIENTS)
    others = [*crowd.start(crowd.worker, WORKERS), *crowd.start(crowd.housekeeper, 1)]
    for thread in clients:
        thread.join(120)
    crowd.handed_in.set()
    for thread in others:
        thread.join(120)
    assert crowd.failures == []
    world = make_world()
    with world.database.read() as connection:
        rows = connection.execute(select(jobs.c.id, jobs.c.state, jobs.c.gone)).all()
        counted = {row.labels: row.value for row in connection.execute(select(tallies).where(tallies.c.name == "jobs"))}
        told = {row.id: events.after(connection, row.id, 0) for row in rows}
    states = {row.id: row.state for row in rows}
    assert len(states) == CLIENTS * JOBS == len({j.id for j in crowd.made})
    assert set(states.values()) <= {"done", "failed", "canceled"}
    assert len(crowd.ends) == len(set(crowd.ends)), "a job ended twice"
    assert Counter(f"state={s}" for s in states.values()) == counted
    for row in rows:
        ends = [e.data["state"] for e in told[row.id] if e.data.get("state") in ("done", "failed", "canceled")]
        assert ends == ([] if row.gone else [row.state])
        assert [e.number for e in told[row.id]] == list(range(1, len(told[row.id]) + 1))
