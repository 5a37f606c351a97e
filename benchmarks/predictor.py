# pyright: basic
"""How well predicted times of regions rank them.

    python benchmarks/predictor.py [--models DIR]… [--only REGEX] [--target cpu|cuda] [--clock wall|cpu] [--save]

Each model is tidied and cut into connected regions of 5 to 30 nodes. Every region is timed as a model of its own, at
onnxruntime's full optimization level, in one interleaved run with the others of its model. The predictor, which has
seen nothing but its own calibration, is asked for the same regions, and the ranks are compared (Spearman's
correlation). Then it learns from every other region of the model, as a search would, and is asked for those in between.

What the predictor looks at was chosen with these models in view; only its prices come from the calibration alone. And
regions of different sizes are easier to rank than two spellings of one region: read the typical error as well.

`--clock cpu` counts the CPU seconds of one thread: neighbours on a shared machine do not disturb it.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.subjects import Subject, fetched, in_folder
from benchmarks.texts import aligned
from superopt.cost.calibration import calibrate
from superopt.cost.coefficients import Coefficients
from superopt.cost.predict import Predictor
from superopt.cost.regions import region_subject
from superopt.cost.timer import RegionTimer
from superopt.cost.weights import is_weight_only
from superopt.errors import SuperoptError
from superopt.ir.graph import Constant, Graph, Node, Value, make_parameter, replace_inputs
from superopt.ir.onnx import Model, parse
from superopt.normalize import normalize
from superopt.runtime.cores import usable_cores
from superopt.runtime.deployment import Deployment
from superopt.runtime.facts import device_facts, runtime_facts
from superopt.runtime.target import resolve_target
from superopt.version import __version__

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("model", "regions", "µs", "rank correlation", "typical error", "after learning")
LEAST, MOST = 5, 30
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Region:
    model: str
    predicted: float
    measured: float
    learned: float | None
    """Predicted after learning from others of its model; None for those that were learned from."""


def sized(subject: Subject) -> Model:
    """The model with every dim of its inputs fixed: as declared, as the catalogue says, or 1."""
    proto = onnx.load(subject.path)
    for described in proto.graph.input:
        given = subject.shapes.get(described.name)
        for i, dim in enumerate(described.type.tensor_type.shape.dim):
            if given is not None or dim.dim_value <= 0:
                dim.dim_value = given[i] if given is not None else 1
    return parse(proto.SerializeToString(), subject.path)


def cut(graph: Graph, rng: random.Random) -> Iterator[Graph]:
    """Connected, convex regions that together cover the nodes that run, but for what is too small.

    A window of nodes that follow each other in the graph's order is convex, and so is each connected part of it.
    """
    running = [n for n in graph.nodes if not is_weight_only(n)]
    at = 0
    while at < len(running):
        window = running[at : at + rng.randint(LEAST, MOST)]
        at += len(window)
        for part in _parts(window):
            if len(part) >= LEAST and not any(n.bodies for n in part):
                yield region(graph, part)


def _parts(window: Sequence[Node]) -> list[list[Node]]:
    leader: dict[Node, Node] = {n: n for n in window}

    def find(node: Node) -> Node:
        while leader[node] is not node:
            node = leader[node]
        return node

    for node in window:
        for value in node.operands:
            if value.node in leader:
                leader[find(value.node)] = find(node)
    parts: dict[Node, list[Node]] = {}
    for node in window:
        parts.setdefault(find(node), []).append(node)
    return list(parts.values())


def region(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """The nodes as a graph of their own, with the weight-only nodes they need."""
    inside = set(nodes)
    wanted = [v for n in nodes for v in n.operands]
    while wanted:
        node = wanted.pop().node
        if node is not None and node not in inside and is_weight_only(node):
            inside.add(node)
            wanted.extend(node.operands)
    read_outside = set(graph.outputs) | {v for n in graph.nodes if n not in inside for v in n.operands}
    renamed: dict[Value, Value] = {}
    parameters, rebuilt = [], []
    for node in (n for n in graph.nodes if n in inside):
        for value in node.operands:
            if value not in renamed and value.node not in inside and not isinstance(value.producer, Constant):
                parameters.append(make_parameter(len(parameters), value.type))
                renamed[value] = Value(parameters[-1])
        again = replace_inputs(node, [v and renamed.get(v, v) for v in node.inputs], node.captured)
        rebuilt.append(again)
        renamed.update(zip(node.outputs, again.outputs, strict=True))
    outputs = tuple(renamed[v] for n in nodes for v in n.outputs if v in read_outside)
    return Graph(
        tuple(parameters),
        outputs,
        tuple(rebuilt),
        tuple(f"in{i}" for i in range(len(parameters))),
        tuple(f"out{i}" for i in range(len(outputs))),
    )


def examine(
    subject: Subject, timer: RegionTimer, coefficients: Coefficients, most: int, seconds: float
) -> list[Region]:
    model = sized(subject)
    rng = random.Random(0)
    graphs = list(cut(normalize(model).graph, rng))
    rng.shuffle(graphs)
    graphs = graphs[:most]
    times = timer.time([region_subject(model, graph, {}) for graph in graphs], seconds)
    timed = [(graph, taken) for graph, taken in zip(graphs, times, strict=True) if taken is not None]
    predictor = Predictor({}, coefficients)
    predicted = [predictor.region(graph) for graph, _ in timed]
    predictor.refit(timed[::2])
    learned = [predictor.region(graph) if i % 2 else None for i, (graph, _) in enumerate(timed)]
    spared = coefficients.spared
    return [Region(subject.name, p, t + spared, q) for (_, t), p, q in zip(timed, predicted, learned, strict=True)]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's; equal values share their mean rank."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1]) if len(set(one)) > 1 and len(set(other)) > 1 else math.nan


def ranks(values: Sequence[float]) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def typical_error(pairs: Sequence[tuple[float, float]]) -> str:
    """As a factor: the root mean square of the logarithm of one over the other."""
    return f"{math.exp(math.sqrt(np.mean([math.log(p / t) ** 2 for p, t in pairs]))):.2f}x" if pairs else "-"


def row(name: str, regions: Sequence[Region]) -> tuple[str, ...]:
    times = [r.measured for r in regions]
    correlation = rank_correlation([r.predicted for r in regions], times) if len(regions) > 2 else math.nan
    return (
        name,
        str(len(regions)),
        f"{min(times) * 1e6:.0f} to {max(times) * 1e6:.0f}" if times else "-",
        "-" if math.isnan(correlation) else f"{correlation:.3f}",
        typical_error([(r.predicted, r.measured) for r in regions]),
        typical_error([(r.learned, r.measured) for r in regions if r.learned is not None]),
    )


def heading(deployment: Deployment, clock: str) -> str:
    device = device_facts(deployment.target)
    return (
        f"{deployment.target}: {device.name}, driver {device.driver or '-'}, {deployment.threads} threads, "
        f"{clock} clock, {platform.platform()}\n"
        f"superopt {__version__}, onnxruntime {runtime_facts().version}, onnx {version('onnx')}, "
        f"Python {platform.python_version()}\n"
        "predicted from a calibration of single operators alone; learning: from every other region of the same model,\n"
        "judged on those in between"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", action="append", type=Path, default=[], metavar="DIR", help="also every .onnx here")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose name matches")
    parser.add_argument("--target", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--clock", default="wall", choices=tuple(CLOCKS))
    parser.add_argument("--regions", type=int, default=16, metavar="N", help="the most to time of one model")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S", help="the most to time one model for")
    parser.add_argument("--save", action="store_true", help="write the table to results/predictor-TARGET.txt")
    options = parser.parse_args(arguments)
    wanted = [
        s for s in (*fetched(), *(s for f in options.models for s in in_folder(f))) if re.search(options.only, s.name)
    ]
    if not wanted:
        print("no model to look at: run `make models`, or name a folder with --models", file=sys.stderr)
        return 2
    threads = 1 if options.clock == "cpu" else usable_cores()
    deployment = Deployment(resolve_target(options.target), threads=threads)
    timer = RegionTimer(deployment, clock=CLOCKS[options.clock])
    coefficients = calibrate(timer, 4 * options.seconds)
    regions: list[Region] = []
    rows: list[tuple[str, ...]] = []
    for subject in wanted:
        try:
            found = examine(subject, timer, coefficients, options.regions, options.seconds)
        except SuperoptError as error:
            print(f"{subject.name}: {error}", file=sys.stderr)
            continue
        if found:
            regions += found
            rows.append(row(subject.name, found))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    if not regions:
        return 1
    text = f"{heading(deployment, options.clock)}\n\n{aligned([COLUMNS, *rows, row('all', regions)])}\n"
    print(text, end="")
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"predictor-{deployment.target}.txt").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
