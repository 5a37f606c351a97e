"""What gpu.py prints in the end: one line for each network, type and batch size, and the means."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gpu_cells import BEST, COMPILED, DEFAULT, EAGER, METHODS, OURS, PEERS, TUNED, Cell, Place
from benchmarks.gpu_plan import NETWORKS, SETTINGS
from benchmarks.gpu_ratios import Cells, over_ours
from benchmarks.records import Ratio
from benchmarks.standings import geometric_mean, is_slower
from benchmarks.texts import aligned

OTHERS = tuple(method for method in METHODS if method != OURS)
SHORT = {"does not apply": "n/a", "unchanged": "same", "timed out": "slow"}
TIMED = ("ok", "wrong")
LIKE_ITSELF = 2.0
"""Times as far off as the original is on the device: that much is TF32's, or the network's own."""


def places(cells: Cells) -> list[Place]:
    """Those that superopt was run on, in the order of the plan; further models behind, by name."""
    found = {cell.place for cell in cells.values() if cell.method == OURS}
    settings = [(dtype, batch) for dtype, batch in SETTINGS]

    def rank(place: Place) -> tuple[int, int, str]:
        name, dtype, batch = place
        setting = next((i for i, s in enumerate(settings) if s == (dtype, batch)), len(settings))
        return setting, NETWORKS.index(name) if name in NETWORKS else len(NETWORKS), name

    return sorted(found, key=rank)


def counts(cells: Cells, place: Place, method: str) -> Ratio | None:
    """A ratio that says something: both answered right."""
    if any(is_wrong(cells, cells[(*place, m)]) for m in (OURS, method) if (*place, m) in cells):
        return None
    return over_ours(cells, place, method)


def is_wrong(cells: Cells, cell: Cell) -> bool:
    """Off by more than the tolerance, and by more than the original is itself, run on the same device."""
    if cell.status != "wrong" or cell.error is None:
        return cell.status == "wrong"
    itself = [c.error for m in (DEFAULT, BEST) if (c := cells.get((*cell.place, m))) and c.error is not None]
    return cell.error > LIKE_ITSELF * max(itself, default=0.0)


def shown(cells: Cells, place: Place, method: str, interval: bool = False) -> str:
    """The method's time over superopt's; `!` where superopt is slower beyond noise; else why there is none."""
    cell = cells.get((*place, method))
    if cell is None:
        return "-"
    ratio = over_ours(cells, place, method)
    if ratio is None or cell.status not in TIMED:
        return SHORT.get(cell.status, cell.status)
    text = f"{ratio.value:.2f}"
    if interval and ratio.low is not None and ratio.high is not None and ratio.low != ratio.high:
        text += f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    return text + (" wrong" if is_wrong(cells, cell) else "!" if is_slower(ratio) else "")


def compiled(cells: Cells, place: Place) -> Ratio | None:
    """The better of torch's two modes."""
    found = [ratio for mode in (COMPILED, TUNED) if (ratio := counts(cells, place, mode))]
    return min(found, key=lambda ratio: ratio.value, default=None)


def best_peer(cells: Cells, place: Place) -> Ratio | None:
    """The fastest of the other optimizers; one that changes nothing runs as the original does."""
    found = [ratio for peer in PEERS if (ratio := counts(cells, place, peer))]
    if any((c := cells.get((*place, peer))) and c.status == "unchanged" for peer in PEERS):
        found += [ratio] if (ratio := counts(cells, place, BEST)) else []
    return min(found, key=lambda ratio: ratio.value, default=None)


def means(cells: Cells, among: Sequence[Place]) -> dict[str, tuple[float, int]]:
    """For each method the geometric mean of its time over superopt's, and over how many networks."""
    found = {m: [r.value for place in among if (r := counts(cells, place, m))] for m in OTHERS}
    return {method: (geometric_mean(values), len(values)) for method, values in found.items() if values}


def microseconds(cell: Cell | None) -> str:
    return "-" if cell is None or cell.median is None else f"{1e6 * cell.median:.0f}"


def row(cells: Cells, place: Place, methods: Sequence[str]) -> tuple[str, ...]:
    name, dtype, batch = place
    default, ours = cells.get((*place, DEFAULT)), cells.get((*place, OURS))
    made = ours.made.returned if ours and ours.made else ours.status if ours else "-"
    ratios = (shown(cells, place, method) for method in methods)
    return f"{name} {dtype} b{batch}", microseconds(default), microseconds(ours), *ratios, made


def table(cells: Cells) -> str:
    """Short: no intervals, which the file has."""
    among = places(cells)
    methods = [m for m in OTHERS if any((*place, m) in cells for place in among)]
    rows = [("network", "ort µs", "ours µs", *methods, "returned"), *(row(cells, place, methods) for place in among)]
    average = means(cells, among)
    last = [f"{average[m][0]:.2f} of {average[m][1]}" if m in average else "-" for m in methods]
    return aligned([*rows, ("geometric mean", "", "", *last, "")])


def troubles(cells: Cells) -> list[str]:
    """What was not measured, and why."""
    bad = [c for _, c in sorted(cells.items()) if c.status in ("failed", "timed out") or is_wrong(cells, c)]
    return [f"{c.model} {c.dtype} b{c.batch} {c.method}: {c.status} {c.detail}".rstrip() for c in bad]


def lost(cells: Cells) -> list[str]:
    """Where superopt's result is slower than another, beyond noise."""
    found: list[str] = []
    for place in places(cells):
        slower = [m for m in OTHERS if m != EAGER and (r := counts(cells, place, m)) and is_slower(r)]
        found += [f"{place[0]} {place[1]} b{place[2]}: slower than {', '.join(slower)}"] if slower else []
    return found
