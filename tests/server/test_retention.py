"""What is no longer kept, and what is."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from server.problems import Problem
from server.records import Job
from server.retention import TOMBSTONES, expire
from server.tables import blobs, jobs, results
from tests.server.world import TARGETS, World

pytestmark = pytest.mark.unit

RETENTION = 100.0


def age(world: World, seconds: float, *made: Job) -> None:
    with world.database.write() as connection:
        ids = [j.id for j in made]
        connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(ended=jobs.c.ended - seconds))
        connection.execute(update(results).values(used=results.c.used - seconds))
        connection.execute(update(blobs).values(touched=0.0))


def finish(world: World, model: bytes) -> Job:
    job = world.submit(model)
    world.claims.complete(world.claim(), world.outcome(b"faster " + model))
    return job


def status(world: World, job: Job) -> int:
    try:
        world.find(job)
    except Problem as problem:
        return problem.status
    return 200


def test_after_its_time_a_job_is_gone_with_its_files(world: World) -> None:
    old, waiting = finish(world, b"old"), world.submit(b"waiting")
    kept = [world.keep(c).digest for c in (b"old", b"faster old", b"waiting")]
    age(world, RETENTION - 10, old)
    assert expire(world.database, world.blobs, RETENTION) == 0
    age(world, 20, old)
    assert expire(world.database, world.blobs, RETENTION) == 1
    assert expire(world.database, world.blobs, RETENTION) == 0
    assert (status(world, old), status(world, waiting)) == (410, 200)
    assert [world.blobs.store.has(d) for d in kept] == [False, False, True]
    assert world.jobs.latest("a", 10) == [waiting]
    age(world, TOMBSTONES * RETENTION, old)
    expire(world.database, world.blobs, RETENTION)
    assert status(world, old) == 404


def test_a_result_in_use_outlives_its_first_job(world: World) -> None:
    world.fleet.register("w", "cpu", TARGETS, {})
    old = finish(world, b"model")
    age(world, RETENTION + 1, old)
    new = world.submit(b"model")
    assert new.cached
    expire(world.database, world.blobs, RETENTION)
    assert (status(world, old), status(world, new)) == (410, 200)
    assert world.blobs.store.has(world.keep(b"faster model").digest)


def test_many_are_given_up_in_one_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.retention.BATCH", 2)
    made = [finish(world, bytes([i])) for i in range(5)]
    age(world, RETENTION + 1, *made)
    assert expire(world.database, world.blobs, RETENTION) == 5
