"""What was decided survives a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from superopt.errors import BadInput
from superopt.generate.ledger import Ledger, export

pytestmark = pytest.mark.unit

PROVED = {"verdict": "proved", "reason": "", "seconds": 1.0, "form": "rule a"}
REFUTED = {"verdict": "refuted", "reason": "at n=1:\n y differs", "seconds": 0.1, "form": "rule b"}


def test_a_ledger_remembers(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.add(("k1", PROVED), ("k2", REFUTED))
        assert ledger.get("k3") is None
    with Ledger(path) as again:
        assert len(again) == 2
        assert again.get("k1") == PROVED
        assert again.get("k2") == REFUTED


def test_the_first_answer_is_final(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        ledger.add(("k", PROVED))
        ledger.add(("k", REFUTED))
        assert ledger.get("k") == PROVED
    assert len((tmp_path / "l").read_text().splitlines()) == 1


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with Ledger(path) as ledger:
        ledger.add(("k1", PROVED), ("k2", REFUTED))
    path.write_bytes(path.read_bytes()[:-5])
    with Ledger(path) as ledger:
        assert "k1" in ledger
        assert "k2" not in ledger
        ledger.add(("k3", PROVED))
    with Ledger(path) as ledger:
        assert [key for key, _ in ledger.entries()] == ["k1", "k3"]


def test_a_line_that_is_no_entry_is_told(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_text("nonsense\n")
    with pytest.raises(BadInput, match=r"l:1: is no entry"):
        Ledger(path)


def test_nothing_that_was_added_is_lost_by_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "l"
    code = (
        "import sys, pathlib\n"
        "from superopt.generate.ledger import Ledger\n"
        "ledger = Ledger(pathlib.Path(sys.argv[1]))\n"
        "for k in range(10**6):\n"
        "    ledger.add((f'k{k}', {'verdict': 'proved'}))\n"
        "    print(k, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last = [process.stdout.readline() for _ in range(20)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Ledger(path) as ledger:
        assert all(f"k{k}" in ledger for k in range(int(last) + 1))


def test_what_failed_is_written_for_people(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add(("k1", PROVED), ("k2", REFUTED), ("k3", {"forms": []}))
    assert export(ledger.entries(), tmp_path / "failed.log") == 1
    assert (tmp_path / "failed.log").read_text() == "# refuted (k2): at n=1: y differs\nrule b\n"
