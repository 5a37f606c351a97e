"""Claims: one worker for each job, fair turns, and one end for each job whatever dies in between."""

from __future__ import annotations

import threading
import time

import pytest

from server import events, tallies
from server.claims import Claim
from server.records import Job, files_of_result
from server.stages import Reached
from tests.server.conftest import MakeWorld
from tests.server.world import TARGETS, World, sha256

pytestmark = pytest.mark.unit

PROBLEM = {"type": "about:blank", "title": "Bad model", "status": 422, "detail": "is empty"}


def overdue(make_world: MakeWorld, attempts: int = 3) -> World:
    """Every lease has run out as soon as it is given."""
    return make_world(lease=-1.0, attempts=attempts)


def test_the_life_of_a_job(world: World) -> None:
    job = world.submit()
    claim = world.claim("w")
    running = world.find(job)
    assert (running.state, running.worker, running.attempts) == ("running", "w", 1)
    assert [f.name for f in claim.files] == ["model.onnx"]
    assert world.claims.tell(claim, Reached("timing", "1 of 2", 0.5, 1.3, "predicted"))
    told = world.find(job)
    assert (told.stage, told.detail, told.progress) == ("timing", "1 of 2", 0.5)
    assert (told.speedup, told.basis) == (1.3, "predicted")
    assert world.claims.holds(claim)
    assert world.claims.complete(claim, world.outcome(b"faster"))
    done = world.find(job)
    assert (done.state, done.progress, done.speedup, done.cached, done.lease) == ("done", 1.0, 1.5, False, None)
    assert done.basis == "measured"
    assert done.result is not None
    with world.database.read() as connection:
        files = {f.name: f.digest for f in files_of_result(connection, done.result)}
        numbers = [e.number for e in events.after(connection, job.id, 0)]
        since = [e.data.get("state") for e in events.after(connection, job.id, 2)]
        counts = tallies.counted(connection)
    assert files == {"model.onnx": sha256(b"faster"), "report.json": sha256(b"{}")}
    assert numbers == [1, 2, 3, 4]
    assert since == [None, "done"]
    assert counts["jobs"] == [({"state": "done"}, 1.0)]
    assert counts["stage_seconds_bucket"] == [({"stage": "timing", "le": "2.5"}, 1.0)]


def test_an_ended_job_takes_no_second_answer(world: World) -> None:
    job = world.submit()
    claim = world.claim()
    assert world.claims.fail(claim, PROBLEM)
    assert world.find(job).error == PROBLEM
    ended = world.find(job)
    assert not world.claims.complete(claim, world.outcome())
    assert not world.claims.fail(claim, PROBLEM)
    assert not world.claims.release(claim)
    assert not world.claims.renew(claim)
    assert not world.claims.tell(claim, Reached("timing"))
    assert world.find(job) == ended


def test_a_canceled_job_is_lost_to_its_worker(world: World) -> None:
    job = world.submit()
    claim = world.claim()
    world.jobs.cancel("a", job.id)
    assert not world.claims.holds(claim)
    assert not world.claims.complete(claim, world.outcome())
    assert world.find(job).state == "canceled"


def test_the_job_of_a_dead_worker_is_done_by_another(make_world: MakeWorld) -> None:
    world = overdue(make_world)
    job = world.submit()
    first = world.claim("slow")
    assert world.claims.sweep() == 1
    assert world.find(job).state == "queued"
    second = world.claim("quick")
    assert second.fence > first.fence
    assert not world.claims.complete(first, world.outcome(b"slow"))
    assert not world.claims.fail(first, PROBLEM)
    assert world.claims.complete(second, world.outcome(b"quick"))
    assert not world.claims.complete(first, world.outcome(b"slow"))
    done = world.find(job)
    assert done.result is not None
    with world.database.read() as connection:
        assert files_of_result(connection, done.result)[0].digest == sha256(b"quick")


def test_a_lease_that_is_renewed_does_not_run_out(make_world: MakeWorld) -> None:
    world = make_world(lease=1.2)  # so long that a busy machine renews it in time
    world.submit()
    claim = world.claim()
    for _ in range(4):
        time.sleep(0.35)
        assert world.claims.renew(claim)
        assert world.claims.sweep() == 0
    time.sleep(1.3)
    assert world.claims.sweep() == 1
    assert not world.claims.renew(claim)


def test_a_job_that_workers_die_of_fails_in_the_end(make_world: MakeWorld) -> None:
    world = overdue(make_world, attempts=2)
    job = world.submit()
    for _ in range(2):
        world.claims.tell(world.claim(), Reached("loading"))
        world.claims.sweep()
    failed = world.find(job)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error["detail"] == "2 workers died while they worked on it, the last one while loading"
    assert world.claims.claim("w", TARGETS) is None


def test_a_job_given_back_keeps_its_place_and_its_attempts(world: World) -> None:
    first, second = world.submit(b"1"), world.submit(b"2")
    claim = world.claim()
    assert claim.job.id == first.id
    assert world.claims.release(claim)
    assert world.find(first).attempts == 0
    assert world.claim().job.id == first.id
    assert world.claim().job.id == second.id


def test_tenants_take_turns(world: World) -> None:
    order = [world.submit(bytes([i]), t) for i, t in enumerate("aaaabbc")]
    names = {j.id: j.tenant for j in order}
    served: list[str] = []
    while (claim := world.claims.claim("w", TARGETS)) is not None:
        served.append(names[claim.job.id])
        world.claims.complete(claim, world.outcome(claim.job.id.encode()))
    assert "".join(served) == "abcabaa"


def test_the_tenant_with_fewer_jobs_under_way_comes_first(world: World) -> None:
    for i, tenant in enumerate("aab"):
        world.submit(bytes([i]), tenant)
    assert [world.claim(str(i)).job.tenant for i in range(3)] == ["a", "b", "a"]


def test_a_worker_takes_only_what_it_serves(world: World) -> None:
    world.submit(target="cuda")
    assert world.claims.claim("w", TARGETS) is None
    assert world.claims.claim("w", {"cuda": "gpu"}) is not None


def test_a_job_that_waited_for_an_equal_one_gets_its_answer(world: World) -> None:
    first, second, third = world.submit(), world.submit(tenant="b"), world.submit(b"other")
    world.claims.complete(world.claim(), world.outcome())
    claim = world.claim()
    assert claim.job.id == third.id
    done = world.find(second)
    assert (done.state, done.cached, done.result) == ("done", True, world.find(first).result)


def test_equal_jobs_under_way_end_with_one_answer(world: World) -> None:
    jobs = [world.submit(), world.submit(tenant="b")]
    claims = [world.claim("1"), world.claim("2")]
    for claim in claims:
        assert world.claims.complete(claim, world.outcome(claim.job.id.encode()))
    ended = [world.find(j) for j in jobs]
    assert ended[0].result == ended[1].result
    assert [j.cached for j in ended] == [False, True]


def test_a_job_that_was_stopped_answers_for_itself_alone(world: World) -> None:
    world.submit()
    again = world.submit()
    world.claims.complete(world.claim(), world.outcome(whole=False))
    assert world.claim().job.id == again.id


def test_many_workers_never_share_a_job(world: World) -> None:
    for i in range(30):
        world.submit(bytes([i]), tenant="abc"[i % 3])
    claims: list[Claim] = []

    def work(name: str) -> None:
        while (claim := world.claims.claim(name, TARGETS)) is not None:
            claims.append(claim)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claims) == len({c.job.id for c in claims}) == 30


def test_events_are_numbered_without_a_gap(world: World) -> None:
    job: Job = world.submit()
    claim = world.claim()
    threads = [
        threading.Thread(target=lambda: [world.claims.tell(claim, Reached("s")) for _ in range(10)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with world.database.read() as connection:
        found = events.after(connection, job.id, 0)
        assert [e.number for e in found] == list(range(1, 43))
        assert events.latest(connection, job.id, 3) == found[-3:]
    assert world.find(job).last_event == 42
