"""Times of samples in a new file: those that were lacking, or all. No test asserts a time of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import sample_times
from superopt.cost import calibration, timer
from superopt.cost.cache import RegionEntry, RegionKey, RegionTime
from superopt.cost.contents import Contents
from superopt.cost.costs import read_costs
from superopt.cost.machine import Machine, machine_here
from superopt.cost.regions import REGION_METHOD, RegionSubject, region_key
from superopt.cost.shipping import write_costs
from superopt.cost.workloads import data, host, node, workload
from superopt.ir.graph import Graph
from superopt.runtime.deployment import Deployment

pytestmark = pytest.mark.unit

HERE = Deployment(threads=1)
LONG_AGO, KNOWN = 1e9, 1.0
FOUND = 2.0, 4.0, 8.0


def relu(size: int) -> Graph:
    x = data(0, (size,))
    return workload([x], node("Relu", [x], (size,)))


SAMPLES = [relu(size) for size in (1, 2, 3)]
FIRST, LACKING, LAST = (region_key(host(), graph, {}) for graph in SAMPLES)
OTHERS = [f"region {k} :17" for k in range(sample_times.ENOUGH)]


def key(structure: str, machine: Machine) -> RegionKey:
    return RegionKey(structure, HERE.text, machine.device, machine.driver, machine.runtime, REGION_METHOD)


def written(file: Path, machine: Machine) -> Contents:
    """A file with many times, and those of all samples but one."""
    keys = (key(structure, machine) for structure in (FIRST, LAST, *OTHERS))
    contents = Contents.of([RegionEntry(k, RegionTime(KNOWN), LONG_AGO) for k in keys], [])
    write_costs(contents, file)
    return contents


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the clock, which answers `FOUND` whatever it is asked, was asked."""
    found: list[str] = []

    def time_regions(subjects: Sequence[RegionSubject], *_: object, **__: object) -> list[float]:
        found.extend(subject.key for subject in subjects)
        return list(FOUND[: len(subjects)])

    for module in (calibration, sample_times):
        monkeypatch.setattr(module, "samples", lambda *_: iter(SAMPLES))
    monkeypatch.setattr(timer, "time_regions", time_regions)
    monkeypatch.setattr(timer, "time_yardstick", lambda *_: FOUND[0])
    return found


def outcome(tmp_path: Path, *words: str) -> tuple[Contents, Contents]:
    given, out = tmp_path / "given.costs", tmp_path / "out.costs"
    before = written(given, machine_here(HERE))
    assert sample_times.main([str(given), str(out), *words]) == 0
    assert read_costs(given) == before
    after = read_costs(out)
    assert {k.deployment for k in after.regions} == {HERE.text}
    return before, after


def changed(before: Contents, after: Contents) -> set[str]:
    assert before.regions.keys() <= after.regions.keys()
    return {k.structure for k, entry in after.regions.items() if before.regions.get(k) != entry}


def times(contents: Contents, *structures: str) -> list[float | None]:
    return [contents.regions[key(structure, machine_here(HERE))].time.seconds for structure in structures]


def test_what_a_file_lacks_is_timed_and_the_others_stay(tmp_path: Path, asked: list[str]) -> None:
    before, after = outcome(tmp_path)
    assert changed(before, after) == {LACKING, "yardstick"}
    assert asked == [FIRST, LACKING]  # the first runs along, and tells that all takes twice as long as it did
    assert times(after, LACKING) == [FOUND[1] / 2]


def test_asked_for_again_all_are_new_and_what_is_no_sample_stays(tmp_path: Path, asked: list[str]) -> None:
    before, after = outcome(tmp_path, "--again")
    assert changed(before, after) == {FIRST, LACKING, LAST, "yardstick"}
    assert asked == [FIRST, LACKING, LAST]
    assert times(after, FIRST, LACKING, LAST) == list(FOUND)


def test_a_file_of_another_machine_is_refused(
    tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / "given.costs", tmp_path / "out.costs"
    written(given, replace(machine_here(HERE), device="Another Core"))
    assert sample_times.main([str(given), str(out)]) == 2
    assert "tells of no machine like this one" in capsys.readouterr().err
    assert not out.exists()
    assert not asked
