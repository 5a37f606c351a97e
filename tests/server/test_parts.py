"""Small parts: devices, stages, locks, waiting, supervision."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from server import devices
from server.leftovers import MARK, kill_marked
from server.locks import DeviceLock
from server.settings import Settings
from server.stages import Reached
from server.waiting import Waiting
from superopt.engine.job import Stage
from superopt.errors import BadOption
from tests.server.processes import Running, is_alive, kill
from tests.server.shop import settings_for, until
from tests.server.test_kills import SERVICE
from tests.server.world import World

pytestmark = pytest.mark.unit


def test_devices_as_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.wanted(Settings(devices="cpu")) == ["cpu"]
    assert devices.wanted(Settings(devices="cuda:0, cuda:1,cpu")) == ["cuda:0", "cuda:1", "cpu"]
    for wrong in ("gpu", "cuda", "cuda:", "cpu,cpu", ",", "cuda:0;rm"):
        with pytest.raises(BadOption, match="--devices"):
            devices.wanted(Settings(devices=wrong))
    for visible, found in {"1,3": ["cuda:1", "cuda:3"], "": ["cpu"], "-1": ["cpu"]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert devices.wanted(Settings()) == found
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert devices.wanted(Settings()) == ["cpu"]


def test_progress_never_goes_back() -> None:
    told = [("loading", ""), ("timing", "looking for input sizes that run"), ("searching", ""), ("timing", "explore"),
            ("searching", "standard operators alone"), ("something new", "")]  # fmt: skip
    reached = Reached()
    found: list[float] = []
    for stage, detail in told:
        reached = reached.after(Stage(stage=stage, detail=detail))
        found.append(reached.progress)
    assert found == sorted(found)
    assert found[1] == found[0]
    assert found[-1] < 1.0


def test_a_speedup_is_kept_until_a_better_known_one_comes() -> None:
    reached = Reached().after(Stage(stage="searching", speedup=1.5, basis="predicted"))
    assert (reached.speedup, reached.basis) == (1.5, "predicted")
    reached = reached.after(Stage(stage="profiling"))
    assert (reached.stage, reached.speedup, reached.basis) == ("profiling", 1.5, "predicted")
    reached = reached.after(Stage(stage="timing", detail="x" * 1000, speedup=1.2, basis="measured"))
    assert (len(reached.detail), reached.speedup, reached.basis) == (500, 1.2, "measured")


def test_a_lock_has_one_holder_and_keeps_its_name(tmp_path: Path) -> None:
    first, second, other = DeviceLock(tmp_path, "cuda:0"), DeviceLock(tmp_path, "cuda:0"), DeviceLock(tmp_path, "cpu")
    assert first.acquire(lambda _: True)
    assert other.acquire(lambda _: True)
    assert not second.acquire(lambda _: True)
    name = first.name()
    assert name != other.name()
    first.release()
    assert second.acquire(lambda _: True)
    assert second.name() == name


def test_marked_processes_are_found_and_no_others() -> None:
    def sleeper(mark: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark})

    ours, others = sleeper("/tmp/a.lock/job-1"), sleeper("/tmp/b.lock/job-1")
    until(lambda: all(Path(f"/proc/{p.pid}/comm").read_text() == "sleep\n" for p in (ours, others)))
    assert kill_marked("/tmp/a.lock") == 1
    assert ours.wait(30) == -signal.SIGKILL
    assert others.poll() is None
    others.kill()
    others.wait()


def test_who_waits_is_woken_by_what_happens_and_by_the_end(world: World) -> None:
    job = world.submit()

    async def scene() -> list[bool]:
        waiting = Waiting(world.database)
        happened = asyncio.create_task(waiting.moved(job.id, job.last_event, 60.0))
        nothing = asyncio.create_task(waiting.moved(job.id, job.last_event + 5, 0.5))
        gone = asyncio.create_task(waiting.moved("0" * 32, 0, 60.0))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(world.claim)
        found = [await happened, await nothing, await gone]
        last = asyncio.create_task(waiting.moved(job.id, 99, 60.0))
        await asyncio.sleep(0.1)
        waiting.close()
        return [*found, await last]

    assert asyncio.run(scene()) == [True, False, True, True]


@pytest.mark.slow
def test_what_dies_is_started_again_and_nothing_outlives_the_supervisor(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu")
    with Running(settings, SERVICE) as service:
        until(lambda: service.is_up("api") and service.is_up("worker"), 300.0)
        before = [service.pid("api") or 0, service.pid("worker") or 0]
        for pid in before:
            assert kill(pid)
        until(lambda: len(service.logged("started")) == 4, 60.0)
        until(lambda: service.is_up("api") and service.is_up("worker"), 300.0)
        after = [service.pid("api") or 0, service.pid("worker") or 0]
        assert not set(before) & set(after)
        assert kill(service.process.pid)
        until(lambda: not any(map(is_alive, after)), 60.0)


def test_a_second_supervisor_on_one_port_says_so(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, role="api")
    with Running(settings, SERVICE) as service:
        port = service.url.rpartition(":")[2]
        command = [sys.executable, "-m", "superopt", "serve", "--port", port, "--role", "api", "--data", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "cannot listen: Address already in use" in done.stderr
