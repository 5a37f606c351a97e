"""Shutdown as an operator asks for it, SIGTERM to real processes: running jobs finish or are queued again, clients that
wait are told where to look, nothing is left running."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import httpx
import pytest

from server.database import open_database
from server.fleet import Fleet
from server.jobs import Jobs, Room
from server.records import Job
from server.settings import Settings
from tests.server.processes import Running, is_alive
from tests.server.shop import OCTETS, settings_for, until
from tests.server.test_kills import SERVICE
from tests.server.world import tiny

pytestmark = [pytest.mark.unit, pytest.mark.slow]


def job_after(settings: Settings, id: str) -> Job:
    database = open_database(settings.database_url)
    try:
        return Jobs(database, Fleet(database, settings.lease), Room(1, 1)).find("local", id)
    finally:
        database.close()


@pytest.mark.parametrize(("grace", "sleep", "left"), [(60.0, 1.0, "done"), (0.0, 600.0, "queued")])
def test_a_running_job_finishes_or_is_queued_again(tmp_path: Path, grace: float, sleep: float, left: str) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu", grace=grace, wait_limit=600.0)
    with Running(settings, SERVICE) as running:
        until(lambda: running.is_up("worker") and running.is_up("api"))
        job = httpx.post(f"{running.url}/v1/jobs", content=tiny(sleep=sleep), headers=OCTETS, timeout=600.0).json()
        until(lambda: running.runner() is not None)
        processes = [running.pid("api") or 0, running.pid("worker") or 0, running.runner() or 0]
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(120) == 0
        assert not any(map(is_alive, processes))
    found = job_after(settings, job["id"])
    assert (found.state, found.attempts) == (left, 1 if left == "done" else 0)
    assert not list(tmp_path.glob("work/*/*"))


def test_clients_that_wait_are_let_go(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu", wait_limit=600.0)
    posted: list[httpx.Response] = []
    events: list[str] = []

    def post() -> None:
        url = f"{running.url}/v1/optimize"
        posted.append(httpx.post(url, content=tiny(sleep=600), headers=OCTETS, timeout=300.0))

    def follow(id: str) -> None:
        with httpx.stream("GET", f"{running.url}/v1/jobs/{id}/events", timeout=300.0) as stream:
            events.extend(stream.iter_text())

    with Running(settings, SERVICE) as running:
        until(lambda: running.is_up("worker") and running.is_up("api"))
        posting = threading.Thread(target=post)
        posting.start()
        until(lambda: running.runner() is not None)
        (job,) = httpx.get(f"{running.url}/v1/jobs", timeout=600.0).json()["jobs"]
        following = threading.Thread(target=follow, args=(job["id"],))
        following.start()
        until(lambda: "running" in "".join(events))
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(120) == 0
        posting.join(60)
        following.join(60)
    assert not following.is_alive()
    assert [(a.status_code, a.headers["location"]) for a in posted] == [(303, f"/v1/jobs/{job['id']}")]
