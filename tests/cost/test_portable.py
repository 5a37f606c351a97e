"""Costs as text: the same for the same contents, and nothing of a damaged or hostile file is taken for an answer."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.cache import CostCache, Entry, RegionEntry, RegionTime
from superopt.cost.contents import Contents, merged
from superopt.cost.costs import Costs, read_costs
from superopt.cost.inventory import inventory
from superopt.cost.portable import read_portable, write_portable
from superopt.cost.shipping import of_devices, write_costs
from superopt.errors import BadOption
from tests.cost.test_cache import KEY, REGION, comparison

pytestmark = pytest.mark.unit

MIDNIGHT = 1_794_787_200.0  # 2026-11-16
PLAIN = "cpu threads=2 level=all"
RECORDED = "cuda threads=16 level=all enable_cuda_graph=1 use_tf32=1"
CPU = dataclasses.replace(REGION, deployment=PLAIN)
GPU = dataclasses.replace(REGION, deployment=RECORDED, device="NVIDIA Fake", driver="9.1")
WHOLE = dataclasses.replace(KEY, deployments=(PLAIN, PLAIN))


def entry(key: Any, seconds: float | None, reason: str = "") -> RegionEntry:
    return RegionEntry(key, RegionTime(seconds, reason), MIDNIGHT)


def some() -> Contents:
    return Contents.of(
        [
            entry(CPU, 1.25e-4),
            entry(dataclasses.replace(CPU, structure="b :17"), None, "onnxruntime cannot open it"),
            entry(GPU, 3.0000000000000004e-6),
        ],
        [
            Entry(WHOLE, comparison(), MIDNIGHT),
            Entry(dataclasses.replace(WHOLE, look=1), comparison(1.3), MIDNIGHT),
        ],
    )


@pytest.fixture
def text(tmp_path: Path) -> Path:
    write_portable(some(), tmp_path / "c.json")
    return tmp_path / "c.json"


def test_what_is_written_is_read_and_is_the_same_text_in_any_order(text: Path, tmp_path: Path) -> None:
    found = read_portable(text)
    assert found == some()
    reversed_ = Contents(dict(reversed(found.regions.items())), dict(reversed(found.comparisons.items())))
    write_portable(reversed_, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == text.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.json", "c.json"]


def test_databases_and_texts_hold_the_same(text: Path, tmp_path: Path) -> None:
    write_costs(read_costs(text), tmp_path / "c.sqlite")
    assert read_costs(tmp_path / "c.sqlite") == some()
    write_costs(read_costs(tmp_path / "c.sqlite"), tmp_path / "d.json")
    assert (tmp_path / "d.json").read_bytes() == text.read_bytes()


def changed(text: Path, change: Callable[[Any], None]) -> Path:
    told = json.loads(text.read_text())
    change(told)
    text.write_text(json.dumps(told))
    return text


def _set(path: str, value: object) -> Callable[[Any], None]:
    def change(told: Any) -> None:
        *way, last = (int(w) if w.isdigit() else w for w in path.split("/"))
        for step in way:
            told = told[step]
        told[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_set("version", 2), "expected version 1 of the text form of costs, found 2"),
        (_set("format", "other"), "expected the format 'superopt costs', found 'other'"),
        (_set("machines/0/device", "a\x1b[2Jb"), "machines.0.device"),
        (_set("machines/0/device", "x" * 201), "machines.0.device"),
        (_set("machines/0/target", "cuda"), "expected deployments on cuda, found one on cpu"),
        (_set("machines/0/extra", 1), "machines.0.extra"),
        (_set("machines/0/regions/0/deployment", "cpu threads=many level=all"), "expected a deployment"),
        (_set("machines/0/regions/0/deployment", "tpu threads=1 level=all"), "expected a deployment"),
        (_set("machines/0/regions/0/measured", "2026-99-99"), "expected a day, found '2026-99-99'"),
        (_set("machines/0/regions/0/seconds/a", -1.0), "seconds.a: Input should be greater than 0"),
        (_set("machines/0/regions/0/seconds/a", "soon"), "seconds.a"),
        (_set("machines/0/regions/0/seconds/a", float("nan")), "is no cost file of superopt"),
        (_set("machines/0/regions/0/seconds/a", float("inf")), "is no cost file of superopt"),
        (_set("machines/0/comparisons/0/deployments", []), "comparisons.0.deployments"),
        (_set("machines/0/comparisons/0/deployments", [PLAIN]), "expected a comparison of 1 subjects"),
        (_set("machines/0/comparisons/0/comparison/pairs", []), "expected a comparison of 2 subjects"),
        (_set("machines/0/comparisons/0/comparison/subjects", 1), "comparison.subjects"),
    ],
)
def test_what_is_wrong_in_it_is_an_error_with_its_place(
    text: Path, change: Callable[[Any], None], complaint: str
) -> None:
    with pytest.raises(BadOption) as caught:
        read_costs(changed(text, change))
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", [0.02, 0.5, 0.99])
def test_a_part_of_a_file_is_refused(text: Path, part: float) -> None:
    data = text.read_bytes()
    text.write_bytes(data[: int(part * len(data))])
    with pytest.raises(BadOption, match="is no cost file of superopt, or only a part of one"):
        read_costs(text)


@pytest.mark.parametrize(
    "data", [b"{", b"{}", b'{"a":' * 100_000, b'{"format": "superopt costs", "version": 1}', b"{\xff\xfe}"]
)
def test_what_only_begins_like_one_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "c.json").write_bytes(data)
    with pytest.raises(BadOption, match="is no cost file of superopt"):
        read_costs(tmp_path / "c.json")


def test_a_file_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="there is no such cost file"):
        read_costs(tmp_path / "none.json")
    with pytest.raises(BadOption, match=r"no such exported file; one to measure into must not end in \.json"):
        Costs(tmp_path / "none.json")
    assert Costs(tmp_path / "new.sqlite").grows
    assert os.listdir(tmp_path) == []


def test_the_first_file_answers_where_two_do(tmp_path: Path) -> None:
    mine, other = dataclasses.replace(CPU, structure="mine :17"), dataclasses.replace(CPU, structure="other :17")
    first = Contents.of([entry(CPU, 1.0), entry(mine, 2.0)], [Entry(WHOLE, comparison(1.1), MIDNIGHT)])
    second = Contents.of([entry(CPU, 4.0), entry(other, 3.0)], [Entry(WHOLE, comparison(1.2), MIDNIGHT)])
    found = merged([first, second])
    assert (found.conflicts, found.farthest) == (2, 4.0)
    assert {k.structure: e.time.seconds for k, e in found.contents.regions.items()} == {
        CPU.structure: 1.0, "mine :17": 2.0, "other :17": 3.0,
    }  # fmt: skip
    assert found.contents.comparisons[WHOLE].comparison == comparison(1.1)
    assert merged([first, first]).conflicts == 0
    assert merged([second, first]).contents.regions[CPU].time.seconds == 4.0


def test_another_runtime_is_another_machine_and_both_stay(tmp_path: Path) -> None:
    newer = dataclasses.replace(CPU, runtime="1.32.0")
    found = merged([Contents.of([entry(CPU, 1.0)], []), Contents.of([entry(newer, 2.0)], [])])
    assert found.conflicts == 0
    assert [machine.runtime for machine in found.contents.machines] == ["1.31.1", "1.32.0"]
    assert [m.onnxruntime for m in inventory(found.contents)] == ["1.31.1", "1.32.0"]


def test_devices_are_picked_by_a_part_of_their_name() -> None:
    assert set(of_devices(some(), "fake", "c.json").regions) == {GPU}
    assert of_devices(some(), "", "c.json") == some()
    with pytest.raises(BadOption, match=r"--device A100: c\.json holds no costs of it, but of: Big Core"):
        of_devices(some(), "A100", "c.json")


def test_what_was_measured_otherwise_is_counted_apart() -> None:
    older = dataclasses.replace(CPU, structure="c :17", method=CPU.method - 1)
    contents = Contents.of([entry(CPU, 1.0), entry(older, 2.0)], [])
    (found,) = inventory(contents)
    assert (found.outdated, [d.times for d in found.deployments]) == (1, [1])
    assert found.measured == "2026-11-16"


def test_an_exported_file_answers_and_is_left_as_it_is(text: Path) -> None:
    before = text.read_bytes()
    costs = Costs(text)
    assert not costs.grows
    with costs.opened() as cache:
        assert cache.get_region(CPU) == RegionTime(1.25e-4)
        cache.put_region(dataclasses.replace(CPU, structure="new :17"), RegionTime(1.0))
    with costs.opened() as cache:
        assert cache.get_region(dataclasses.replace(CPU, structure="new :17")) == RegionTime(1.0)
    assert text.read_bytes() == before
    assert os.listdir(text.parent) == ["c.json"]


def test_a_database_that_may_not_be_written_to_answers(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.sqlite"
    write_costs(some(), file)
    before = file.read_bytes()
    monkeypatch.setattr("superopt.cost.costs.os.access", lambda *_: False)
    costs = Costs(file)
    assert not costs.grows
    with costs.opened() as cache:
        assert cache.get_region(CPU) == RegionTime(1.25e-4)
        cache.put_region(dataclasses.replace(CPU, structure="new :17"), RegionTime(1.0))
    assert file.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["c.json", "c.sqlite"]


def test_adding_keeps_what_is_there(tmp_path: Path) -> None:
    with CostCache(tmp_path / "c") as cache:
        cache.add_all([entry(CPU, 1.0)], [])
        cache.add_all([entry(CPU, 2.0), entry(GPU, 3.0)], [Entry(WHOLE, comparison(), MIDNIGHT)])
        assert [(e.key, e.time.seconds) for e in cache.region_entries()] in (
            [(CPU, 1.0), (GPU, 3.0)], [(GPU, 3.0), (CPU, 1.0)],
        )  # fmt: skip
        assert cache.count_regions() == 2
        assert cache.get(WHOLE) == comparison()


def test_the_costs_that_ship_are_read_and_would_be_written_the_same(tmp_path: Path) -> None:
    shipped = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*.costs"))
    assert shipped
    for file in shipped:
        contents = read_costs(file)
        assert all(contents.deployments(machine) for machine in contents.machines)
        write_portable(contents, tmp_path / file.name)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
