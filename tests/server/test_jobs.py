"""Jobs as clients see them: handed in once, seen by their owner alone, in a queue that has an end."""

from __future__ import annotations

import pytest

from server import events
from server.jobs import Room
from server.problems import Problem
from server.records import Job
from tests.server.conftest import MakeWorld
from tests.server.world import TARGETS, World

pytestmark = pytest.mark.unit


def refusal(world: World, tenant: str, id: str) -> int:
    with pytest.raises(Problem) as refused:
        world.jobs.find(tenant, id)
    return refused.value.status


def states(world: World, job: Job) -> list[str]:
    with world.database.read() as connection:
        return [e.data["state"] for e in events.after(connection, job.id, 0) if e.kind == "state"]


def test_a_job_waits_in_the_queue(world: World) -> None:
    job = world.submit(budget=1.0)
    assert (job.state, job.attempts, job.options, job.ended) == ("queued", 0, {"budget": 1.0}, None)
    assert world.find(job) == job
    assert states(world, job) == ["queued"]


def test_somebody_elses_job_is_no_job(world: World) -> None:
    job = world.submit(tenant="a")
    assert refusal(world, "b", job.id) == 404
    assert refusal(world, "a", "0" * 32) == 404
    for tenant in ("b", "c"):
        with pytest.raises(Problem, match="no such job"):
            world.jobs.cancel(tenant, job.id)
    assert world.jobs.latest("b", 10) == []
    assert world.find(job).state == "queued"


def test_own_jobs_are_listed_newest_first_in_pages(world: World) -> None:
    made = [world.submit(bytes([i])) for i in range(5)]
    ids = [j.id for j in reversed(made)]
    first = [j.id for j in world.jobs.latest("a", 2)]
    second = [j.id for j in world.jobs.latest("a", 2, before=first[-1])]
    third = [j.id for j in world.jobs.latest("a", 2, before=second[-1])]
    assert [*first, *second, *third] == ids


def test_the_same_key_is_the_same_job(world: World) -> None:
    job = world.submit(key="k")
    assert world.submit(key="k").id == job.id
    assert world.submit(key="k", tenant="b").id != job.id, "keys of tenants have nothing to do with each other"
    assert world.submit(key="l").id != job.id
    for other in ({"model": b"other"}, {"budget": 2.0}):
        with pytest.raises(Problem, match="used for another model") as refused:
            world.submit(key="k", **other)  # pyright: ignore[reportArgumentType]
        assert refused.value.status == 422


def test_the_queue_has_an_end_and_says_when_to_come_back(make_world: MakeWorld) -> None:
    world = make_world(room=Room(all=3, tenant=2))
    jobs = [world.submit(b"1", "a"), world.submit(b"2", "a")]
    with pytest.raises(Problem, match="2 jobs of yours are waiting already") as refused:
        world.submit(b"3", "a")
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    world.submit(b"3", "b")
    with pytest.raises(Problem, match="3 jobs are waiting already"):
        world.submit(b"4", "c")
    with pytest.raises(Problem, match="3 jobs are waiting already"):
        world.jobs.need_room("c")
    world.jobs.cancel("a", jobs[0].id)
    world.jobs.need_room("c")
    assert world.submit(b"4", "c").state == "queued"


def test_asked_again_under_its_key_a_job_needs_no_room(make_world: MakeWorld) -> None:
    world = make_world(room=Room(all=1, tenant=1))
    assert world.submit(key="k").id == world.submit(key="k").id


def test_a_known_answer_needs_no_queue_and_no_worker(make_world: MakeWorld) -> None:
    world = make_world(room=Room(all=1, tenant=1))
    world.fleet.register("w", "cpu", TARGETS, {})
    first = world.submit(seed=1)
    world.claims.complete(world.claim(), world.outcome())
    waiting = world.submit(seed=2)
    again = world.submit(tenant="b", seed=1)
    assert (again.state, again.cached, again.result, again.speedup) == ("done", True, world.find(first).result, 1.5)
    assert states(world, again) == ["queued", "done"]
    assert world.find(waiting).state == "queued"


def test_an_answer_of_another_device_or_rule_set_is_none(world: World) -> None:
    world.submit()
    world.claims.complete(world.claim(), world.outcome())
    assert world.submit().state == "queued", "no worker is there to say what device it would run on"
    world.fleet.register("w", "cpu", {"cpu": "other rules"}, {})
    assert world.submit().state == "queued"
    world.fleet.register("v", "cpu", TARGETS, {})
    assert world.submit().state == "done"
    assert world.submit(seed=3).state == "queued"
    assert world.submit(model=b"other").state == "queued"


def test_a_waiting_job_is_canceled_at_once(world: World) -> None:
    job = world.submit()
    canceled = world.jobs.cancel("a", job.id)
    assert canceled is not None
    assert (canceled.state, canceled.ended is not None) == ("canceled", True)
    assert world.claims.claim("w", TARGETS) is None
    assert states(world, job) == ["queued", "canceled"]


def test_an_ended_job_is_given_up_with_its_files(world: World) -> None:
    job = world.submit(b"secret")
    world.claims.complete(world.claim(), world.outcome(b"faster secret"))
    digests = {f.digest for f in (world.keep(b"secret"), world.keep(b"faster secret"))}
    assert world.jobs.cancel("a", job.id) is None
    assert refusal(world, "a", job.id) == 410
    world.blobs.collect(grace=-1.0)
    assert not any(world.blobs.store.has(d) for d in digests)


def test_a_result_that_another_job_has_is_kept(world: World) -> None:
    world.fleet.register("w", "cpu", TARGETS, {})
    first = world.submit()
    world.claims.complete(world.claim(), world.outcome(b"faster"))
    second = world.submit(tenant="b")
    world.jobs.cancel("a", first.id)
    world.blobs.collect(grace=-1.0)
    assert world.find(second).result is not None
    assert world.blobs.store.has(world.keep(b"faster").digest)
