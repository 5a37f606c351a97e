"""The dispatcher, over a cluster that only notes what it is told: who gets which job, and what becomes of it when a
node dies, stands still, or has no room."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from server import dispatch, seats
from server.cluster import Ended, Handle, Node
from server.dispatch import Dispatcher
from server.jobs import Order
from server.node import Errand, Kind, work
from server.records import Job
from server.settings import Settings, read_settings
from server.stages import Reached
from server.tables import workers
from superopt.errors import BadOption
from superopt.options import Options
from tests.server.conftest import MakeWorld
from tests.server.shop import STAND_IN, until
from tests.server.world import World

pytestmark = pytest.mark.unit

GIB = 1 << 30
CPU = Node("c" * 56, "10.0.0.1", cpus=4, gpus=0, memory=8 * GIB)
GPU = Node("d" * 56, "10.0.0.2", cpus=16, gpus=2, memory=64 * GIB)
OFFERS = {"cpu": {"auto": "c", "cpu": "c"}, "cuda": {"auto": "g", "cpu": "gc", "cuda": "g"}}


@dataclass
class Started:
    node: Node
    kind: Kind
    errand: Errand

    @property
    def job(self) -> str:
        return self.errand.claim.job.id


@dataclass
class Notes:
    """A cluster where nothing happens by itself."""

    there: list[Node]
    name: str = "notes"
    started: dict[Handle, Started] = field(default_factory=dict[Handle, Started])
    over: dict[Handle, Ended] = field(default_factory=dict[Handle, Ended])
    canceled: list[Handle] = field(default_factory=list[Handle])
    broken: set[str] = field(default_factory=set[str])
    numbers: Any = field(default_factory=itertools.count)

    def nodes(self) -> list[Node]:
        return list(self.there)

    def ask(self, node: Node, kind: Kind, environment: Mapping[str, str], count: int) -> Handle:
        handle = next(self.numbers)
        if node.id in self.broken:
            self.over[handle] = Ended(handle, error="no driver")
        else:
            self.over[handle] = Ended(handle, {"targets": OFFERS[kind], "facts": {"name": kind}})
        return handle

    def start(self, node: Node, kind: Kind, errand: Errand) -> Handle:
        handle = next(self.numbers)
        self.started[handle] = Started(node, kind, errand)
        return handle

    def ended(self, handles: Sequence[Handle], seconds: float) -> list[Ended]:
        if not any(h in self.over for h in handles):
            time.sleep(min(seconds, 0.02))
        return [self.over.pop(h) for h in handles if h in self.over]

    def cancel(self, handle: Handle) -> None:
        self.canceled.append(handle)
        self.over[handle] = Ended(handle, error="canceled")

    def close(self) -> None:
        pass

    def of(self, job: Job) -> list[Handle]:
        return [h for h, s in self.started.items() if s.job == job.id]


def settings_of(world: World, **more: Any) -> Settings:
    values = {"data": str(world.folder), "database": world.url, "lease": world.lease, "attempts": 3, "grace": 0.0}
    return read_settings(values | more, environment={})


@contextmanager
def dispatching(world: World, *nodes: Node, **more: Any) -> Generator[Notes]:
    notes = Notes(list(nodes))
    dispatcher = Dispatcher(settings_of(world, **more), join=lambda _: notes)
    thread = threading.Thread(target=dispatcher.run)
    thread.start()
    try:
        yield notes
    finally:
        dispatcher.stop()
        thread.join(600)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((dispatch, "IDLE_SECONDS"), (dispatch, "LOOK_SECONDS"), (dispatch, "STANDBY_SECONDS")):
        monkeypatch.setattr(module, name, 0.05)
    monkeypatch.setattr(dispatch, "REST_SECONDS", 0.1)
    monkeypatch.setattr(seats, "ASK_AGAIN_SECONDS", 0.1)


def listed(world: World) -> list[str]:
    with world.database.read() as connection:
        return sorted(connection.execute(select(workers.c.device)).scalars())


def test_each_device_has_one_job_at_a_time_and_jobs_go_where_they_can_run(world: World) -> None:
    wanted = ("auto", "cuda", "cpu", "auto", "cpu")
    made = [world.submit(bytes([i]), target=target) for i, target in enumerate(wanted)]
    with dispatching(world, CPU, GPU) as notes:
        until(lambda: len(notes.started) == 3)
        time.sleep(0.3)
        assert {(s.job, s.kind) for s in notes.started.values()} == {
            (made[0].id, "cuda"), (made[1].id, "cuda"), (made[2].id, "cpu"),
        }  # fmt: skip
        assert listed(world) == ["10.0.0.1/cpu", "10.0.0.2/cuda", "10.0.0.2/cuda"]
        sent = [s.errand for s in notes.started.values()]
        assert sorted((e.number, e.count, e.memory) for e in sent) == [(0, 1, 8192), (0, 2, 32768), (1, 2, 32768)]
        assert sorted(e.claim.fingerprint for e in sent) == ["c", "g", "g"]
        (first,) = notes.of(made[0])
        assert world.claims.complete(notes.started[first].errand.claim, world.outcome(b"0"))
        notes.over[first] = Ended(first)
        until(lambda: bool(notes.of(made[3])))
    states = [world.find(j).state for j in made]
    assert states == ["done", "queued", "queued", "queued", "queued"], "at the end they are queued again"
    assert listed(world) == []


def test_the_cpu_does_what_asks_for_no_device_where_there_is_no_gpu(world: World) -> None:
    job = world.submit(target="auto")
    with dispatching(world, CPU) as notes:
        until(lambda: bool(notes.of(job)))
    with dispatching(world, GPU, devices="cpu") as notes:
        until(lambda: bool(notes.of(job)))
        assert [s.kind for s in notes.started.values()] == ["cpu"]


def test_the_job_of_a_node_that_died_is_sent_to_another_and_only_that_answer_counts(world: World) -> None:
    job = world.submit()
    with dispatching(world, CPU) as notes:
        until(lambda: bool(notes.of(job)))
        (first,) = notes.of(job)
        notes.there = [GPU]
        notes.over[first] = Ended(first, error="NodeDiedError")
        until(lambda: world.find(job).state == "queued")
        until(lambda: listed(world) == ["10.0.0.2/cuda", "10.0.0.2/cuda"])
        assert notes.of(job) == [first], "no GPU does a job for the CPU"
        notes.there = [CPU, GPU]
        until(lambda: len(notes.of(job)) == 2)
        dead, alive = (notes.started[h].errand.claim for h in notes.of(job))
        assert alive.job.attempts == 2
        assert not world.claims.complete(dead, world.outcome(b"dead"))
        assert world.claims.complete(alive, world.outcome(b"alive"))
    assert world.find(job).state == "done"


def test_a_job_that_has_not_begun_keeps_its_lease_and_one_that_stands_still_loses_it(make_world: MakeWorld) -> None:
    world = make_world(lease=1.0)
    job = world.submit()
    with dispatching(world, CPU) as notes:
        until(lambda: bool(notes.of(job)))
        time.sleep(2.0)
        (first,) = notes.of(job)
        claim = notes.started[first].errand.claim
        assert world.claims.holds(claim)
        assert world.claims.tell(claim, Reached("loading"))
        until(lambda: not world.claims.holds(claim))
        notes.over[first] = Ended(first)
        until(lambda: len(notes.of(job)) == 2)
    assert world.find(job).attempts == 1, "the second attempt was ended by us, and does not count"


def test_a_job_for_which_a_node_has_no_room_is_queued_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "START_SECONDS", 0.2)
    job = world.submit()
    with dispatching(world, CPU, lease=1.0) as notes:
        until(lambda: bool(notes.canceled))
        until(lambda: len(notes.of(job)) == 2)
    assert world.find(job).attempts == 0, "nobody died of it"


def test_a_job_that_reached_no_node_was_not_attempted(world: World) -> None:
    job = world.submit()
    with dispatching(world, CPU) as notes:
        for lost in range(5):
            until(lambda lost=lost: len(notes.of(job)) == lost + 1)
            last = notes.of(job)[-1]
            notes.over[last] = Ended(last, error="TaskUnschedulableError", started=False)
        until(lambda: len(notes.of(job)) == 6)
        assert world.find(job).attempts == 1


def test_a_node_that_does_not_work_is_asked_again(world: World) -> None:
    job = world.submit()
    with dispatching(world, CPU) as notes:
        pass
    with dispatching(world) as notes:
        notes.broken.add(CPU.id)
        notes.there = [CPU]
        time.sleep(0.5)
        assert notes.started == {}
        notes.broken.clear()
        until(lambda: bool(notes.of(job)))


def test_of_two_dispatchers_one_works_and_the_other_takes_over(world: World) -> None:
    job = world.submit()
    with dispatching(world, CPU) as second:
        until(lambda: bool(second.of(job)))
        with dispatching(world, CPU) as first:
            time.sleep(0.5)
            assert first.started == {}
    with dispatching(world, CPU) as first:
        until(lambda: bool(first.of(job)))


def test_a_single_gpu_by_name_makes_no_sense_on_a_cluster(world: World) -> None:
    with pytest.raises(BadOption, match="expected auto or cpu with --engine ray"):
        seats.Seats(Notes([]), settings_of(world, devices="cuda:0"))


@pytest.fixture
def sqlite(tmp_path: Path) -> Generator[World]:
    made = World(tmp_path, f"sqlite:///{tmp_path / 'test.db'}")
    yield made
    made.database.close()


def test_on_a_node_a_job_is_done_with_what_the_service_says(sqlite: World) -> None:
    order = Order("a", (sqlite.keep(b"\x08plain"),), Options().as_json(), "cpu")
    job = sqlite.jobs.submit(order)
    claim = sqlite.claim("ray/1")
    stale = sqlite.folder / "work" / "ray-cpu-0" / "stale"
    stale.mkdir(parents=True)
    environment = seats.for_nodes(settings_of(sqlite))
    work(Errand(environment, claim, 512, STAND_IN, 0, 1), "cpu")
    done = sqlite.find(job)
    assert (done.state, done.worker) == ("done", "ray/1")
    assert not stale.exists()
    assert list((sqlite.folder / "work" / "ray-cpu-0").iterdir()) == []
