"""Models as they are, against each other: `superopt check` and `superopt bench`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from superopt.cost.memory import peak_resident_bytes
from superopt.cost.result import PairTiming
from superopt.errors import CannotRun
from superopt.ir.onnx import Model, load
from superopt.ir.onnx.stats import total_bytes
from superopt.options import Options
from superopt.report import BenchReport, BenchRow, CheckReport, Latency
from superopt.runtime.session import Session
from superopt.search.noted import unused_options
from superopt.search.trial import Trial, refuse_future

Tell = Callable[[str, str], None]


def check_models(original: Path, candidate: Path, options: Options, tell: Tell) -> CheckReport:
    tell("loading", original.name)
    trial = Trial(load(original), options, tell)
    refuse_future(load(candidate))
    try:
        Session(candidate, trial.deployment).close()
    except CannotRun as error:
        return CheckReport(status="unchecked", reason=f"the candidate: {error}", runs=0, inputs=[], outputs=[])
    return trial.check(candidate)


def bench_models(paths: Sequence[Path], options: Options, tell: Tell) -> BenchReport:
    """Every model on the same inputs, those of the first."""
    models = {str(path): load(path) for path in paths}
    trial = Trial(models[str(paths[0])], options, tell)
    comparison, frozen = trial.compare_all(models)
    rows: list[BenchRow] = []
    for name, model in models.items():
        pair = comparison.pair(name) if name != str(paths[0]) else None
        rows.append(
            BenchRow(
                model=name,
                file_bytes=total_bytes(model),
                latency=comparison.latency(name),
                speedup=pair.speedup if pair is not None else None,
                speedup_interval=pair.interval if pair is not None else None,
                verdict=_verdict(pair, comparison.latency(name)),
            )
        )
    return BenchReport(
        rows=rows, shapes=trial.shapes, environment=trial.environment(),
        peak_memory_bytes=peak_resident_bytes(), frozen=frozen, notes=_notes(models, trial),
    )  # fmt: skip


def _notes(models: Mapping[str, Model], trial: Trial) -> list[str]:
    """All models run alike here; one that superopt made may be meant to be run otherwise."""
    unused = {name: unused_options(model, trial.timed) for name, model in models.items()}
    told = [
        f"{name}: optimized to be run with {options} besides, as its metadata says; here all models were run alike"
        for name, options in unused.items()
        if options
    ]
    return [note for note in (trial.settled_note, *told) if note]


def _verdict(pair: PairTiming | None, latency: Latency | None) -> str:
    if pair is None:
        return "the yardstick"
    return pair.verdict if latency is not None else pair.reason
