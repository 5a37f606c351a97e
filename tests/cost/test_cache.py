import dataclasses
import multiprocessing
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from superopt.cost.cache import CostCache, CostKey, Input, RegionKey, RegionTime, default_cost_file
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.errors import BadOption
from superopt.report import Interval, Latency

pytestmark = pytest.mark.unit

KEY = CostKey(
    models=("sha-a", "sha-b"),
    deployments=("cpu threads=2", "cpu threads=2"),
    inputs=(Input("x", "float32", (1, 3, 224, 224)),),
    device="Big Core",
    driver="",
    runtime="1.31.1",
)


REGION = RegionKey("3f7a :17", "cpu threads=2", "Big Core", "", "1.31.1", method=1)


def comparison(speedup: float = 1.25) -> Comparison:
    interval = Interval(low=1.1, high=1.3)
    latency = Latency(median=0.1, interval=Interval(low=0.09, high=0.11), spread=0.02, runs=80)
    pair = PairTiming(name="b", verdict="faster", reason="r", speedup=speedup, interval=interval, sittings=6, pairs=40)
    subjects = (SubjectTiming(name="a", latency=latency), SubjectTiming(name="b", latency=None))
    return Comparison(subjects=subjects, pairs=(pair,), seconds=3.0, one_at_a_time=False)


def test_what_was_put_comes_back_also_to_the_next_process(tmp_path: Path):
    file = tmp_path / "new" / "costs.sqlite"
    with CostCache(file) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, comparison())
    with CostCache(file) as cache:
        assert cache.get(KEY) == comparison()


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(CostKey)])
def test_every_field_of_the_key_matters(tmp_path: Path, field: str):
    changed = {
        "models": ("sha-b", "sha-a"),
        "deployments": ("cpu threads=1", "cpu threads=2"),
        "inputs": (Input("x", "float32", (2, 3, 224, 224)),),
        "method": KEY.method + 1,
        "look": 1,
    }.get(field, "other")
    with CostCache(tmp_path / "c") as cache:
        cache.put(KEY, comparison())
        assert cache.get(dataclasses.replace(KEY, **{field: changed})) is None


def test_an_entry_freezes_what_it_answers(tmp_path: Path):
    calls = 0

    def measure() -> Comparison:
        nonlocal calls
        calls += 1
        return comparison(1.0 + calls)

    with CostCache(tmp_path / "c") as cache:
        assert cache.get_or_measure(KEY, measure) == (comparison(2.0), False)
        assert cache.get_or_measure(KEY, measure) == (comparison(2.0), True)
    assert calls == 1


def test_entries_are_listed_and_cleared(tmp_path: Path):
    other = dataclasses.replace(KEY, device="Small Core")
    with CostCache(tmp_path / "c") as cache:
        cache.put(KEY, comparison(1.1))
        cache.put(other, comparison(1.2))
        cache.put(KEY, comparison(1.3))
        found = {entry.key: entry.comparison for entry in cache.entries()}
        assert found == {KEY: comparison(1.3), other: comparison(1.2)}
        cache.clear()
        assert cache.entries() == []


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database, " * 100)
    with pytest.raises(BadOption, match=r"notes\.txt: cannot be used as a cost file: file is not a database"):
        CostCache(file)
    assert file.read_text() == "not a database, " * 100


def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as database:
        database.execute("create table t (x)")
    database.close()
    before = file.read_bytes()
    with pytest.raises(BadOption, match="a database, but no cost file of superopt"):
        CostCache(file)
    assert file.read_bytes() == before


def test_another_version_is_refused(tmp_path: Path):
    CostCache(tmp_path / "c").close()
    with sqlite3.connect(tmp_path / "c") as database:
        database.execute("pragma user_version = 7")
    database.close()
    with pytest.raises(BadOption, match="expected cost file version 2 or older, found 7"):
        CostCache(tmp_path / "c")


def test_a_file_of_version_1_keeps_its_comparisons_and_learns_about_regions(tmp_path: Path):
    with CostCache(tmp_path / "c") as cache:
        cache.put(KEY, comparison())
    with sqlite3.connect(tmp_path / "c") as database:
        database.execute("drop table regions")
        database.execute("pragma user_version = 1")
    database.close()
    with CostCache(tmp_path / "c") as cache:
        assert cache.get(KEY) == comparison()
        assert cache.get_region(REGION) is None
        cache.put_region(REGION, RegionTime(0.25))
    with CostCache(tmp_path / "c") as cache:
        assert cache.get_region(REGION) == RegionTime(0.25)


@pytest.mark.parametrize("seconds", ["1e308", "-1e308", "9e999", "'long'"])
def test_seconds_that_no_run_takes_are_refused(tmp_path: Path, seconds: str):
    with CostCache(tmp_path / "c") as cache:
        cache.put_region(REGION, RegionTime(0.25))
    with closing(sqlite3.connect(tmp_path / "c")) as database, database:
        database.execute(f"update regions set seconds = {seconds}")
    with CostCache(tmp_path / "c") as cache:
        for reads in (lambda: cache.get_region(REGION), cache.region_entries):
            with pytest.raises(BadOption, match="nor a time"):
                reads()


@pytest.mark.parametrize("found", [RegionTime(1.25e-4), RegionTime(None, "onnxruntime cannot open the model")])
def test_the_time_of_a_region_comes_back_and_the_first_answer_stays(tmp_path: Path, found: RegionTime):
    with CostCache(tmp_path / "c") as cache:
        cache.put_region(REGION, found)
        cache.put_region(REGION, RegionTime(9.0))
    with CostCache(tmp_path / "c") as cache:
        assert cache.get_region(REGION) == found
        cache.clear()
        assert cache.get_region(REGION) is None


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(RegionKey)])
def test_every_field_of_a_regions_key_matters(tmp_path: Path, field: str):
    changed = REGION.method + 1 if field == "method" else "other"
    with CostCache(tmp_path / "c") as cache:
        cache.put_region(REGION, RegionTime(0.25))
        assert cache.get_region(dataclasses.replace(REGION, **{field: changed})) is None


def test_a_regions_time_that_was_tampered_with_is_an_error_not_a_number(tmp_path: Path):
    with CostCache(tmp_path / "c") as cache:
        cache.put_region(REGION, RegionTime(0.25))
    with sqlite3.connect(tmp_path / "c") as database:
        database.execute("update regions set seconds = 'soon'")
    database.close()
    with CostCache(tmp_path / "c") as cache, pytest.raises(BadOption, match="no comparison of superopt"):
        cache.get_region(REGION)


def test_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(BadOption, match="cannot be used as a cost file"):
        CostCache(tmp_path)


def test_an_entry_that_was_tampered_with_is_an_error_not_a_number(tmp_path: Path):
    with CostCache(tmp_path / "c") as cache:
        cache.put(KEY, comparison())
    with sqlite3.connect(tmp_path / "c") as database:
        database.execute("update costs set comparison = '{}'")
    database.close()
    with CostCache(tmp_path / "c") as cache, pytest.raises(BadOption, match="no comparison of superopt"):
        cache.get(KEY)


def _fill(file: Path, worker: int) -> None:
    with CostCache(file) as cache:
        for i in range(20):
            cache.put(dataclasses.replace(KEY, device=f"{worker}-{i}"), comparison())


def test_several_processes_share_a_file(tmp_path: Path):
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_fill, args=(tmp_path / "c", n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    with CostCache(tmp_path / "c") as cache:
        assert len(cache.entries()) == 80


class _Contested(sqlite3.Connection):
    """Another process is writing when the journal is about to be changed, and for a moment longer."""

    other: sqlite3.Connection | None = None

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if "journal_mode" in sql and self.other is None:
            ((_, _, file),) = super().execute("pragma database_list")
            self.other = sqlite3.Connection(file, isolation_level=None, check_same_thread=False)
            self.other.execute("begin immediate")
            threading.Timer(0.1, self.other.close).start()
        return super().execute(sql, *arguments)


def test_a_file_that_another_process_writes_to_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_Contested))
    with CostCache(tmp_path / "c") as cache:
        cache.put(KEY, comparison())
        assert cache.get(KEY) == comparison()


def test_without_a_file_the_users_cache_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with CostCache() as cache:
        assert cache.file == default_cost_file()
    assert tmp_path in default_cost_file().parents
    assert default_cost_file().is_file()
