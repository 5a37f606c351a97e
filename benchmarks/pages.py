"""docs/benchmarks.md, its plot and the README's table, from benchmarks/results/*.json (`python benchmarks/pages.py`).

With --check nothing is written; the exit code says whether they are what the results say. Numbers of these pages come
from nowhere else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import gpu_table, page_plots, standings
from benchmarks.gpu_cells import BEST, DEFAULT, EAGER, METHODS, OURS, PEERS, Book, Cell, Key, Place, Run, read
from benchmarks.gpu_table import best_peer, compiled, counts
from benchmarks.records import BY_HAND, ORIGINAL, Result

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
HEADLINE = (
    "device",
    "networks",
    "over the default session",
    "over best options",
    "over torch.compile",
    "over the best peer",
)
OVERVIEW, EACH = "speed-ups.svg", "benchmarks.svg"
TITLES = {BEST: "best options", EAGER: "torch eager", "torch.compile": "compile", "torch.max-autotune": "max-autotune"}

INTRODUCTION = """\
# Benchmarks

<!-- Printed by benchmarks/pages.py from benchmarks/results. Run it after a measurement; do not edit. -->

Every number here was measured, by the command given with it; the files it comes from are in
[benchmarks/results](../benchmarks/results). Numbers under a method are its time over that of superopt's result: above
1, superopt's is faster. In brackets the 95 % interval; `!` marks where superopt's is slower by more than 2 % with
confidence, and nothing is left out because it looks bad.
"""

METHOD = """\
- **ort**: onnxruntime's default session on the original. **best options**: the same graph with the session options that
  superopt's own search finds for it, those of superopt's result where it finds none; `-` where neither was measured.
  **superopt**: its result, with the options it found.
- **onnxsim, onnxslim, onnxscript, ort.transformers**: their results with their defaults, under the original's best
  options, in a default session where they do not run so. With options their ratios are taken by way of the original
  with its best options, which runs beside them and beside superopt's result; in cells measured before 2026-11-19 05:00
  they come from two medians, of two days or machines. ort.transformers is asked for a GPU: for a CPU, its default, it
  widens float16. `same`: the graph came back as it was.
- **by hand**: the same function as a careful person would write it (handmade.py), under the default or the original's
  best options, in a race of its own: its ratio comes from two medians.
- **torch**: the same network and weights, tensors on the device, each run waited for; **compile** and **max-autotune**
  are torch.compile's modes reduce-overhead and max-autotune, which use CUDA graphs too.
- onnxruntime's contenders are timed in turns in one process, on inputs and outputs that stay on the device; torch in a
  process of its own, and its ratio comes from two medians. Where two ratios are multiplied, errors add up in squares.
  Each is opened once: that one opening, or one machine of a kind, is luckier than another is in no interval.
- Answers are compared with those of the original on onnxruntime's CPU provider; `wrong` marks what is off by more than
  the tolerance and by more than twice what the original is off on the GPU, where TF32 rounds it, and does not count.
  superopt's own check is stricter, without TF32.

[The commands](#commands), with their dates and versions, come last.
"""


def load_gpu(folder: Path) -> Book:
    path = folder / "gpu.json"
    return read(path) if path.exists() else Book()


def load_cpu(folder: Path) -> list[Result]:
    path = folder / "optimizer-cpu.json"
    return [Result.model_validate(m) for m in json.loads(path.read_text())["models"]] if path.exists() else []


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruler = ["---", *("---:" for _ in header[1:])]
    return ["| " + " | ".join(cells) + " |" for cells in (header, ruler, *rows)]


# ---------------------------------------------------------------------- the GPU


def gpu_section(book: Book, drawn: Sequence[str]) -> list[str]:
    cells = {cell.key: cell for cell in book.cells}
    among = gpu_table.places(cells)
    if not among:
        return []
    methods = [m for m in METHODS if m != OURS and any((*place, m) in cells for place in among)]
    lines = [f"## {_device(book)}", "", METHOD]
    lines += [f"![speed-up](images/{name})\n" for name in drawn]
    for dtype, batch in dict.fromkeys(place[1:] for place in among):
        here = [place for place in among if place[1:] == (dtype, batch)]
        rows = [[place[0], *_times(cells, place), *(_ratio(cells, place, m) for m in methods)] for place in here]
        average = gpu_table.means(cells, here)
        last = [f"{average[m][0]:.2f} of {average[m][1]}" if m in average else "" for m in methods]
        header = ["network", "ort µs", "superopt µs", *(TITLES.get(m, m) for m in methods)]
        lines += [f"### {dtype}, batch {batch}", "", *markdown(header, [*rows, ["geometric mean", "", "", *last]]), ""]
    return [*lines, *_trouble(cells), *_made(cells, among), "### Commands", "", *_runs(book), ""]


def _device(book: Book) -> str:
    return ", ".join(dict.fromkeys(run.device for run in book.runs))


def _runs(book: Book) -> Iterator[str]:
    """Those with the same versions of everything together."""
    machines: dict[str, list[Run]] = {}
    for run in book.runs:
        versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
        machines.setdefault(f"driver {run.driver or '-'}, {versions}", []).append(run)
    for machine, runs in machines.items():
        yield f"- {machine}:"
        yield from (f"  - {run.date}, superopt at {run.code}: `{run.command}`" for run in runs)
    yield from (f"- {note}" for note in dict.fromkeys(note for run in book.runs for note in run.notes))


def _times(cells: dict[Key, Cell], place: Place) -> list[str]:
    return [gpu_table.microseconds(cells.get((*place, method))) for method in (DEFAULT, OURS)]


def _ratio(cells: dict[Key, Cell], place: Place, method: str) -> str:
    return gpu_table.shown(cells, place, method, interval=True)


def _made(cells: dict[Key, Cell], among: Sequence[Place]) -> list[str]:
    rows: list[list[str]] = []
    for place in among:
        cell = cells[(*place, OURS)]
        if cell.made is None:
            continue
        rules = ", ".join(f"{name} ({count})" for name, count in list(cell.made.rules.items())[:6])
        options = ", ".join(f"{k.removeprefix('cuda.')}={v}" for k, v in cell.options.items())
        nodes = f"{cell.made.nodes_before} → {cell.made.nodes_after}"
        used = rules if cell.made.returned == "optimized" else "the original came back"
        rows.append(
            [" ".join((place[0], place[1], f"b{place[2]}")), nodes, used or "-", options or "-", cell.made.check]
        )
    if not rows:
        return []
    header = ["network", "nodes", "rules used most", "session options", "check"]
    return ["### What superopt did", "", *markdown(header, rows), ""]


def _trouble(cells: dict[Key, Cell]) -> list[str]:
    found = [*gpu_table.lost(cells), *gpu_table.troubles(cells)]
    return ["### Lost, failed or wrong", "", *(f"- {line}" for line in found), ""] if found else []


# ---------------------------------------------------------------------- the CPU, mutants


def cpu_section(results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    peers = [p for p in dict.fromkeys(o.peer for r in results for o in r.peers) if any(r.contender(p) for r in results)]
    names = (ORIGINAL, *peers, BY_HAND)
    e = next(r.environment for r in results if r.environment)
    average = standings.means(results, peers)
    rows = [
        [r.name, *(standings.row(r, ())[i] for i in (1, 3)), *(standings.cell(r, n) for n in names)] for r in results
    ]
    dates = sorted(r.date for r in results)
    told = ", ".join(f"{name} {mean:.3f}" for name, mean in average.items())
    return [
        f"## {e.device}",
        "",
        f"onnxruntime {e.onnxruntime}, onnx {e.onnx}, {dates[0]} to {dates[-1]};",
        "[the command and the whole table](../benchmarks/results/optimizer-cpu.txt). All under onnxruntime's full",
        "optimization; `by hand`: the same network merged by a careful person.",
        "",
        f"Geometric mean of the speed-up over the original, {len(results)} networks: {told}.",
        "",
        *markdown(["network", "nodes", "original ms", *names], rows),
        "",
    ]


def mutants_section(folder: Path) -> list[str]:
    lines: list[str] = []
    for path in sorted(folder.glob("partial-*.json")):
        content: dict[str, Any] = json.loads(path.read_text())
        rows = [
            [name, _whole(row["whole"]), ", ".join(_families(row["programs"]))]
            for name, row in content["models"].items()
        ]
        header = ["network", "whole network", "fastest mutant of a family, over the program it replaces"]
        lines += [f"### {content['facts']}", "", *markdown(header, rows), ""]
    if not lines:
        return []
    about = (
        "Programs that are wrong in a part, mended and proved ([how](partial.md)): speed-up of the whole network, and"
    )
    return ["## Partially equivalent mutants", "", about, "and of single programs, by the clock.", "", *lines]


def _whole(whole: dict[str, Any]) -> str:
    speedup, bounds = whole.get("speedup"), whole.get("interval")
    if whole.get("returned") != "optimized" or speedup is None:
        return "the original came back" if "verdict" in whole else whole.get("problem", "-")
    return f"{speedup:.2f}" + (f" [{bounds['low']:.2f}, {bounds['high']:.2f}]" if bounds else "")


def _families(programs: Sequence[dict[str, Any]]) -> list[str]:
    best: dict[str, float] = {}
    for program in programs:
        for family, mutant in program["mutants"].items():
            best[family] = max(best.get(family, 0.0), mutant["speedup"])
    return [f"{family} {speedup:.2f}" for family, speedup in sorted(best.items(), key=lambda pair: -pair[1])]


# ---------------------------------------------------------------------- pages


def page(folder: Path = RESULTS) -> str:
    gpu = gpu_section(load_gpu(folder), list(plots(folder)))
    parts = [INTRODUCTION, *gpu, *cpu_section(load_cpu(folder)), *mutants_section(folder)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def plots(folder: Path = RESULTS) -> dict[str, str]:
    """By the names of their files; none before a GPU was measured."""
    book = load_gpu(folder)
    cells, device = {cell.key: cell for cell in book.cells}, _device(book)
    drawn = {OVERVIEW: page_plots.settings(cells, device), EACH: page_plots.networks(cells, device)}
    return {name: svg for name, svg in drawn.items() if svg is not None}


def headline(folder: Path = RESULTS) -> list[str]:
    """Four lines at most: the GPU in all types and batch sizes, the CPU."""
    book = load_gpu(folder)
    cells = {cell.key: cell for cell in book.cells}
    rows: list[list[str]] = []
    among = gpu_table.places(cells)
    if among:
        ratios = [
            [r.value for place in among if (r := of(place))]
            for of in (
                lambda place: counts(cells, place, DEFAULT),
                lambda place: counts(cells, place, BEST),
                lambda place: compiled(cells, place),
                lambda place: best_peer(cells, place),
            )
        ]
        types = ", ".join(dict.fromkeys(place[1] for place in among))
        networks = len({place[0] for place in among})
        many = f"{networks} in {len(among)} types and batch sizes" if len(among) > networks else str(networks)
        rows.append([f"{_device(book)} ({types})", many, *map(_mean, ratios)])
    results = load_cpu(folder)
    if results:
        environment = next(r.environment for r in results if r.environment)
        names = [p for p in PEERS if any(r.contender(p) for r in results)]
        average = standings.means(results, names)
        peers = max(average[name] for name in names)
        values = [f"{average[OURS]:.2f}", "-", "-", f"{average[OURS] / peers:.2f}"]
        rows.append([environment.device, str(len(results)), *values])
    return markdown(HEADLINE, rows) if rows else []


def _mean(values: Sequence[float]) -> str:
    return f"{standings.geometric_mean(values):.2f}" if values else "-"


def readme(text: str, folder: Path = RESULTS) -> str:
    """The README with its table printed anew: the lines that follow the one that names the columns."""
    lines, found = text.splitlines(), headline(folder)
    at = next((i for i, line in enumerate(lines) if line.startswith(f"| {HEADLINE[0]} | {HEADLINE[1]} |")), None)
    if at is None:
        raise ValueError("README.md has no table of benchmarks")
    end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join([*lines[:at], *found, *lines[end:]]) + "\n"


def pages(folder: Path = RESULTS, root: Path = ROOT) -> dict[Path, str]:
    found = {root / "docs" / "benchmarks.md": page(folder)}
    found[root / "README.md"] = readme((root / "README.md").read_text(), folder)
    return found | {root / "docs" / "images" / name: svg for name, svg in plots(folder).items()}


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text() != text]
    if "--check" in words:
        for path in stale:
            print(f"{path.name} is not what the results say; run: python benchmarks/pages.py", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.write_text(pages()[path])
        print(f"wrote {path.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
