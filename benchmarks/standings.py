"""What the numbers of optimizer.py say: speed-ups, who lost to whom, the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.records import BY_HAND, ORIGINAL, OURS, PeerOutcome, Ratio, Result
from benchmarks.texts import aligned

NOISE = 0.02
SHORT = {"unchanged": "same", "does not apply": "n/a", "not installable": "none"}


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def speedup(result: Result) -> Ratio | None:
    """The original's time over that of superopt's result."""
    original = result.contender(ORIGINAL)
    return original.ratio if original else None


def certain(ratio: Ratio) -> float:
    """The speed-up if its interval excludes 1, else 1: what can be claimed."""
    if ratio.low is None or ratio.high is None or ratio.low <= 1.0 <= ratio.high:
        return 1.0
    return ratio.value


def is_slower(ratio: Ratio | None) -> bool:
    """superopt's result loses beyond noise: the whole interval lies below 1, by more than 2 %."""
    return ratio is not None and ratio.high is not None and ratio.high < 1.0 - NOISE


def loses_to(result: Result) -> list[str]:
    """Nobody loses to a model that computes something else."""
    return [c.name for c in result.contenders if is_slower(c.ratio) and not result.is_wrong(c.name)]


def problems(result: Result) -> list[str]:
    """Everything that must not be, in words."""
    found = [f"optimize: {result.optimize.problem}"] if result.optimize.problem else []
    if result.audit.status == "failed":
        found.append(f"audit: {result.audit.detail}")
    if result.timing_problem:
        found.append(f"timing: {result.timing_problem}")
    lost = loses_to(result)
    return [*found, f"slower than {', '.join(lost)}"] if lost else found


def verdict(result: Result) -> str:
    if found := problems(result):
        return "FAILED: " + "; ".join(found)
    ratio = speedup(result)
    if result.optimize.returned == "original":
        return "the original came back"
    return "faster" if ratio is not None and certain(ratio) > 1.0 else "not measurably faster"


def shown(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    if ratio.low is None or ratio.high is None or ratio.low == ratio.high:
        return f"{ratio.value:.2f}"
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def cell(result: Result, name: str) -> str:
    """One contender in the table: the ratio, `!` where superopt loses, or why there is none."""
    contender = result.contender(name)
    if contender and contender.ratio:
        mark = " wrong" if result.is_wrong(name) else "!" if is_slower(contender.ratio) else ""
        return shown(contender.ratio) + mark
    outcome = result.outcome(name)
    if outcome is not None and outcome.status != "ok":
        return SHORT.get(outcome.status, outcome.status)
    return "failed" if contender else "-"


def row(result: Result, names: Sequence[str]) -> tuple[str, ...]:
    done, original = result.optimize, result.contender(ORIGINAL)
    latency = f"{original.median * 1e3:.3f}" if original and original.median else "-"
    return (
        result.name,
        f"{result.nodes} -> {done.nodes or '-'}",
        f"{result.file_bytes / 1e6:.1f} -> {done.file_bytes / 1e6:.1f}",
        latency,
        *(cell(result, name) for name in names),
        "-" if done.search_seconds is None else f"{done.search_seconds:.1f}",
        f"{done.seconds:.0f}",
        f"{done.peak_memory_bytes / 1e6:.0f}",
        result.audit.status,
        verdict(result),
    )


def table(results: Sequence[Result], peers: Sequence[str]) -> str:
    names = (ORIGINAL, *peers, BY_HAND)
    columns = ("model", "nodes", "MB", "original ms", *names, "search s", "s", "peak MB", "audit", "verdict")
    return aligned([columns, *(row(result, names) for result in results)])


def means(results: Sequence[Result], peers: Sequence[str]) -> dict[str, float]:
    """Geometric mean over the original, of superopt's results and of the peers'.

    A model that a peer could not do counts as 1 for that peer: its user would keep the original. A peer that did none
    has no mean.
    """
    timed = [(result, ratio) for result in results if (ratio := speedup(result))]
    found = {OURS: geometric_mean(ratio.value for _, ratio in timed)}
    for peer in peers:
        if any(result.contender(peer) for result, _ in timed):
            found[peer] = geometric_mean(_peer_speedup(result, ratio, peer) for result, ratio in timed)
    return found


def _peer_speedup(result: Result, ours: Ratio, peer: str) -> float:
    contender = result.contender(peer)
    if contender is None or contender.ratio is None or result.is_wrong(peer):
        return 1.0
    return ours.value / contender.ratio.value


def summary(results: Sequence[Result], peers: Sequence[str]) -> list[str]:
    timed = [(result.group, ratio) for result in results if (ratio := speedup(result))]
    states = sorted({result.code for result in results})
    lines = [f"{len(results)} models, {len(timed)} timed; state of the code: {', '.join(states)}"]
    if timed:
        values = [ratio.value for _, ratio in timed]
        claimed = geometric_mean(certain(ratio) for _, ratio in timed)
        lines.append(
            f"geometric mean speed-up over the original: {geometric_mean(values):.3f}x "
            f"({claimed:.3f}x if what is within noise counts as 1)"
        )
        groups = {group: [r.value for g, r in timed if g == group] for group in dict.fromkeys(g for g, _ in timed)}
        lines.append("  " + ", ".join(f"{g}: {geometric_mean(v):.3f}x of {len(v)}" for g, v in groups.items()))
    overall = means(results, peers)
    for peer in peers:
        mean = f"{overall[peer]:.3f}x; " if peer in overall else ""
        lines.append(f"{peer}: {mean}{_tally(results, peer)}")
    lines += _by_hand(results)
    failed = [f"  {result.name}: {verdict(result)}" for result in results if problems(result)]
    return [*lines, f"{len(failed)} failed" if failed else "none failed", *failed]


def _tally(results: Sequence[Result], peer: str) -> str:
    outcomes: list[PeerOutcome] = [o for result in results for o in result.peers if o.peer == peer]
    counts: Mapping[str, int] = Counter(o.status for o in outcomes)
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "not run"


def _by_hand(results: Sequence[Result]) -> list[str]:
    found = [(r.name, c.ratio) for r in results if (c := r.contender(BY_HAND)) and c.ratio]
    if not found:
        return []
    slower = [name for name, ratio in found if is_slower(ratio)]
    return [f"merged by hand: {len(found) - len(slower)} of {len(found)} results at least as fast, within noise"]
