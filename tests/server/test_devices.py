"""Devices: which workers there are, what each of them serves, and which cores are its own."""

from __future__ import annotations

import pytest

from server.devices import Place, cores_of, places, served, wanted
from server.settings import read_settings
from superopt.errors import BadOption

pytestmark = pytest.mark.unit

OFFERED = {"auto": "g", "cpu": "c", "cuda": "g"}


def devices(text: str) -> list[str]:
    return wanted(read_settings({"devices": text}, environment={}))


def test_devices_are_as_the_settings_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices("cuda:0, cpu") == ["cuda:0", "cpu"]
    for wrong in ("gpu", "cuda", "cpu,cpu", ","):
        with pytest.raises(BadOption, match="--devices: expected"):
            devices(wrong)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,GPU-ab")
    assert devices("auto") == ["cuda:1", "cuda:GPU-ab"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert devices("auto") == ["cpu"]


def test_the_cpu_is_measured_by_nobody_while_others_work_on_it() -> None:
    assert served(OFFERED, Place("cuda:0"), 1) == OFFERED
    assert served(OFFERED, Place("cuda:0"), 2) == {"auto": "g", "cuda": "g"}
    assert served(OFFERED, Place("cuda:0", 1), 1) == {"auto": "g", "cuda": "g"}
    assert served({"auto": "c", "cpu": "c"}, Place("cpu"), 2) == {"auto": "c", "cpu": "c"}


@pytest.mark.parametrize(
    ("cores", "searchers", "expected"),
    [
        (16, 0, ["cuda:0", "cuda:0/1", "cuda:1", "cuda:1/1"]),
        (6, 0, ["cuda:0", "cuda:1"]),
        (6, 3, ["cuda:0", "cuda:0/1", "cuda:0/2", "cuda:1", "cuda:1/1", "cuda:1/2"]),
    ],
)
def test_a_gpu_has_two_workers_if_there_are_cores_for_them(
    monkeypatch: pytest.MonkeyPatch, cores: int, searchers: int, expected: list[str]
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    settings = read_settings({"devices": "cuda:0,cuda:1", "searchers": searchers}, environment={})
    assert [place.name for place in places(settings)] == expected


def test_a_cpu_has_one_worker_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert places(read_settings({"devices": "cpu"}, environment={})) == [Place("cpu")]
    told = read_settings({"devices": "cpu", "searchers": 2}, environment={})
    assert places(told) == [Place("cpu"), Place("cpu", 1)]


@pytest.mark.parametrize(("cores", "count"), [(range(16), 8), (range(7), 3), ((9, 3, 5, 2), 4), (range(4), 1)])
def test_cores_are_shared_out_without_rest_or_overlap(cores: tuple[int, ...], count: int) -> None:
    shares = [cores_of(cores, number, count) for number in range(count)]
    assert all(shares)
    assert frozenset().union(*shares) == frozenset(cores)
    assert sum(map(len, shares)) == len(cores)


def test_where_there_are_too_few_cores_all_have_all() -> None:
    assert [cores_of((0, 1), number, 3) for number in range(3)] == [frozenset({0, 1})] * 3
