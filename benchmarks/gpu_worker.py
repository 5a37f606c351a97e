# pyright: basic
"""One step of gpu.py in a process of its own, so that a crash or a hang costs that step alone.

    python benchmarks/gpu_worker.py STEP TASK.json ANSWER.json

TASK is what the step's function is given, ANSWER what it returns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
from superopt.cost.measure import Subject, compare, running
from superopt.cost.result import Comparison
from superopt.cost.sitting import Bench
from superopt.cost.turn import Turn
from superopt.errors import CannotRun
from superopt.runtime.deployment import LEVELS, QUIET, Deployment
from superopt.runtime.session import Session
from superopt.search.deployments import search_deployment

TOGETHER = 1 << 36
"""Bytes of models that are open at once: memory is not what such a machine is short of."""
MODES = {EAGER: "", COMPILED: "reduce-overhead", TUNED: "max-autotune"}
ROUGHLY = 0.05  # of the time, to warm torch up

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
    known: Mapping[str, float | str],
    turn: str = "",
) -> dict[str, Any]:
    """All entrants in one interleaved run, each against the first; `known`: how far off the answers of some are."""
    files = _files(work, place)
    running = _subjects(entrants, target)
    unknown = [s for s in running if s.name not in known]
    errors = {**known, **(_errors(files, unknown, turn_of(turn)) if unknown else {})}
    runnable = [s for s in running if not isinstance(errors[s.name], str)]
    method, feeds = Method(seconds=seconds), read_arrays(files.inputs)
    found = compare(runnable, feeds, method, together_up_to=TOGETHER, turn=turn_of(turn)) if runnable else None
    return {"errors": errors, "first": runnable[0].name if runnable else "", **_told(found)}


def answered(work: str, place: list[Any], target: str, entrants: Sequence[Entrant], turn: str = "") -> dict[str, Any]:
    """How far off the answers of all entrants are."""
    return {"errors": _errors(_files(work, place), _subjects(entrants, target), turn_of(turn))}


def _subjects(entrants: Sequence[Entrant], target: str) -> list[Subject]:
    return [Subject(name, Path(path), deployment_of(options, target)) for name, path, options in entrants]


def _errors(files: Files, subjects: Sequence[Subject], ours: Turn) -> dict[str, float | str]:
    feeds, reference = read_arrays(files.inputs), list(read_arrays(files.reference).values())
    errors: dict[str, float | str] = {}
    for subject in subjects:
        try:
            with running(ours, subject.deployment):
                errors[subject.name] = distance(reference, answers(subject, feeds))
        except CannotRun as error:
            errors[subject.name] = str(error)
    return errors


def turn_of(file: str) -> Turn:
    return Turn(Path(file) if file else None)


def answers(subject: Subject, feeds: Mapping[str, Any]) -> list[Any]:
    """As it is timed: from its CUDA graph where it captures one."""
    with Session(subject.model, subject.deployment) as session:
        if subject.deployment.captures_cuda_graph:
            return list(session.replay(feeds, feeds).values())
        return list(session.run(feeds).values())


def run_torch(
    work: str, place: list[Any], target: str, seconds: float, method: str, turn: str = "", gate: str = ""
) -> dict[str, Any]:
    """The network in torch, its tensors on the device, each run waited for: as onnxruntime is timed with bound
    inputs and outputs. With a `gate` it is timed when that is opened, on all cores."""
    import torch  # pyright: ignore[reportMissingImports]

    files = _files(work, place)
    reference = list(read_arrays(files.reference).values())
    ours = turn_of(turn)
    with torch.no_grad():
        compiled, found, ready = _first_answer(files, place, target, method, ours)
        if gate:
            Gate(Path(gate)).wait()
            os.sched_setaffinity(0, range(os.cpu_count() or 1))

        def run() -> None:
            compiled()
            if target == "cuda":
                torch.cuda.synchronize()

        def opened(index: int) -> _Runner:
            return _Runner(run)

        bench = Bench(opened, ours.paused(time.perf_counter), Method().sample_seconds, ROUGHLY * seconds)
        told = _told(Contest([method], bench, Method(seconds=seconds), True, turn=ours).run())
    return {"errors": {method: distance(reference, found)}, "first": method, "ready": ready, **told}


def compile_torch(work: str, place: list[Any], target: str, method: str, turn: str = "") -> dict[str, Any]:
    """As far as the first answer: what was compiled for it stays in torch's cache."""
    import torch  # pyright: ignore[reportMissingImports]

    with torch.no_grad():
        _, _, ready = _first_answer(_files(work, place), place, target, method, turn_of(turn))
    return {"ready": ready}


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
    tunes = method == TUNED  # by running candidates on the device; the others compile beside those who measure
    with ours.taken() if tunes else nullcontext():
        given = function(*inputs)
    found = [t.float().cpu().numpy() for t in (given if isinstance(given, tuple | list) else (given,))]
    return partial(function, *inputs), found, ours.clock() - started


def tensor_of(array: np.ndarray) -> Any:
    import torch  # pyright: ignore[reportMissingImports]

    if array.dtype == ml_dtypes.bfloat16:  # which torch has, but not by way of numpy
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class _Runner:
    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run

    def start(self) -> None:
        """It has answered already."""

    def close(self) -> None:
        """What was compiled stays."""


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
    "make": make_files, "options": best_options, "answers": answered, "race": race,
    "torch": run_torch, "compile": compile_torch,
}  # fmt: skip


if __name__ == "__main__":
    step, task, answer = sys.argv[1:]
    Path(answer).write_text(json.dumps(STEPS[step](**json.loads(Path(task).read_text()))))
