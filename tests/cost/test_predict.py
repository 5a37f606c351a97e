from __future__ import annotations

import gc
import weakref

import pytest

from superopt.cost.predict import Predictor
from superopt.cost.workloads import data, node, weights, workload
from superopt.ir.graph import Graph, make_node

pytestmark = pytest.mark.unit


def separate(rows: int, width: int) -> Graph:
    x = data(0, (rows, width))
    products = [node("MatMul", [x, weights(width, width)], (rows, width)) for _ in range(3)]
    joined = node("Concat", [p.outputs[0] for p in products], (rows, 3 * width), attributes={"axis": 1})
    return workload([x], *products, joined)


def merged(rows: int, width: int) -> Graph:
    x = data(0, (rows, width))
    return workload([x], node("MatMul", [x, weights(width, 3 * width)], (rows, 3 * width)))


def test_weight_only_nodes_are_free():
    x, w = data(0, (4, 8)), weights(8, 8)
    combined = node("MatMul", [w, w], (8, 8))
    direct = workload([x], node("MatMul", [x, weights(8, 8)], (4, 8)))
    with_work = workload([x], combined, node("MatMul", [x, combined.outputs[0]], (4, 8)))
    assert Predictor().region(with_work) == Predictor().region(direct) > 0


def test_random_numbers_are_no_weights():
    drawn = make_node("RandomNormal", [], {"shape": (4, 8)}, [data(0, (4, 8)).type])
    assert Predictor().region(workload([], drawn)) > 0


def test_what_nobody_reads_is_free():
    x = data(0, (400, 800))
    kept, dead = node("Relu", [x], (400, 800)), node("Exp", [x], (400, 800))
    assert Predictor().region(workload([x], dead, kept)) == Predictor().region(workload([x], kept))


def test_merging_and_fusing_pay():
    assert Predictor().region(merged(16, 64)) < Predictor().region(separate(16, 64))
    x = data(0, (1, 16, 28, 28))
    convolved = node("Conv", [x, weights(16, 16, 3, 3)], (1, 16, 28, 28))
    activated = node("Relu", convolved.outputs, (1, 16, 28, 28))
    alone = Predictor().region(workload([x], convolved))
    both = Predictor().region(workload([x], convolved, activated))
    assert alone <= both < alone + Predictor().node(activated)


def test_refitting_learns_what_regions_take_and_can_be_repeated():
    graphs = [separate(rows, width) for rows, width in ((4, 32), (16, 64), (64, 32), (128, 64))]
    slow = [(graph, 3 * Predictor().region(graph)) for graph in graphs] * 4
    predictor = Predictor()
    predictor.refit(slow)
    once = [predictor.region(graph) for graph in graphs]
    predictor.refit(slow)
    assert [predictor.region(graph) for graph in graphs] == once
    for seconds, (_, measured) in zip(once, slow, strict=False):
        assert measured / 1.5 < seconds < measured * 1.2


def test_the_price_of_a_region_is_that_of_what_it_asks_for():
    predictor, graph = Predictor(), separate(16, 64)
    assert predictor.region(graph) == pytest.approx(predictor.coefficients.price(predictor.amounts(graph)))


def test_what_a_rewrite_spares_and_adds_is_told_apart():
    predictor, before, after = Predictor(), separate(16, 64), merged(16, 64)
    spared, added = predictor.exchanged(before, after)
    assert spared - added == pytest.approx(predictor.region(before) - predictor.region(after))
    assert spared > added >= 0.0
    assert predictor.exchanged(after, before) == pytest.approx((added, spared))
    assert predictor.exchanged(before, before) == (0.0, 0.0)


def test_prices_do_not_keep_nodes_alive():
    predictor, graph = Predictor(), merged(3, 7)
    predictor.region(graph)
    gone = weakref.ref(graph.nodes[0])
    del graph
    gc.collect()
    assert gone() is None


def test_a_view_that_is_a_result_of_the_model_is_copied():
    x = data(0, (400, 800))
    active = node("Relu", [x], (400, 800))
    last = workload([x], active, node("Reshape", active.outputs, (800, 400)))
    turned = node("Reshape", [x], (800, 400))
    first = workload([x], turned, node("Relu", turned.outputs, (800, 400)))
    predictor = Predictor()
    assert predictor.region(last) == pytest.approx(predictor.region(first))
    assert predictor.region(last, last.outputs) > 1.3 * predictor.region(first, first.outputs)
    assert predictor.region(first, first.outputs) == predictor.region(first)
    spared, added = predictor.exchanged(last, first, last.outputs, first.outputs)
    assert spared - added == pytest.approx(
        predictor.region(last, last.outputs) - predictor.region(first, first.outputs)
    )
    shape = workload([x], node("Shape", [x], (2,)))
    assert predictor.region(shape, shape.outputs) == predictor.region(shape), "it gives something else"
