"""Plots of what was measured on a GPU: speed-ups over onnxruntime's default session, longer is faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import gpu_table
from benchmarks.gpu_cells import BEST, DEFAULT, Place
from benchmarks.gpu_ratios import Cells
from benchmarks.gpu_table import best_peer, compiled, counts
from benchmarks.plots import bars
from benchmarks.records import Ratio
from benchmarks.standings import geometric_mean

Others = tuple[Callable[[Cells, Place], Ratio | None], ...]

SERIES = ("superopt", "onnxruntime, best options", "torch.compile", "best peer")
OTHERS: Others = (lambda cells, place: counts(cells, place, BEST), compiled, best_peer)


def networks(cells: Cells, device: str) -> str | None:
    """One at a time in float32, each network for itself; none before a GPU was measured."""
    shown = [place for place in gpu_table.places(cells) if place[1:] == gpu_table.SETTINGS[0]]
    groups: dict[str, list[float | None]] = {}
    for place in shown:
        if (default := counts(cells, place, DEFAULT)) is not None:
            others = (of(cells, place) for of in OTHERS)
            groups[place[0]] = [default.value, *(None if r is None else default.value / r.value for r in others)]
    title = f"{device}: speed-up over onnxruntime's default session, float32, batch 1"
    return bars(title, SERIES, groups) if groups else None


def settings(cells: Cells, device: str) -> str | None:
    """Means of all networks in each type and batch size that several were measured in."""
    among = gpu_table.places(cells)
    groups: dict[str, list[float | None]] = {}
    for dtype, batch in dict.fromkeys(place[1:] for place in among):
        found = _means(cells, [place for place in among if place[1:] == (dtype, batch)])
        if found is not None:
            count, values = found
            groups[f"{dtype}, batch {batch}, {count} networks"] = values
    title = f"{device}: speed-up over onnxruntime's default session, geometric means"
    return bars(title, SERIES, groups) if groups else None


def _means(cells: Cells, here: Sequence[Place]) -> tuple[int, list[float | None]] | None:
    """Of the networks that all were measured on, so that bars compare; who was measured on less than nine in ten has
    none."""
    default = {place: r.value for place in here if (r := counts(cells, place, DEFAULT))}
    ratios = [{place: r.value for place in default if (r := of(cells, place))} for of in OTHERS]
    told = [found if len(found) >= 0.9 * len(default) else None for found in ratios]
    common = [place for place in default if all(found is None or place in found for found in told)]
    if len(common) < 2:
        return None
    speedups = [None if f is None else geometric_mean([default[p] / f[p] for p in common]) for f in told]
    return len(common), [geometric_mean([default[p] for p in common]), *speedups]
