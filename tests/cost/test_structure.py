from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from superopt.cost.structure import structure
from superopt.cost.workloads import data, node, number, weights, whole, workload
from superopt.ir.graph import Constant, Graph, Value, make_node, make_parameter
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType

pytestmark = pytest.mark.unit


def linear(weight: Value, bias: Value) -> Graph:
    x = data(0, (4, 3))
    y = node("MatMul", [x, weight], (4, 2))
    return workload([x], y, node("Add", [y.outputs[0], bias], (4, 2)))


def filled(value: float, *shape: int) -> Value:
    return Value(Constant(ArrayTensor(np.full(shape, value, np.float32))))


def test_the_content_of_weights_does_not_matter():
    assert structure(linear(filled(1, 3, 2), filled(2, 2)), {}) == structure(linear(filled(5, 3, 2), filled(6, 2)), {})


def test_shapes_of_weights_do():
    assert structure(linear(weights(3, 2), filled(2, 2)), {}) != structure(linear(weights(3, 2), filled(2, 1, 2)), {})


@pytest.mark.parametrize(("one", "other"), [(whole(4, 3), whole(3, 4)), (number(2.0), number(3.0))])
def test_constants_that_steer_count_by_content(one: Value, other: Value):
    def graph(second: Value) -> Graph:
        x = data(0, (4, 3))
        return workload([x], make_node("Op", [x, second], {}, [None]))

    assert structure(graph(one), {}) != structure(graph(other), {})
    assert structure(graph(one), {}) == structure(graph(one), {})


def test_attributes_wiring_and_results_count():
    x, y = data(0, (4, 3)), data(1, (4, 3))

    def graph(*inputs: Value, **attributes: int) -> Graph:
        return workload([x, y], node("Concat", inputs, (8, 3), attributes=attributes))

    base = graph(x, y, axis=0)
    twice = dataclasses.replace(base, outputs=base.outputs * 2, output_names=("a", "b"))
    different = [base, graph(y, x, axis=0), graph(x, y, axis=1), graph(x, x, axis=0), twice]
    assert len({structure(g, {}) for g in different}) == len(different)


def test_the_order_of_the_list_and_what_nobody_reads_do_not_count():
    x = data(0, (4,))
    a, b = node("Exp", [x], (4,)), node("Neg", [x], (4,))
    last = node("Add", [a.outputs[0], b.outputs[0]], (4,))
    dead = node("Sin", [x], (4,))
    names = {structure(workload([x], *order, last), {}) for order in ((a, b), (b, a), (dead, a, b))}
    assert len(names) == 1


def test_sizes_count_where_they_are_used():
    x = Value(make_parameter(0, TensorType(DType.FLOAT32, ("n", 3))))
    graph = workload([x], make_node("Relu", [x], {}, [x.type]))
    fixed = workload([data(0, (5, 3))], node("Relu", [data(0, (5, 3))], (5, 3)))
    assert structure(graph, {"n": 5}) == structure(graph, {"n": 5, "m": 7}) == structure(fixed, {})
    assert structure(graph, {"n": 6}) != structure(graph, {"n": 5})
