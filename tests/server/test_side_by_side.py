"""Two jobs at once on one device: both search, one at a time measures, and both end with what was checked."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.sample import build
from superopt.report import Report
from tests.server.processes import Running
from tests.server.shop import OCTETS, settings_for, until

pytestmark = [pytest.mark.ort, pytest.mark.slow]

SERVE = [sys.executable, "-m", "superopt", "serve"]
QUICK = "budget=0.5&threads=1&target=cpu&options=fixed&partial=false&accept=not-slower&portable=false"


def test_two_jobs_side_by_side_end_with_checked_results(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0, devices="cpu", searchers=2, lease=15.0)
    model = build().SerializeToString()
    with Running(settings, SERVE) as running:
        until(lambda: len(running.logged("ready")) == 2, 1200.0)
        with httpx.Client(base_url=running.url, timeout=600.0) as http:
            posted = [
                http.post(f"/v1/jobs?{QUICK}&seed={seed}", content=model, headers=OCTETS).json() for seed in (1, 2)
            ]
            until(lambda: len(running.logged("ended")) == 2, 1800.0)
            jobs = [http.get(f"/v1/jobs/{job['id']}").json() for job in posted]
            reports = [Report.model_validate(http.get(job["links"]["report"]).json()) for job in jobs]
        order = [line["message"] for line in list(running.lines) if line.get("message") in ("begins", "ended")]
    assert order == ["begins", "begins", "ended", "ended"]
    assert [job["state"] for job in jobs] == ["done", "done"]
    assert [job["attempts"] for job in jobs] == [1, 1]
    assert [report.check.status for report in reports] == ["equal", "equal"]
    assert all(report.rewrites for report in reports)
    assert sorted(path.name for path in (tmp_path / "locks").glob("cpu-turn*")) == [
        "cpu-turn.lock", "cpu-turn.lock.queue",
    ]  # fmt: skip
    assert not any("Traceback" in line for line in running.noise), running.noise
