"""The worker: jobs to their end in processes of their own, and nothing left running or lying about."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from server import events
from server.children import plain_environment, python
from server.devices import Place
from server.jobs import Order
from server.records import Job, files_of_result
from server.settings import read_settings
from server.tables import jobs, workers
from server.worker import Worker, limited
from superopt.options import Options
from tests.server.world import TARGETS, World

pytestmark = pytest.mark.unit

STAND_IN = [sys.executable, "-P", str(Path(__file__).with_name("stand_in.py"))]
OFFERED: dict[str, Any] = {"targets": TARGETS, "facts": {"name": "stand-in"}}


class Shop:
    """A worker in a thread, over a world."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world = world
        values = {"data": str(world.folder), "database": world.url, "lease": 2.0, "attempts": 2, "grace": 0.0}
        self.settings = read_settings(values | settings, environment={})
        self.worker = Worker(self.settings, Place("cpu"), STAND_IN)
        self.thread = threading.Thread(target=self.worker.run, args=(OFFERED,))
        self.thread.start()

    def submit(self, told: Any = None, **options: Any) -> Job:
        model = b"\x08plain" if told is None else json.dumps(told).encode()
        return self.world.jobs.submit(Order("a", (self.world.keep(model),), Options(**options).as_json(), "cpu"))

    def wait(self, job: Job, *states: str) -> Job:
        until(lambda: self.world.find(job).state in states)
        return self.world.find(job)

    def close(self) -> None:
        self.worker.stop()
        self.thread.join(300)
        assert not self.thread.is_alive()


def until(true: Callable[[], bool], seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """One kind is enough: what workers do with it is tested with both in test_claims.py."""
    return f"sqlite:///{tmp_path / 'test.db'}"


@pytest.fixture
def shop(world: World) -> Generator[Shop]:
    made = Shop(world)
    yield made
    made.close()


def test_a_job_is_done(shop: Shop) -> None:
    job = shop.wait(shop.submit({"data": ["w.bin"]}), "done")
    assert job.result is not None
    with shop.world.database.read() as connection:
        files = {f.name: f for f in files_of_result(connection, job.result)}
        stages = [e.data["stage"] for e in events.after(connection, job.id, 0) if e.kind == "stage"]
    assert sorted(files) == ["model.onnx", "report.json", "w.bin"]
    assert stages == ["loading", "timing"]
    with shop.world.blobs.store.open(files["w.bin"].digest) as stored:
        assert stored.read() == b"data w.bin"
    with shop.world.blobs.store.open(files["report.json"].digest) as stored:
        report = json.load(stored)
    assert (job.speedup, report["before"]["path"]) == (1.25, "model.onnx")
    assert report["verdict"] == "1.25× faster, as model.onnx shows", "no path of the machine leaves it"
    until(lambda: list((shop.world.folder / "work" / "cpu").iterdir()) == [])


def test_what_was_told_is_not_told_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.attempt.TELL_SECONDS", 0.0)
    waiting = [{"stage": "timing regions", "detail": "waiting for the device", "waited": float(i)} for i in range(5)]
    job = shop.wait(shop.submit({"stages": waiting}), "done")
    with shop.world.database.read() as connection:
        told = [event.data.get("detail") for event in events.after(connection, job.id, 0)]
    assert told.count("waiting for the device") == 1


def test_a_model_that_is_none_fails_its_job(shop: Shop) -> None:
    job = shop.wait(shop.submit({"refuse": "BadModel"}), "failed")
    assert job.error == {
        "type": "about:blank", "title": "The model cannot be read", "status": 422,
        "detail": "model.onnx: is empty", "error": "BadModel",
    }  # fmt: skip


def test_a_process_that_dies_is_tried_again_and_then_given_up(shop: Shop) -> None:
    job = shop.wait(shop.submit({"die": "alas"}), "failed")
    assert job.attempts == 2
    assert job.error is not None
    assert "2 workers died" in job.error["detail"]


def test_a_canceled_job_is_stopped_with_all_it_started(shop: Shop) -> None:
    pids = [shop.world.folder / name for name in ("pid", "child")]
    job = shop.submit({"pid": str(pids[0]), "child": str(pids[1]), "sleep": 600, "deaf": True})
    until(lambda: all(p.exists() and p.read_text() != "" for p in pids))
    shop.world.jobs.cancel("a", job.id)
    until(lambda: not any(is_running(p.read_text()) for p in pids))
    assert shop.world.find(job).state == "canceled"
    shop.wait(shop.submit(), "done")


def test_at_shutdown_a_running_job_is_queued_again(shop: Shop) -> None:
    pid = shop.world.folder / "pid"
    job = shop.submit({"pid": str(pid), "sleep": 600})
    until(lambda: pid.exists() and pid.read_text() != "")
    shop.close()
    assert not is_running(pid.read_text())
    left = shop.world.find(job)
    assert (left.state, left.attempts) == ("queued", 0)
    with shop.world.database.read() as connection:
        assert connection.execute(select(workers.c.id)).all() == []


def test_at_shutdown_a_job_that_is_nearly_done_may_finish(world: World) -> None:
    shop = Shop(world, grace=60.0)
    pid = world.folder / "pid"
    job = shop.submit({"pid": str(pid), "sleep": 0.5})
    until(pid.exists)
    shop.close()
    assert world.find(job).state == "done"


def test_a_worker_whose_claim_was_taken_stops_and_writes_nothing(shop: Shop) -> None:
    pid = shop.world.folder / "pid"
    job = shop.submit({"pid": str(pid), "sleep": 600})
    until(lambda: pid.exists() and pid.read_text() != "")
    with shop.world.database.write() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job.id).values(fence=jobs.c.fence + 1, worker="other"))
    until(lambda: not is_running(pid.read_text()))
    assert (shop.world.find(job).state, shop.world.find(job).worker) == ("running", "other")


def test_what_a_killed_worker_left_is_cleared_by_the_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(world)
    until(lambda: (world.folder / "locks" / "cpu.lock").exists())
    shop.close()
    with world.database.write() as connection:
        connection.execute(update(workers).values(job=None))
    job = shop.submit()
    name = f"{os.uname().nodename[:24]}/cpu/{(world.folder / 'locks' / 'cpu.lock').read_text()}"
    assert world.claims.claim(name, TARGETS) is not None  # and then it was killed
    stale = world.folder / "work" / "cpu" / "stale"
    stale.mkdir(parents=True)
    again = Shop(world)
    assert again.wait(job, "done").attempts == 2
    assert not stale.exists()
    again.close()


def test_the_job_sees_no_setting_and_no_secret(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUPEROPT_DATABASE", "AWS_SECRET_ACCESS_KEY", "MY_TOKEN"):
        monkeypatch.setenv(name, "secret")
    seen = shop.world.folder / "environment"
    shop.wait(shop.submit({"environment": str(seen)}), "done")
    environment = json.loads(seen.read_text())
    assert "secret" not in environment.values()
    assert {n for n in environment if n.startswith("SUPEROPT")} == {"SUPEROPT_WORK"}
    assert environment["TMPDIR"].startswith(str(shop.world.folder / "work"))


def test_a_file_beside_the_model_is_never_imported(tmp_path: Path) -> None:
    for name in ("json.py", "superopt.py", "server.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    command = [*python("server.runner"), str(os.getpid())]
    done = subprocess.run(command, cwd=tmp_path, env=plain_environment("cpu"), input=b"{}\n", capture_output=True)
    assert b"imported" not in done.stderr
    assert b"validation error" in done.stderr


def test_only_one_worker_holds_a_device(world: World) -> None:
    first = Shop(world)
    job = first.submit({"sleep": 0.2})
    second = Shop(world)
    first.wait(job, "done")
    with world.database.read() as connection:
        assert len(connection.execute(select(workers.c.id)).all()) == 1
    first.close()
    job = second.submit()
    second.wait(job, "done")
    second.close()


def test_a_job_that_was_stopped_is_told_and_not_shared(shop: Shop) -> None:
    told = {"stopped": "the job ran for more than 1 s"}
    first = shop.wait(shop.submit(told), "done")
    second = shop.wait(shop.submit(told), "done")
    assert first.result != second.result


def test_nobody_gets_more_memory_than_there_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.worker.default_memory_limit", lambda: 4000 << 20)

    def held(asked: int, share: int) -> int:
        world.jobs.submit(Order("a", (world.keep(os.urandom(8)),), Options(memory_limit=asked).as_json(), "cpu"))
        return limited(world.claim(), share).job.options["memory_limit"]

    assert held(0, share=0) == 0, "the job's process looks for itself what is free"
    assert held(10**20, share=0) == 4000
    assert held(100, share=0) == 100
    assert held(0, share=1500) == 1500
    assert held(2000, share=1500) == 1500
    assert held(100, share=1500) == 100
