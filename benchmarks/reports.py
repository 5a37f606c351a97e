# pyright: basic
"""A short table from reports of `superopt optimize --report`: what the rules gave, and what session options gave.

python benchmarks/reports.py R.json … > benchmarks/results/NAME.txt
"""

from __future__ import annotations

import sys
from pathlib import Path

from superopt.report import Interval, Report


def ratio(speedup: float | None, interval: Interval | None) -> str:
    if speedup is None:
        return "none sure"
    return f"{speedup:.2f}" + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else "")


def row(path: Path, report: Report) -> str:
    timing, deployment = report.timing, report.deployment
    default = f"{timing.before.median * 1e3:.3f}" if timing.before else "-"
    options = ratio(deployment.speedup, deployment.interval) if deployment else "-"
    chosen = deployment.options.items() if deployment else ()
    base = deployment.base if deployment else {}
    words = ", ".join(f"{name}={value}" for name, value in chosen if base.get(name) != value) or "-"
    rules = ratio(timing.speedup, timing.speedup_interval)
    return f"{path.stem:20s} {default:>10s}  {rules:20s} {options:20s} {report.returned:9s} {words}"


def main(paths: list[str]) -> int:
    reports = [(Path(p), Report.model_validate_json(Path(p).read_text())) for p in paths]
    environments = {
        f"{e.device}, driver {e.driver}, onnxruntime {e.onnxruntime}, onnx {e.onnx}, "
        f"Python {e.python}, {e.threads} threads"
        for e in (report.environment for _, report in reports)
    }
    print("\n".join(sorted(environments)))
    print("rules: the original's time over the rewritten model's, in a default session; options: the default session's")
    print("time over the best options', same model; with 95 % intervals")
    print()
    print(f"{'model':20s} {'default ms':>10s}  {'rules':20s} {'options':20s} {'returned':9s} options found")
    for path, report in reports:
        print(row(path, report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
