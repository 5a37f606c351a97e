# pyright: basic
"""What measuring buys: one search with all of its measuring time and with a tenth of it, and which result is faster.

    python benchmarks/tenth.py [--models DIR]… [--only REGEX] [--target cpu|cuda] [--budget SECONDS] [--race SECONDS]

Both searches think for as long; what differs is how many regions are put on the clock, and for how long. The tidied
model and both results are then timed in one interleaved run. Networks of built.py, and the models of the folders given.
Results are not checked here: this is about time alone.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import built
from benchmarks.subjects import in_folder
from benchmarks.texts import aligned
from superopt.cost.turn import ALONE
from superopt.ir.onnx import Model, load
from superopt.ir.onnx.save import stage
from superopt.normalize import normalize
from superopt.options import Options
from superopt.rewrite.emit import Vocabulary
from superopt.runtime.facts import device_facts, runtime_facts
from superopt.search.ending import Ending
from superopt.search.hunting import MEASURE, Ground
from superopt.search.optimize import trial_of
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.trial import Trial
from superopt.search.workshop import Workshop

TIDIED, ALL, TENTH = "tidied", "all of it", "a tenth"
LATE = 1.02


@dataclass(frozen=True)
class Found:
    """A search's result and what it put on the clock."""

    model: Model
    measured: int
    seconds: float


def search(trial: Trial, workshop: Workshop, options: Options, share: float, folder: Path) -> Found:
    """With this share of the measuring time."""
    with Ground(trial, options, lambda *_: None, Ending(), measuring=share * MEASURE) as ground:
        found = ground.hunt(workshop).found
    graph, _, _ = workshop.build(found.trace)
    written = stage(workshop.model, graph, folder, "found.onnx", "found.onnx.data")
    return Found(load(written.path), found.measured, found.measuring)


def compared(path: Path, book: Rulebook, options: Options, seconds: float) -> list[str]:
    """A row of the table, without the name."""
    model = load(path)
    trial = trial_of(model, options, lambda *_: None, Ending(), ALONE)
    on_cuda = trial.deployment.target == "cuda"
    workshop = Workshop(
        model, normalize(model, for_cuda=on_cuda).graph, book, Vocabulary(cuda=on_cuda, for_cuda=on_cuda)
    )
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        tidied = load(stage(model, workshop.tidied, where / "tidied", "tidied.onnx", "tidied.onnx.data").path)
        full = search(trial, workshop, options, 1.0, where / "full")
        tenth = search(trial, workshop, options, 0.1, where / "tenth")
        told, _ = trial.compare_all({ALL: full.model, TENTH: tenth.model, TIDIED: tidied}, seconds)
    after = told.pair(TENTH)
    gain, late = told.pair(TIDIED).speedup, after.speedup
    bounds = f"[{1 / after.interval.high:.3f}, {1 / after.interval.low:.3f}]" if after.interval else ""
    return [
        f"{full.measured} in {full.seconds:.1f} s", f"{tenth.measured} in {tenth.seconds:.1f} s",
        "-" if gain is None else f"{1 / gain:.3f}", "-" if late is None else f"{1 / late:.3f} {bounds}",
    ]  # fmt: skip


def paths(folders: Sequence[Path], only: str, made: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name, build in built.MODELS.items():
        if re.search(only, name):
            found[name] = made / f"{name}.onnx"
            onnx.save(build(), found[name])
    for folder in folders:
        found |= {s.name: s.path for s in in_folder(folder) if re.search(only, s.name)}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, action="append", default=[], metavar="DIR")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--target", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--budget", type=float, default=30.0, metavar="SECONDS", help="of each search")
    parser.add_argument("--race", type=float, default=15.0, metavar="SECONDS", help="for the last comparison")
    given = parser.parse_args(arguments)
    options = Options.of(target=given.target, budget=given.budget, partial=False)
    book = open_rulebook()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in paths(given.models, given.only, Path(folder)).items():
            rows.append([name, *compared(path, book, options, given.race)])
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    ratios = [float(row[4].split()[0]) for row in rows if row[4] != "-"]
    target = "cuda" if given.target == "cuda" else "cpu"
    device, runtime = device_facts(target, 0), runtime_facts()
    measuring = f"--budget {given.budget:g}, of which {MEASURE * given.budget:g} s to measure"
    print(f"{device.name}, onnxruntime {runtime.version}; {measuring}")
    print("time with a tenth of the measuring over that with all of it; above 1 the full search's result is faster\n")
    header = ["network", "all of it", "a tenth", "tidied over all", "a tenth over all"]
    print(aligned([header, *rows]))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean {mean:.3f}; within 2 %: {sum(r <= LATE for r in ratios)} of {len(ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
