"""Jobs side by side: each kind in its order, so many at a time, on cores that are nobody else's."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from benchmarks import slots
from benchmarks.slots import Kind

pytestmark = pytest.mark.unit


def test_each_kind_has_its_own_number_at_a_time_and_cores_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(9)))  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr("shutil.which", lambda _: "taskset")  # pyright: ignore[reportUnknownLambdaType]
    lock, running, most, seen = threading.Lock(), Counter[str](), Counter[str](), list[str]()
    cores: set[str] = set()

    def work(task: str) -> None:
        kind = task[0]
        with lock:
            running[kind] += 1
            most[kind] = max(most[kind], running[kind])
            seen.append(task)
            cores.add(slots.pinned()[-1])
        time.sleep(0.02)
        with lock:
            running[kind] -= 1

    kinds = [Kind([f"a{k}" for k in range(6)], 2), Kind([f"b{k}" for k in range(4)], 1)]
    slots.side_by_side(kinds, work)
    assert most == {"a": 2, "b": 1}
    assert sorted(seen) == [*(f"a{k}" for k in range(6)), *(f"b{k}" for k in range(4))]
    assert [task for task in seen if task[0] == "b"] == ["b0", "b1", "b2", "b3"]
    assert cores == {"0,1,2", "3,4,5", "6,7,8"}


def test_where_one_fails_no_other_begins() -> None:
    begun: list[str] = []

    def work(task: str) -> None:
        begun.append(task)
        time.sleep(0.05)
        if task == "b0":
            raise ValueError("b0")

    with pytest.raises(ValueError, match="b0"):
        slots.side_by_side([Kind([f"a{k}" for k in range(20)], 1), Kind(["b0", "b1"], 1)], work)
    assert len(begun) < 8


def test_a_job_that_fails_is_not_lost() -> None:
    def work(task: int) -> None:
        raise ValueError(task)

    with pytest.raises(ValueError, match="3"):
        slots.side_by_side([Kind([3], 1)], work)


def test_who_needs_more_cores_has_them() -> None:
    assert slots.shares(range(16), [3, 3, 1, 1]) == [(0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11), (12, 13), (14, 15)]
    assert slots.shares(range(2), [3, 1]) == [(), ()], "nobody is bound where there are too few"
