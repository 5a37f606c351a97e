"""Cells, jobs and races for the tests of the benchmark on a GPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks import gpu_jobs
from benchmarks.gpu_cells import COMPILED, CORE, Cell, Run
from benchmarks.gpu_jobs import Workplace
from benchmarks.gpu_plan import Job
from superopt.cost.result import Comparison
from superopt.report import Interval

PLACE = ("bert_base", "fp16", 1)
CODE = "0123abcd"


def run(code: str = CODE) -> Run:
    return Run(command="python benchmarks/gpu.py", date="2030-01-01", device="G", driver="1", versions={}, code=code)


def cell(method: str, median: float | None = 0.001, place: tuple[str, Any, int] = PLACE, **more: Any) -> Cell:
    code = CODE if method in CORE else ""
    fields: dict[str, Any] = {"status": "ok", "code": code, "median": median, **more}
    return Cell(model=place[0], dtype=place[1], batch=place[2], method=method, **fields)


def around(value: float, share: float = 0.01) -> Interval:
    return Interval(low=value * (1 - share), high=value * (1 + share))


def place(tmp_path: Path, seconds: float = 1000.0) -> Workplace:
    return Workplace(tmp_path, "cpu", 1.0, 1.0, CODE, time.monotonic() + seconds)


def made(work: Workplace, model: str = "bert_base") -> Job:
    job = Job(model, "fp16", 1, (COMPILED,))
    files = gpu_jobs.files_of(work.work, job.place)
    files.folder.mkdir(parents=True)
    files.reference.touch()
    return job


def comparison(medians: dict[str, float], ratios: dict[str, float]) -> Comparison:
    def latency(value: float) -> dict[str, Any]:
        return {"median": value, "interval": {"low": value, "high": value}, "spread": 0.0, "runs": 9}

    return Comparison.model_validate(
        {
            "subjects": [{"name": name, "latency": latency(value)} for name, value in medians.items()],
            "pairs": [
                {
                    "name": name, "verdict": "slower", "reason": "", "speedup": value,
                    "interval": {"low": value * 0.98, "high": value * 1.02}, "sittings": 4, "pairs": 40,
                }
                for name, value in ratios.items()
            ],
            "seconds": 1.0,
            "one_at_a_time": False,
        }
    )  # fmt: skip


def raced(first: str, medians: dict[str, float], errors: dict[str, Any] | None = None) -> dict[str, Any]:
    ratios = {name: medians[first] / value for name, value in medians.items() if name != first}
    told = comparison(medians, ratios).model_dump(mode="json")
    return {"errors": errors or dict.fromkeys(medians, 1e-4), "first": first, "comparison": told}
