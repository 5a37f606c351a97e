from pathlib import Path

import pytest

from superopt.runtime.cores import container_quota, physical_cores

pytestmark = pytest.mark.unit


def test_hyperthreads_of_one_core_count_once(tmp_path: Path):
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "core_cpus_list").write_text(siblings + "\n")
    assert physical_cores(range(4), tmp_path) == 2
    assert physical_cores({1, 3}, tmp_path) == 1


def test_without_topology_each_cpu_is_a_core(tmp_path: Path):
    assert physical_cores({0, 5, 7}, tmp_path) == 3


@pytest.mark.parametrize(
    ("text", "cpus"), [("200000 100000\n", 2), ("150000 100000\n", 2), ("max 100000\n", None), ("", None)]
)
def test_container_quota(tmp_path: Path, text: str, cpus: int | None):
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert container_quota(file) == cpus


def test_no_quota_file_is_no_quota(tmp_path: Path):
    assert container_quota(tmp_path / "absent") is None
