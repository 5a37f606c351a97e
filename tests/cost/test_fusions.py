"""Which nodes the runtime is expected to merge; whether it does is what the last tests ask it."""

from __future__ import annotations

from collections import Counter

import pytest

from superopt.cost.fusions import ABSORBED, BIAS, roles
from superopt.cost.layouts import Images
from superopt.cost.manner import ON_A_CPU, Manner
from superopt.cost.workloads import data, node, number, weights, workload
from superopt.ir.graph import Graph, Node, Value
from superopt.ir.types import DType

pytestmark = pytest.mark.unit

ROWS = (8, 16)
IMAGE = (1, 4, 6, 6)


def played(graph: Graph, manner: Manner = ON_A_CPU) -> dict[str, str]:
    """Roles by operator; a number follows where an operator occurs again."""
    uses = Counter([*(v for n in graph.nodes for v in n.operands), *graph.outputs])
    found = roles(graph.nodes, uses, manner)
    names: dict[str, str] = {}
    for n in graph.nodes:
        if n in found:
            again = sum(key.rstrip("0123456789") == n.op for key in names)
            names[f"{n.op}{again or ''}"] = found[n]
    return names


def chain(x: Value, *steps: tuple[str, *tuple[Value, ...]]) -> list[Node]:
    nodes: list[Node] = []
    for op, *others in steps:
        before = nodes[-1].outputs[0] if nodes else x
        nodes.append(node(op, [before, *others], IMAGE))
    return nodes


CONVOLVED = ("Conv", weights(4, 4, 1, 1))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([CONVOLVED, ("Relu",)], {"Relu": ABSORBED}),
        ([CONVOLVED, ("Add", weights(4, 1, 1)), ("Relu",)], {"Add": ABSORBED, "Relu": ABSORBED}),
        ([CONVOLVED, ("Relu",), ("Add", weights(4, 1, 1))], {"Relu": ABSORBED}),
        ([CONVOLVED, ("Add", data(1, IMAGE)), ("Relu",)], {"Add": ABSORBED, "Relu": ABSORBED}),
        ([CONVOLVED, ("Add", data(1, (1, 4, 1, 1)))], {}),
        ([CONVOLVED, ("BatchNormalization", *(weights(4) for _ in range(4)))], {"BatchNormalization": ABSORBED}),
        ([CONVOLVED, ("Exp",)], {}),
    ],
)  # fmt: skip
def test_what_follows_a_convolution(steps: list[tuple[str, *tuple[Value, ...]]], expected: dict[str, str]):
    x = data(0, IMAGE)
    assert played(workload([x], *chain(x, *steps))) == expected


@pytest.mark.parametrize(
    ("images", "dtype", "activation", "expected"),
    [
        ("first", DType.FLOAT32, "Relu", {"Add": ABSORBED, "Relu": ABSORBED}),
        ("first", DType.FLOAT32, "Sigmoid", {"Add": ABSORBED}),
        ("first", DType.FLOAT16, "Relu", {}),
        ("last", DType.FLOAT32, "Relu", {}),
    ],
)
def test_a_gpu_has_one_kernel_of_a_convolution_with_more(
    images: Images, dtype: DType, activation: str, expected: dict[str, str]
):
    x, skip = data(0, IMAGE, dtype), data(1, IMAGE, dtype)
    convolved = node("Conv", [x, weights(4, 4, 1, 1, dtype=dtype)], IMAGE)
    total = node("Add", [convolved.outputs[0], skip], IMAGE)
    ended = node(activation, total.outputs, IMAGE)
    assert played(workload([x, skip], convolved, total, ended), Manner(images, on_gpu=True)) == expected


def test_a_gpu_scales_and_shifts_by_constants_in_the_weights():
    x = data(0, IMAGE, DType.FLOAT16)
    shift = weights(4, 1, 1, dtype=DType.FLOAT16)
    convolved = node("Conv", [x, weights(4, 4, 1, 1, dtype=DType.FLOAT16)], IMAGE)
    shifted = node("Add", [convolved.outputs[0], shift], IMAGE)
    assert played(workload([x], convolved, shifted), Manner("last", on_gpu=True)) == {"Add": ABSORBED}


def test_what_somebody_else_reads_too_is_not_absorbed_into():
    x = data(0, IMAGE)
    convolved = node("Conv", [x, weights(4, 4, 1, 1)], IMAGE)
    activated = node("Relu", convolved.outputs, IMAGE)
    last = node("Concat", [convolved.outputs[0], activated.outputs[0]], (1, 8, 6, 6))
    assert played(workload([x], convolved, activated, last)) == {}


def test_a_product_takes_bias_scale_and_transpose():
    x, y = data(0, ROWS), data(1, ROWS)
    swapped = node("Transpose", [y], (16, 8), attributes={"perm": (1, 0)})
    scaled = node("Mul", [x, number(0.5)], ROWS)
    product = node("MatMul", [scaled.outputs[0], swapped.outputs[0]], (8, 8))
    biased = node("Add", [product.outputs[0], weights(8)], (8, 8))
    found = played(workload([x, y], swapped, scaled, product, biased))
    assert found == {"Transpose": ABSORBED, "Mul": ABSORBED, "Add": BIAS}


def test_a_convolution_in_groups_has_its_bias_added_apart():
    x = data(0, (1, 8, 4, 4))
    for group, role in ((1, ABSORBED), (8, BIAS)):
        made = node("Conv", [x, weights(8, 8 // group, 1, 1)], (1, 8, 4, 4), attributes={"group": group})
        biased = node("Add", [made.outputs[0], weights(8, 1, 1)], (1, 8, 4, 4))
        assert played(workload([x], made, biased)) == {"Add": role}


def test_a_product_has_its_bias_before_a_gelu_sees_it():
    x = data(0, ROWS)
    product = node("MatMul", [x, weights(16, 16)], ROWS)
    biased = node("Add", [product.outputs[0], weights(16)], ROWS)
    found = played(workload([x], product, biased, node("Gelu", biased.outputs, ROWS)))
    assert found == {"Add": BIAS}
    assert played(workload([x], product, biased, *gelu(biased.outputs[0])))["Add"] == BIAS
    plain = node("Add", [x, weights(16)], ROWS)
    assert played(workload([x], plain, node("Gelu", plain.outputs, ROWS))) == {"Add": ABSORBED}


def gelu(x: Value) -> list[Node]:
    inside = node("Div", [x, number(2**0.5)], ROWS)
    erf = node("Erf", inside.outputs, ROWS)
    one = node("Add", [number(1.0), erf.outputs[0]], ROWS)
    product = node("Mul", [one.outputs[0], x], ROWS)
    return [inside, erf, one, product, node("Mul", [product.outputs[0], number(0.5)], ROWS)]


def test_a_spelled_out_function_is_priced_as_that_function():
    x = data(0, ROWS)
    found = played(workload([x], *gelu(x)))
    assert found == {"Div": ABSORBED, "Erf": ABSORBED, "Add": ABSORBED, "Mul": ABSORBED, "Mul1": "Gelu"}


def test_not_when_a_step_is_read_from_outside():
    x = data(0, ROWS)
    nodes = gelu(x)
    kept = node("Sub", [nodes[-1].outputs[0], nodes[1].outputs[0]], ROWS)
    assert played(workload([x], *nodes, kept)) == {}


def test_layer_normalization_with_the_addition_before_it():
    x, y = data(0, ROWS), data(1, ROWS)
    total = node("Add", [x, y], ROWS)
    mean = node("ReduceMean", total.outputs, (8, 1), attributes={"axes": (-1,)})
    centred = node("Sub", [total.outputs[0], mean.outputs[0]], ROWS)
    squared = node("Pow", [centred.outputs[0], number(2.0)], ROWS)
    variance = node("ReduceMean", squared.outputs, (8, 1), attributes={"axes": (-1,)})
    safe = node("Add", [variance.outputs[0], number(1e-5)], (8, 1))
    deviation = node("Sqrt", safe.outputs, (8, 1))
    normal = node("Div", [centred.outputs[0], deviation.outputs[0]], ROWS)
    scaled = node("Mul", [normal.outputs[0], weights(16)], ROWS)
    shifted = node("Add", [scaled.outputs[0], weights(16)], ROWS)
    order = [total, mean, centred, squared, variance, safe, deviation, normal, scaled, shifted]
    found = played(workload([x, y], *order))
    assert found.pop("Add2") == "LayerNormalization"
    assert set(found.values()) == {ABSORBED}
    assert len(found) == len(order) - 1


def test_transposes_that_cancel_are_free_and_others_are_not():
    x = data(0, IMAGE)
    last = (1, 6, 6, 4)
    away = node("Transpose", [x], last, attributes={"perm": (0, 2, 3, 1)})
    inside = node("Sigmoid", away.outputs, last)
    back = node("Transpose", inside.outputs, IMAGE, attributes={"perm": (0, 3, 1, 2)})
    elsewhere = node("Transpose", inside.outputs, (1, 4, 6, 6), attributes={"perm": (0, 3, 2, 1)})
    assert played(workload([x], away, inside, back)) == {"Transpose": ABSORBED, "Transpose1": ABSORBED}
    assert played(workload([x], away, inside, elsewhere)) == {}
