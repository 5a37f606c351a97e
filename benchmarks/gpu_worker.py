# pyright: basic
"""One step of gpu.py in a process of its own, so that a crash or a hang costs that step alone.

    python benchmarks/gpu_worker.py STEP TASK.json ANSWER.json

TASK is what the step's function is given, ANSWER what it returns.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_cells import COMPILED, EAGER, TUNED
from benchmarks.gpu_models import BUILT, Files, files_of, make, read_arrays
from benchmarks.waiting import Gate
from superopt.cost.contest import Contest, Method
from superopt.cost.measure import OpenModel, compare, running, without_garbage_collection
from superopt.cost.result import Comparison
from superopt.cost.sitting import Bench, Runner
from superopt.cost.turn import Turn
from superopt.errors import CannotRun
from superopt.runtime.deployment import LEVELS, QUIET, Deployment
from superopt.runtime.session import Session
from superopt.search.deployments import search_deployment

MODES = {EAGER: "", COMPILED: "reduce-overhead", TUNED: "max-autotune"}
ROUGHLY = 0.05  # of the time, to warm up

Entrant: TypeAlias = "tuple[str, str, Mapping[str, str]]"
"""Name, model, session options."""


def make_files(work: str, place: list[Any], target: str, further: str = "") -> dict[str, Any]:
    """`further`: a folder of packages for what is not there otherwise; torch's newer exporter wants onnxscript."""
    sys.path += [further] if further else []
    found = (place[0], place[1], place[2])
    make(files_of(Path(work), found), found, target)
    return {}


def best_options(work: str, place: list[Any], target: str, seconds: float, turn: str = "") -> dict[str, Any]:
    """superopt's search for session options, on the original graph."""
    files = _files(work, place)
    base = deployment_of({}, target)
    ours = turn_of(turn)
    measure = partial(compare, turn=ours)
    found = search_deployment(files.model, read_arrays(files.inputs), base, seconds, measure=measure, turn=ours)
    return {"options": found.report().options}


def race(
    work: str,
    place: list[Any],
    target: str,
    seconds: float,
    entrants: Sequence[Entrant],
    turn: str = "",
    gate: str = "",
) -> dict[str, Any]:
    """All entrants in one interleaved run, each against the first, every one opened once. With a `gate` they are timed
    when that is opened, no longer bound to a share of the cores: opening networks takes far longer than timing them."""
    files, ours = _files(work, place), turn_of(turn)
    feeds, reference = read_arrays(files.inputs), list(read_arrays(files.reference).values())
    errors: dict[str, float | str] = {}
    ready: dict[str, OpenModel] = {}
    for name, path, options in entrants:
        try:
            errors[name], ready[name] = _opened(Path(path), deployment_of(options, target), feeds, reference, ours)
        except CannotRun as error:
            errors[name] = str(error)
    _pass(gate)
    found = _contest([_Runner(model.run) for model in ready.values()], list(ready), seconds, ours) if ready else None
    return {"errors": errors, "first": next(iter(ready), ""), **_told(found)}


def _opened(
    model: Path, deployment: Deployment, feeds: Mapping[str, Any], reference: Sequence[Any], ours: Turn
) -> tuple[float, OpenModel]:
    """How far off its answers are, and the network, started."""
    session = Session(model, deployment)
    with ours.taken() if deployment.tries_kernels else running(ours, deployment):
        answers = session.replay(feeds, feeds) if deployment.captures_cuda_graph else session.run(feeds)
        found = OpenModel(session, feeds)
        found.start()
    return distance(reference, list(answers.values())), found


def _pass(gate: str) -> None:
    if gate:
        Gate(Path(gate)).wait()
        for thread in Path("/proc/self/task").iterdir():  # onnxruntime's own have been started
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.sched_setaffinity(int(thread.name), range(os.cpu_count() or 1))


def _contest(runners: Sequence[Runner], names: Sequence[str], seconds: float, ours: Turn) -> Comparison:
    warm_up = ROUGHLY * seconds / len(runners)
    bench = Bench(runners.__getitem__, ours.paused(time.perf_counter), Method().sample_seconds, warm_up)
    with without_garbage_collection():
        return Contest(names, bench, Method(seconds=seconds), True, turn=ours).run()


def turn_of(file: str) -> Turn:
    return Turn(Path(file) if file else None)


def run_torch(
    work: str, place: list[Any], target: str, seconds: float, method: str, turn: str = "", gate: str = ""
) -> dict[str, Any]:
    """The network in torch, its tensors on the device, each run waited for: as onnxruntime is timed with bound
    inputs and outputs. With a `gate` it is timed when that is opened, no longer bound to a share of the cores."""
    import torch  # pyright: ignore[reportMissingImports]

    files = _files(work, place)
    reference = list(read_arrays(files.reference).values())
    ours = turn_of(turn)
    with torch.no_grad():
        compiled, found, ready = _first_answer(files, place, target, method, ours)
        _pass(gate)

        def run() -> None:
            compiled()
            if target == "cuda":
                torch.cuda.synchronize()

        told = _told(_contest([_Runner(run)], [method], seconds, ours))
    return {"errors": {method: distance(reference, found)}, "first": method, "ready": ready, **told}


def _first_answer(
    files: Files, place: list[Any], target: str, method: str, ours: Turn
) -> tuple[Callable[[], Any], list[Any], float]:
    """A run of the network, its answers, and the seconds that took."""
    import torch  # pyright: ignore[reportMissingImports]

    feeds = read_arrays(files.inputs)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    module = module_of(files, place, target)
    inputs = [tensor_of(feeds[name]).to(target) for name in feeds]
    mode = MODES[method]
    started = ours.clock()
    function = torch.compile(module, mode=mode) if mode else module
    if method == TUNED:
        take_turns(ours)
    given = function(*inputs)
    found = [t.float().cpu().numpy() for t in (given if isinstance(given, tuple | list) else (given,))]
    return partial(function, *inputs), found, ours.clock() - started


def tensor_of(array: np.ndarray) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    if array.dtype == ml_dtypes.bfloat16:  # which torch has, but not by way of numpy
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def take_turns(ours: Turn) -> None:
    """torch chooses kernels by timing them on the device: each burst of that in its turn, so that what is compiled for
    it may be compiled beside others."""
    benchmarking = importlib.import_module("torch._inductor.runtime.benchmarking")
    kind = type(benchmarking.benchmarker)
    for name in ("benchmark_gpu", "benchmark_gpu_with_cuda_graph"):
        if original := getattr(kind, name, None):
            setattr(kind, name, _in_turn(original, ours))


def _in_turn(original: Callable[..., Any], ours: Turn) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapped(*words: Any, **named: Any) -> Any:
        with ours.taken():
            return original(*words, **named)

    return wrapped


class _Runner:
    """Of what stays open, however often it is timed."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run

    def start(self) -> None:
        """It has answered already."""

    def close(self) -> None:
        """It may be timed again."""


def module_of(files: Files, place: list[Any], target: str) -> Any:
    name, dtype, batch = place
    if name in BUILT:
        from benchmarks.onnx_in_torch import Network

        return Network(onnx.load(files.model)).to(target).eval()
    from benchmarks import torch_networks

    return torch_networks.build(name, batch, dtype, target, "sdpa").module


def deployment_of(options: Mapping[str, str], target: str) -> Deployment:
    """Back from the flat table of a report; nothing in it is the base."""
    base = Deployment(target)  # pyright: ignore[reportArgumentType]
    if not options:
        return base
    known = {"execution_provider", "use_deterministic_compute", "intra_op_num_threads", "graph_optimization_level"}
    levels = {text: level for level, text in LEVELS.items()}
    others = {k: v for k, v in options.items() if k not in known and not k.startswith(("cuda.", "free_dimension."))}
    return replace(
        base,
        threads=int(options.get("intra_op_num_threads", base.threads)),
        level=levels[options.get("graph_optimization_level", LEVELS["all"])],
        deterministic=options.get("use_deterministic_compute", "1") == "1",
        provider_options=tuple((k.removeprefix("cuda."), v) for k, v in options.items() if k.startswith("cuda.")),
        config=tuple((k, v) for k, v in others.items() if (k, v) not in QUIET),
    )


def distance(reference: Sequence[Any], found: Sequence[Any]) -> float:
    """‖found − reference‖ / ‖reference‖ of the worst output; infinite where shapes or NaNs differ."""
    if len(reference) != len(found):
        return float("inf")
    worst = 0.0
    for a, b in zip(reference, found, strict=True):
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
            return float("inf")
        size = float(np.linalg.norm(np.nan_to_num(a)))
        worst = max(worst, float(np.linalg.norm(np.nan_to_num(b - a))) / (size or 1.0))
    return worst


def _files(work: str, place: list[Any]) -> Files:
    return files_of(Path(work), (place[0], place[1], place[2]))


def _told(found: Comparison | None) -> dict[str, Any]:
    return {"comparison": None if found is None else found.model_dump(mode="json")}


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "make": make_files, "options": best_options, "race": race, "torch": run_torch,
}  # fmt: skip


if __name__ == "__main__":
    step, task, answer = sys.argv[1:]
    Path(answer).write_text(json.dumps(STEPS[step](**json.loads(Path(task).read_text()))))
