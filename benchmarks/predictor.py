# pyright: basic
"""How well predicted times of regions rank them (`make bench-predictor`).

    python benchmarks/predictor.py [--models DIR]… [--only REGEX] [--target cpu|cuda] [--seconds S] [--save]

Each model is tidied and cut into connected regions of 5 to 30 nodes. Every region is timed as a model of its own, at
onnxruntime's full optimization level, in one interleaved run with the others of its model. The predictor is asked for
the same regions, and the ranks are compared (Spearman's correlation).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from superopt.cost.weights import is_weight_only
from superopt.ir.graph import Graph, Node, Value, make_parameter, replace_inputs

LEAST, MOST = 5, 30


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
            if value not in renamed and (value.node not in inside) and not _is_constant(value):
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


def _is_constant(value: Value) -> bool:
    return type(value.producer).__name__ == "Constant"
