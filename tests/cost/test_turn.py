"""Turns on a device: bursts of several processes never overlap, who came first goes first, waiting costs no budget."""

from __future__ import annotations

import fcntl
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from superopt.cost.contest import Contest, Method
from superopt.cost.measure import opening, running
from superopt.cost.sitting import Bench
from superopt.cost.turn import Turn
from superopt.runtime.deployment import Deployment, Target
from tests.cost.world import RUN, Model, Weather, World, contest

pytestmark = pytest.mark.unit

BURSTS = """
import sys, time
from pathlib import Path
from superopt.cost.turn import Turn

turn = Turn(Path(sys.argv[1]))
with open(sys.argv[2], "w") as log:
    for _ in range(20):
        with turn.taken():
            began = time.monotonic()
            time.sleep(0.005)
            print(began, time.monotonic(), file=log)
"""
HOLDER = """
import sys, time
from pathlib import Path
from superopt.cost.turn import Turn

with Turn(Path(sys.argv[1])).taken():
    print("mine", flush=True)
    time.sleep(600)
"""


def start(script: str, *arguments: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def is_locked(path: Path) -> bool:
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_bursts_of_several_processes_never_overlap(tmp_path: Path) -> None:
    processes = [start(BURSTS, tmp_path / "turn", tmp_path / f"log{i}") for i in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    bursts: list[tuple[float, float]] = []
    for i in range(3):
        lines = (tmp_path / f"log{i}").read_text().splitlines()
        bursts += [(float(begin), float(end)) for begin, end in map(str.split, lines)]
    bursts.sort()
    assert len(bursts) == 60
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(bursts))


def test_the_turn_of_a_killed_process_is_free(tmp_path: Path) -> None:
    holder = start(HOLDER, tmp_path / "turn")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "mine\n"
    assert is_locked(tmp_path / "turn")
    holder.send_signal(signal.SIGKILL)
    with Turn(tmp_path / "turn").taken():
        assert is_locked(tmp_path / "turn")
    assert holder.wait(60) == -signal.SIGKILL
    assert not is_locked(tmp_path / "turn")
    holder.stdout.close()


class Waiter:
    """A thread that takes a turn once it is told to, and notes its name then. While it is not awake it waits for the
    turn and does not look whether it is free."""

    def __init__(self, file: Path, name: str, order: list[str]) -> None:
        self._waits, self.awake = threading.Event(), threading.Event()
        self.awake.set()
        turn = Turn(file, self._told)

        def take() -> None:
            with turn.taken():
                order.append(name)

        self._thread = threading.Thread(target=take)

    def _told(self) -> None:
        self._waits.set()
        self.awake.wait(60)

    def wait(self) -> None:
        """For the turn, which another has."""
        self._thread.start()
        assert self._waits.wait(60)

    def join(self) -> None:
        self._thread.join(60)


def test_of_those_that_wait_the_one_that_came_first_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.cost.turn.TELL_SECONDS", 0.0)
    order: list[str] = []
    first, second, third = (Waiter(tmp_path / "turn", name, order) for name in ("first", "second", "third"))
    with Turn(tmp_path / "turn").taken():
        for waiter in (third, first, second):
            waiter.wait()
        assert order == []
    for waiter in (first, second, third):
        waiter.join()
    assert order == ["first", "second", "third"]


def test_who_came_first_may_have_the_turn_again_before_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("superopt.cost.turn.TELL_SECONDS", 0.0)
    order: list[str] = []
    ours = Turn(tmp_path / "turn")
    other = Waiter(tmp_path / "turn", "theirs", order)
    other.awake.clear()
    with ours.taken():
        other.wait()
    with ours.taken():
        order.append("ours")
        other.awake.set()
    other.join()
    assert order == ["ours", "theirs"]


def test_who_had_the_turn_for_long_goes_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.cost.turn.TELL_SECONDS", 0.0)
    monkeypatch.setattr("superopt.cost.turn.SHARES", (0.2, 60.0))
    order: list[str] = []
    ours, waits = Turn(tmp_path / "turn"), threading.Event()
    other = Waiter(tmp_path / "turn", "theirs", order)
    with ours.taken():
        time.sleep(0.3)
    third = Turn(tmp_path / "turn")

    def again() -> None:
        waits.set()
        with ours.taken():
            order.append("ours")

    thread = threading.Thread(target=again)
    with third.taken():
        thread.start()
        assert waits.wait(60)
        time.sleep(0.2)
        other.wait()
    thread.join(60)
    other.join()
    assert order == ["theirs", "ours"]


def test_who_has_waited_long_goes_before_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.cost.turn.TELL_SECONDS", 0.0)
    order: list[str] = []
    first, second = (Waiter(tmp_path / "turn", name, order) for name in ("first", "second"))
    with Turn(tmp_path / "turn").taken():
        monkeypatch.setattr("superopt.cost.turn.LONG_SECONDS", 0.1)
        second.wait()
        time.sleep(0.5)
        monkeypatch.setattr("superopt.cost.turn.LONG_SECONDS", 60.0)
        first.wait()
    for waiter in (first, second):
        waiter.join()
    assert order == ["second", "first"]


def test_waiting_is_told_and_left_out_of_the_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.cost.turn.TELL_SECONDS", 0.0)
    told: list[float] = []
    turn = Turn(tmp_path / "turn", lambda: told.append(turn.waited))
    paused = turn.paused(lambda: 100.0)
    assert (turn.waited, paused()) == (0.0, 100.0)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with Turn(tmp_path / "turn").taken():
            held.set()
            release.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    threading.Timer(0.2, release.set).start()
    before, wall = turn.clock(), time.monotonic()
    with turn.taken():
        took = time.monotonic() - wall
        assert 0.0 < turn.waited <= took
        assert turn.clock() - before == pytest.approx(took - turn.waited, abs=0.05)
    holder.join()
    assert told == sorted(told)
    assert told
    assert paused() == 100.0 - turn.waited


def test_a_turn_inside_a_turn_is_the_same(tmp_path: Path) -> None:
    turn = Turn(tmp_path / "turn")
    with turn.taken():
        with turn.taken():
            pass
        assert is_locked(tmp_path / "turn")
    assert not is_locked(tmp_path / "turn")


def test_alone_it_is_always_our_turn() -> None:
    turn = Turn()
    clock = time.perf_counter
    assert turn.paused(clock) is clock
    with turn.taken():
        assert turn.waited == 0.0


class Crowded(Turn):
    """A turn for which a hundred seconds of a simulated machine are waited each time."""

    def __init__(self, world: World) -> None:
        super().__init__(Path("nobody opens it"))
        self._world, self.count = world, 0

    @contextmanager
    def taken(self) -> Generator[None]:
        self._world.now += 100.0
        self.waited += 100.0
        self.count += 1
        yield


def test_who_steps_aside_lets_another_have_the_turn_and_waits_for_it_again(tmp_path: Path) -> None:
    file = tmp_path / "turn"
    turn = Turn(file)
    with turn.aside():
        assert not is_locked(file)
    assert not is_locked(file)
    with turn.taken():
        assert is_locked(file)
        with turn.aside():
            other = start(HOLDER, file)
            assert other.stdout is not None
            assert other.stdout.readline() == "mine\n"
            killing = threading.Timer(0.3, other.kill)
            killing.start()
        assert other.poll() is not None
        assert is_locked(file)
        assert turn.waited > 0.1
    assert not is_locked(file)


def test_models_for_a_gpu_are_opened_and_checked_outside_the_turn_and_for_a_cpu_in_it(tmp_path: Path) -> None:
    file = tmp_path / "turn"
    turn = Turn(file)
    kinds: dict[Target, bool] = {"cpu": True, "cuda": False}
    for target, locked in kinds.items():
        with turn.taken(), opening(turn, Deployment(target))():
            assert is_locked(file) == locked
        with running(turn, Deployment(target)):
            assert is_locked(file) == locked
        assert not is_locked(file)


def test_a_bench_opens_all_aside_and_starts_and_warms_them_up_in_the_turn() -> None:
    world, events = World(1, Weather()), list[str]()

    @contextmanager
    def aside() -> Generator[None]:
        events.append("aside")
        yield
        events.append("back")

    class Noted(Model):
        def start(self) -> None:
            events.append("start")

        def run(self) -> None:
            if events[-1] != "run":
                events.append("run")
            super().run()

    def opened(index: int) -> Noted:
        events.append("open")
        return Noted(world, RUN)

    lanes = Bench(opened, world.clock, 0.004, 0.1, aside).lanes([0, 1], lambda *_: None)
    assert events == ["aside", "open", "open", "back", "start", "run", "start", "run"]
    assert sorted(lanes) == [0, 1]


def test_a_contest_sits_twice_in_a_turn_and_has_all_of_its_seconds_whatever_it_waits() -> None:
    quiet, crowd = World(1, Weather()), World(1, Weather())
    turn = Crowded(crowd)
    method = Method(seconds=20.0)
    alone = contest(quiet, [RUN, RUN], method)
    bench = Bench(lambda i: Model(crowd, RUN), turn.paused(crowd.clock), method.sample_seconds, 0.1)
    found = Contest(["first", "second"], bench, method, together=True, turn=turn).run()
    assert turn.count > 3
    assert crowd.now > 100.0 * turn.count
    assert found.seconds < 2 * method.seconds
    assert found.pairs[0].sittings >= alone.pairs[0].sittings / 2
    assert 2 * turn.count - 1 <= crowd.openings // 2 <= 2 * turn.count


def test_who_is_on_the_way_out_does_not_wait_for_the_turn_again(tmp_path: Path) -> None:
    file = tmp_path / "turn"
    turn = Turn(file)
    with open(file, "ab") as other:

        def leave() -> None:
            with turn.taken(), turn.aside():
                fcntl.flock(other, fcntl.LOCK_EX)  # somebody has it for good
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            leave()
    assert turn.waited == 0.0
    with turn.taken():
        assert is_locked(file)
