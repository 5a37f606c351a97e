# pyright: basic
"""The regions that the predictor is judged on are connected, convex and whole; ranks are ranks."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from benchmarks.predictor import LEAST, MOST, cut, rank_correlation, ranks, region, typical_error
from superopt.cost.weights import is_weight_only
from superopt.cost.workloads import data, host, node, weights, workload
from superopt.ir.graph import Graph
from superopt.ir.onnx.standalone import standalone
from tests.graphs import run


def ladder(rungs: int) -> Graph:
    """Two chains that meet at every second step, with a weight that is computed."""
    x = data(0, (3, 4))
    doubled = node("Add", [w := weights(4), w], (4,))
    nodes, left, right = [doubled], x, x
    for i in range(rungs):
        nodes.append(node("Tanh", [left], (3, 4)))
        left = nodes[-1].outputs[0]
        nodes.append(node("Add", [right, doubled.outputs[0] if i % 2 else left], (3, 4)))
        right = nodes[-1].outputs[0]
    return workload([x], *nodes, node("Mul", [left, right], (3, 4)))


@pytest.mark.unit
def test_regions_are_of_the_promised_size_and_connected():
    parts = list(cut(ladder(60), random.Random(0)))
    assert len(parts) > 3
    for part in parts:
        running = [n for n in part.nodes if not is_weight_only(n)]
        assert LEAST <= len(running) <= MOST
        assert part.outputs
        reached, frontier = {running[0]}, [running[0]]
        while frontier:
            at = frontier.pop()
            near = {v.node for v in at.operands} | {n for n in running if any(v.node is at for v in n.operands)}
            frontier += [n for n in near if n in running and n not in reached]
            reached |= near
        assert reached >= set(running)


@pytest.mark.ort
def test_a_region_of_everything_computes_everything():
    graph = ladder(5)
    whole = region(graph, graph.nodes[1:])
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    (expected,), (found,) = (run(standalone(host(), g, {}), {"in0": x}) for g in (graph, whole))
    np.testing.assert_array_equal(expected, found)


@pytest.mark.unit
def test_ranks():
    assert ranks([30.0, 10.0, 20.0, 10.0]).tolist() == [4.0, 1.5, 3.0, 1.5]
    assert rank_correlation([1.0, 2.0, 3.0], [10.0, 200.0, 3000.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert math.isnan(rank_correlation([1.0, 1.0], [1.0, 2.0]))
    assert typical_error([(2.0, 1.0), (1.0, 2.0)]) == "2.00x"
