# pyright: basic
"""Hold superopt's passes to the test suite of the onnx package (`make conformance`).

Every case goes three ways:

  before   does onnxruntime run the model, and is its answer the one the suite expects?
  tidy     superopt's passes, without the clock: the candidate is taken even where it is not faster, because
           a pass that is only right when it happens to win is not right
  after    does onnxruntime run the candidate, and is its answer still what the suite expects and what the
           original answered?

A model that onnxruntime does not run must come back unharmed: through import and export equal as a
protobuf, byte for byte if no pass changed it, and as valid as it was for onnx's checker.

Cases run in worker processes, so that a crash or a hang inside a library is counted, not suffered.
Exit code 1 unless nothing is wrong, crashed or harmed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import suite

RESULTS = Path(__file__).parent / "results" / "conformance.txt"
# A new process spends seconds on imports: its first case must not pay for them.
START = 60.0

# What is judged: model in, (candidate, names of the rewrites made) out.
Tidy = Callable[[bytes], tuple[bytes, tuple[str, ...]]]
# Import and export with no pass between.
RoundTrip = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Outcome:
    """What became of one case. Empty texts are good news."""

    name: str
    kind: str
    not_run: str = ""  # why onnxruntime does not run the original
    unexpected: str = ""  # how its answer differs from the suite's
    random: bool = False
    rewrites: tuple[str, ...] = ()
    changed: bool = False
    refused: str = ""  # superopt says in one line that it does not take this model
    wrong: str = ""
    crashed: str = ""
    harmed: str = ""


def superopt_tidy(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    from superopt.search.tidy import tidy  # in the worker only: the parent must outlive anything

    tidied = tidy(model)
    if tidied.changed == (tidied.model == model):
        raise AssertionError(f"changed is {tidied.changed}, but that is not what the bytes say")
    return tidied.model, tuple(r.name for r in tidied.rewrites)


def superopt_round_trip(model: bytes) -> bytes:
    from superopt.ir.onnx import encode, parse

    parsed = parse(model)
    return encode(parsed, parsed.graph).SerializeToString()


def no_passes(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """For `--before-only`: what onnxruntime itself makes of the suite."""
    return model, ()


def same_bytes(model: bytes) -> bytes:
    return model


def examine(case: suite.Case, tidy: Tidy, round_trip: RoundTrip, stage: Callable[[str], None], run: bool) -> Outcome:
    """One case, all three ways. `stage` tells the parent where to look when this process dies."""
    original = onnx.load_from_string(case.model)
    outcome = Outcome(case.name, case.kind, random=suite.is_random(original))
    answers: list[list[suite.Value]] | None = None
    if run:
        stage("before")
        try:
            answers = suite.run(case.model, case.data_sets)
        except suite.NotRun as error:
            outcome = replace(outcome, not_run=str(error))
        else:
            outcome = replace(outcome, unexpected=compare_with_suite(case, answers, outcome.random))
    else:
        outcome = replace(outcome, not_run="it crashes onnxruntime")

    stage("round trip")
    try:
        back = round_trip(case.model)
        if onnx.load_from_string(back) != original:
            outcome = replace(outcome, harmed="import and export change the protobuf")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return failed(outcome, "round trip", error)

    stage("tidy")
    try:
        candidate, rewrites = tidy(case.model)
    except Exception as error:  # noqa: BLE001
        return failed(outcome, "tidy", error)
    outcome = replace(outcome, rewrites=rewrites, changed=candidate != case.model)
    outcome = replace(outcome, harmed=outcome.harmed or harm(original, onnx.load_from_string(candidate)))

    if answers is not None:
        stage("after")
        try:
            later = suite.run(candidate, case.data_sets)
        except suite.NotRun as error:
            return replace(outcome, crashed=f"after: {error}")
        outcome = replace(outcome, wrong=compare_after(case, outcome, answers, later))
    return outcome


def failed(outcome: Outcome, where: str, error: Exception) -> Outcome:
    """A clear refusal of a model that the runtime refuses too is an answer; anything else is a crash."""
    message = f"{where}: {type(error).__name__}: {' '.join(str(error).split())}"
    if outcome.not_run and any(c.__name__ == "BadInput" for c in type(error).__mro__):
        return replace(outcome, refused=message)
    return replace(outcome, crashed=message)


def compare_with_suite(case: suite.Case, answers: Sequence[Sequence[suite.Value]], random: bool) -> str:
    reasons = (
        suite.against_suite(expected, found, case.rtol, case.atol, random)
        for (_, expected), found in zip(case.data_sets, answers, strict=True)
    )
    return next((r for r in reasons if r), "")


def compare_after(
    case: suite.Case, outcome: Outcome, before: list[list[suite.Value]], after: list[list[suite.Value]]
) -> str:
    for a, b in zip(before, after, strict=True):
        if reason := suite.against_original(a, b, outcome.random):
            return f"not the original's answer: {reason}"
    if not outcome.unexpected and (reason := compare_with_suite(case, after, outcome.random)):
        return f"not the suite's answer: {reason}"
    return ""


def harm(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """Everything about a model that no pass may touch."""
    for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if getattr(before, field) != getattr(after, field):
            return f"{field} changed"
    pairs = [
        ("opset_import", before.opset_import, after.opset_import),
        ("metadata_props", before.metadata_props, after.metadata_props),
        ("training_info", before.training_info, after.training_info),
        ("functions", before.functions, after.functions),
        ("graph name", before.graph.name, after.graph.name),
        ("graph doc_string", before.graph.doc_string, after.graph.doc_string),
        ("inputs", before.graph.input, after.graph.input),
        ("outputs", before.graph.output, after.graph.output),
        ("overridable initializers", overridable(before.graph), overridable(after.graph)),
    ]
    for name, a, b in pairs:
        if a != b:
            return f"{name} changed"
    if valid(before) and not valid(after):
        return "onnx.checker took the original and refuses the candidate"
    return ""


def overridable(graph: onnx.GraphProto) -> dict[str, bytes]:
    inputs = {i.name for i in graph.input}
    return {t.name: t.SerializeToString(deterministic=True) for t in graph.initializer if t.name in inputs}


def valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except Exception:  # noqa: BLE001 - checker, shape inference and protobuf each have their own
        return False
    return True


def serve(connection: Connection, folder: Path, tidy: Tidy, round_trip: RoundTrip) -> None:
    """A worker: takes (case, whether to run the original), tells its stage, sends the outcome."""
    while True:
        index, run = connection.recv()
        case = pickle.loads((folder / str(index)).read_bytes())
        connection.send(examine(case, tidy, round_trip, connection.send, run))


class Worker:
    """A process that may die, with the case it would die of."""

    def __init__(self, folder: Path, tidy: Tidy, round_trip: RoundTrip) -> None:
        context = multiprocessing.get_context("spawn")  # a forked copy of a process with threads may hang
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, folder, tidy, round_trip), daemon=True)
        self.process.start()
        other.close()
        self.index, self.stage, self.timeout, self.deadline = -1, "", 0.0, 0.0

    def start(self, index: int, run: bool, timeout: float) -> None:
        self.index, self.stage, self.timeout = index, "start", timeout
        self.deadline = time.monotonic() + START
        self.connection.send((index, run))

    def reached(self, stage: str) -> None:
        if self.stage == "start":
            self.deadline = time.monotonic() + self.timeout
        self.stage = stage

    def end(self) -> str:
        """Why it is gone, in words."""
        late = time.monotonic() >= self.deadline
        self.process.kill()
        self.process.join()
        self.connection.close()
        return "took too long" if late else f"worker died with exit code {self.process.exitcode}"


def run_all(
    cases: Sequence[suite.Case],
    tidy: Tidy,
    round_trip: RoundTrip,
    workers: int,
    timeout: float,
    report: Callable[[int], None] = lambda done: None,
) -> list[Outcome]:
    """Every case's outcome, in the order of the cases."""
    outcomes: dict[int, Outcome] = {}
    waiting = [(i, True) for i in reversed(range(len(cases)))]
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        for index, case in enumerate(cases):
            (folder / str(index)).write_bytes(pickle.dumps(case))
        busy: dict[Any, Worker] = {}  # by connection, which is of another type on each system
        idle = [Worker(folder, tidy, round_trip) for _ in range(min(workers, len(cases)))]
        while len(outcomes) < len(cases):
            while idle and waiting:
                worker = idle.pop()
                worker.start(*waiting.pop(), timeout)
                busy[worker.connection] = worker
            ready = wait(list(busy), timeout=1.0)
            for worker in list(busy.values()):
                late = time.monotonic() >= worker.deadline
                if worker.connection not in ready and not late:
                    continue
                try:
                    message = worker.connection.recv() if not late else None
                except (EOFError, ConnectionError):
                    message = None
                if isinstance(message, str):
                    worker.reached(message)
                    continue
                del busy[worker.connection]
                if isinstance(message, Outcome):
                    outcomes[worker.index] = message
                    idle.append(worker)
                else:
                    case, reason = cases[worker.index], worker.end()
                    if worker.stage == "before":
                        waiting.append((worker.index, False))  # onnxruntime's own fault: now see what we do
                    else:
                        outcomes[worker.index] = Outcome(case.name, case.kind, crashed=f"{worker.stage}: {reason}")
                    idle.append(Worker(folder, tidy, round_trip))
                report(len(outcomes))
        for worker in idle:
            worker.end()
    return [outcomes[i] for i in range(len(cases))]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Counts by folder of the suite, the histogram of passes, and every failure by name."""
    kinds = list(dict.fromkeys(o.kind for o in outcomes))
    counts: list[tuple[str, Callable[[Outcome], bool]]] = [
        ("total", lambda o: True),
        ("onnxruntime runs it before", lambda o: not o.not_run and not o.crashed.startswith("before")),
        ("  and answers as the suite expects", lambda o: not o.not_run and not o.unexpected and not o.random),
        ("  random: shapes and types only", lambda o: not o.not_run and o.random),
        ("onnxruntime does not run it", lambda o: bool(o.not_run)),
        ("  came back unharmed", lambda o: bool(o.not_run) and not (o.harmed or o.crashed or o.refused)),
        ("  refused in one clear line", lambda o: bool(o.refused)),
        ("changed by passes", lambda o: o.changed),
        ("wrong after", lambda o: bool(o.wrong)),
        ("crashed after", lambda o: bool(o.crashed)),
        ("harmed", lambda o: bool(o.harmed)),
    ]
    width = max(len(name) for name, _ in counts)
    lines = [" ".join([" " * width, *(f"{k:>{max(6, len(k))}}" for k in kinds), f"{'all':>6}"])]
    for name, test in counts:
        cells = [f"{sum(test(o) for o in outcomes if o.kind == k):>{max(6, len(k))}}" for k in kinds]
        lines.append(" ".join([f"{name:<{width}}", *cells, f"{sum(map(test, outcomes)):>6}"]))

    rewrites, models = Counter[str](), Counter[str]()
    for outcome in outcomes:
        rewrites.update(outcome.rewrites)
        models.update(set(outcome.rewrites))
    if rewrites:
        widest = max(len(name) for name in rewrites)
        lines += ["", f"{'pass':<{widest}} rewrites models"]
        lines += [f"{name:<{widest}} {count:>8} {models[name]:>6}" for name, count in rewrites.most_common()]
    for title in ("wrong", "crashed", "harmed"):
        for outcome in outcomes:
            if text := getattr(outcome, title):
                lines.append(f"{title}: {outcome.kind}/{outcome.name}: {text[:200]}")
    return "\n".join(lines)


def environment() -> str:
    wanted = ("superopt", "onnx", "onnx-ir", "onnxruntime", "onnxruntime-gpu", "numpy")
    # An editable install may be found twice.
    found = ", ".join(dict.fromkeys(f"{d.name} {d.version}" for name in wanted for d in distributions(name=name)))
    return f"{found}; Python {platform.python_version()}, {platform.system()} {platform.machine()}, CPU provider"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", action="append", choices=suite.KINDS, help="only these folders of the suite")
    parser.add_argument("--only", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--data", type=Path, metavar="DIR", help="also every folder with a model.onnx under DIR")
    parser.add_argument("--before-only", action="store_true", help="no passes: what onnxruntime makes of the suite")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="for one case")
    parser.add_argument("--not-run", action="store_true", help="also list what onnxruntime does not run, and why")
    parser.add_argument(
        "--save", action="store_true", help=f"write the summary to {RESULTS.parent.name}/{RESULTS.name}"
    )
    options = parser.parse_args(arguments)

    print("collecting the cases ...", file=sys.stderr)
    pattern = re.compile(options.only)
    kinds = options.kind or suite.KINDS
    cases = [c for c in suite.collect(kinds, options.data) if pattern.search(c.name)]
    start = time.monotonic()

    def progress(done: int) -> None:
        if done == len(cases) or done % 100 == 0:
            print(f"{done} of {len(cases)} in {time.monotonic() - start:.0f} s", file=sys.stderr)

    tidy, round_trip = (no_passes, same_bytes) if options.before_only else (superopt_tidy, superopt_round_trip)
    outcomes = run_all(cases, tidy, round_trip, options.workers, options.timeout, progress)
    if options.not_run:
        for outcome in outcomes:
            if outcome.not_run or outcome.unexpected:
                print(f"{outcome.kind}/{outcome.name}: {outcome.not_run or outcome.unexpected}"[:220])
    text = f"{environment()}\n\n{summary(outcomes)}\n"
    print(text, end="")
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text)
    return int(any(o.wrong or o.crashed or o.harmed for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
