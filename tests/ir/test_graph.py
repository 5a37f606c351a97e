"""Equal structure is one object, and its digest is the same in every process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from superopt.ir.graph import Constant, Graph, Node, Value, make_node, make_parameter, replace_inputs
from superopt.ir.parse import parse_graph
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType

pytestmark = pytest.mark.unit

F4 = TensorType(DType.FLOAT32, (4,))
X = make_parameter(0, F4)[0]
Y = make_parameter(1, F4)[0]

TEXT = """
graph g (x: float32[n, 4], c: bool[]) -> (y) {
  w = float32[4] {1.0, -0.0, 3.5, 4.0}
  s = string[2] {"a", "b"}
  h: float32[n, 4] = Add(x, w)
  l: float32[n, 4] = my.domain::Leaky@2(h, alpha=0.1, names=["p", "q"], axes=[1, 2])
  y: float32[n, 4] = If(c, then_branch=graph captures (h: float32[n, 4]) -> (r) {
    r: float32[n, 4] = Relu(h)
  }, else_branch=graph captures (h: float32[n, 4]) -> (r) {
    r: float32[n, 4] = Neg(h)
  }) captured (h)
}"""


def add(*, inputs: tuple[Value, Value] = (X, Y), alpha: object = 1, instance: int = 0) -> Node:
    return make_node("Add", inputs, {"alpha": alpha}, (F4,), instance=instance)  # pyright: ignore[reportArgumentType]


def test_equal_nodes_are_one() -> None:
    assert add() is add()
    assert make_parameter(0, F4) is X.producer
    assert replace_inputs(add(), (X, Y), ()) is add()
    assert replace_inputs(add(), (Y, X), ()) is add(inputs=(Y, X))


@pytest.mark.parametrize("alpha", [1.0, True, "1", b"1", (1,), 2])
def test_attributes_of_another_kind_make_another_node(alpha: object) -> None:
    assert add(alpha=alpha) is not add(alpha=1)


def test_zeros_of_both_signs_differ_and_nan_equals_itself() -> None:
    assert add(alpha=0.0) is not add(alpha=-0.0)
    assert add(alpha=float("nan")) is add(alpha=float("nan"))


def test_instances_stay_apart() -> None:
    assert add(instance=1) is not add()
    assert graph_of(add(instance=1)).digest != graph_of(add()).digest


def graph_of(node: Node) -> Graph:
    first, second = X.producer, Y.producer
    return Graph((first, second), node.outputs, (node,), ("x", "y"), ("z",))  # pyright: ignore[reportArgumentType]


def test_the_digest_follows_structure_and_content_not_names() -> None:
    renamed = TEXT.replace("h:", "other:").replace("(h", "(other")
    assert parse_graph(renamed).digest == parse_graph(TEXT).digest
    for old, new in (("Relu", "Abs"), ("3.5", "3.25"), ("-0.0", "0.0"), ("alpha=0.1", "alpha=0.2"), ("@2", "@3")):
        assert parse_graph(TEXT.replace(old, new)).digest != parse_graph(TEXT).digest, old


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_digest_is_the_same_in_another_process(seed: str) -> None:
    code = "import sys; from superopt.ir.parse import parse_graph; print(parse_graph(sys.stdin.read()).digest)"
    run = subprocess.run(
        [sys.executable, "-c", code], input=TEXT, capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert run.stdout.strip() == parse_graph(TEXT).digest


def test_constants_are_equal_only_to_themselves() -> None:
    tensors = [ArrayTensor(np.zeros(4, np.float32)) for _ in range(2)]
    first, second = (add(inputs=(X, Value(Constant(t)))) for t in tensors)
    assert first is not second
    assert graph_of(first).digest == graph_of(second).digest


def test_long_chains_need_no_deep_stack() -> None:
    value = X
    for _ in range(20_000):
        value = make_node("Neg", (value,), (), (F4,)).outputs[0]
    node = value.node
    assert node is not None
    assert len(graph_of(node).digest) == 32


def test_all_nodes_come_outer_first() -> None:
    assert [n.op for n in parse_graph(TEXT).all_nodes()] == ["Add", "Leaky", "If", "Neg", "Relu"]


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("value_float", 0.5, np.float32(0.5)),
        ("value_floats", (1.5, -0.0), np.array([1.5, -0.0], np.float32)),
        ("value_int", -3, np.int64(-3)),
        ("value_ints", (2, 1 << 40), np.array([2, 1 << 40], np.int64)),
    ],
)
def test_numbers_of_a_constant_node_are_its_tensor(name: str, value: object, wanted: np.ndarray) -> None:
    node = make_node("Constant", (), {name: value}, (None,))  # pyright: ignore[reportArgumentType]
    found = Value(node).constant
    assert found is not None
    assert found is Value(node).constant
    assert found.numpy().dtype == wanted.dtype
    assert found.numpy().tobytes() == wanted.tobytes()
