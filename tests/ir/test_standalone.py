# pyright: basic
"""A region as a model of its own computes what it computed inside, and says nothing that it does not know."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, parser

from superopt.errors import CannotRun
from superopt.ir.graph import Constant, Graph, Value, make_node, make_parameter
from superopt.ir.onnx import parse
from superopt.ir.onnx.standalone import standalone
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType
from tests.graphs import Case, assert_same, cases, run


def model(body: str, *, opset: int = 17, ir: int = 8) -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\n{body}')


HOST = parse(model("g (float[n] x) => (float[n] y) { y = Relu(x) }").SerializeToString())
FLOATS = TensorType(DType.FLOAT32, (2, 3))


def alone(graph: Graph, **sizes: int) -> ModelProto:
    return onnx.load_from_string(standalone(HOST, graph, sizes))


def region(inputs: list[TensorType | None], make, *, outputs=None) -> Graph:
    """A graph from what `make` returns for its inputs: nodes in order."""
    parameters = tuple(make_parameter(i, type_) for i, type_ in enumerate(inputs))
    nodes = tuple(make(*map(Value, parameters)))
    results = tuple(nodes[-1].outputs if outputs is None else outputs(parameters, nodes))
    return Graph(parameters, results, nodes, tuple("abc"[: len(inputs)]), tuple("xyzuvw"[: len(results)]))


def dims(value: onnx.ValueInfoProto) -> list[int | None]:
    return [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]


@pytest.mark.ort
@settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)  # fmt: skip
@given(cases(bodies=False))
def test_a_whole_graph_stands_alone_and_computes_the_same(case: Case) -> None:
    whole = parse(case.model)
    data = standalone(whole, whole.graph, {})
    feeds = {f"in{i}": case.feeds[name] for i, name in enumerate(whole.graph.input_names) if name in case.feeds}
    given = {i.name for i in onnx.load_from_string(data).graph.input}
    defaults = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load_from_string(case.model).graph.initializer}
    for i, name in enumerate(whole.graph.input_names):
        if f"in{i}" in given and name in defaults:
            feeds[f"in{i}"] = defaults[name]
    assert_same(run(case.model, case.feeds), run(data, {n: v for n, v in feeds.items() if n in given}))


@pytest.mark.unit
def test_versions_are_the_models_and_the_runtimes_domain_is_added() -> None:
    graph = region([FLOATS], lambda x: [make_node("Gelu", [x], {}, [FLOATS], domain="com.microsoft")])
    found = alone(graph)
    assert {o.domain: o.version for o in found.opset_import} == {"": 17, "com.microsoft": 1}
    assert found.ir_version == 8
    old = parse(model("g (float[n] x) => (float[n] y) { y = Relu(x) }", opset=9, ir=3).SerializeToString())
    assert onnx.load_from_string(standalone(old, old.graph, {})).ir_version == 4


@pytest.mark.unit
def test_symbols_take_their_sizes_and_the_rest_stays_open() -> None:
    type_ = TensorType(DType.FLOAT16, ("n", 3, None, "m"))
    found = alone(region([type_], lambda x: [make_node("Relu", [x], {}, [type_])]), n=5)
    assert dims(found.graph.input[0]) == [5, 3, None, None]
    assert found.graph.input[0].name == "in0"
    assert found.graph.output[0].name == "out0"
    assert found.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert not found.graph.output[0].type.tensor_type.HasField("shape")


@pytest.mark.ort
def test_results_that_are_no_fresh_values_are_copied() -> None:
    weight = Value(Constant(ArrayTensor(np.array([7.0], np.float32))))

    def outputs(parameters, nodes):
        y = nodes[0].outputs[0]
        return y, y, Value(parameters[0]), weight

    graph = region([FLOATS], lambda x: [make_node("Neg", [x], {}, [FLOATS])], outputs=outputs)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(standalone(HOST, graph, {}), {"in0": x})
    for value, expected in zip(found, (-x, -x, x, np.array([7.0], np.float32)), strict=True):
        np.testing.assert_array_equal(value, expected)


@pytest.mark.unit
def test_constants_are_initializers_once_and_weight_only_nodes_come_along() -> None:
    weight = Value(Constant(ArrayTensor(np.ones((2, 3), np.float32))))

    def make(x):
        doubled = make_node("Add", [weight, weight], {}, [FLOATS])
        return doubled, make_node("Mul", [x, doubled.outputs[0]], {}, [FLOATS])

    found = alone(region([FLOATS], make))
    assert len(found.graph.initializer) == 1
    assert [n.op_type for n in found.graph.node] == ["Add", "Mul"]


@pytest.mark.unit
def test_optional_outputs_that_nobody_reads_are_left_out_and_others_are_not() -> None:
    def make(x):
        pooled = make_node("MaxPool", [x], {"kernel_shape": (1,)}, [FLOATS, TensorType(DType.INT64, (2, 3))])
        return pooled, make_node("Split", [pooled.outputs[0]], {"axis": 0}, [FLOATS, FLOATS])

    found = alone(region([FLOATS], make, outputs=lambda _, nodes: nodes[1].outputs[:1]))
    assert list(found.graph.node[0].output)[1:] == [""]
    assert all(found.graph.node[1].output)


@pytest.mark.unit
def test_equal_regions_give_equal_bytes() -> None:
    def make(x):
        return [make_node("Add", [x, Value(Constant(ArrayTensor(np.ones(3, np.float32))))], {}, [FLOATS])]

    assert standalone(HOST, region([FLOATS], make), {}) == standalone(HOST, region([FLOATS], make), {})


@pytest.mark.unit
@pytest.mark.parametrize("type_", [None, TensorType(None, (2,))])
def test_an_input_of_unknown_type_is_refused(type_: TensorType | None) -> None:
    graph = region([type_], lambda x: [make_node("Relu", [x], {}, [type_])])
    with pytest.raises(CannotRun, match="input 0 of the region: expected a tensor of a known type"):
        standalone(HOST, graph, {})


@pytest.mark.ort
def test_what_was_computed_before_takes_the_place_of_all_that_it_is_computed_from() -> None:
    weight = Value(Constant(ArrayTensor(np.ones((3, 2), np.float32))))

    def make(x: Value):
        turned = make_node("Transpose", [weight], {"perm": (1, 0)}, [FLOATS])
        doubled = make_node("Add", [turned.outputs[0], turned.outputs[0]], {}, [FLOATS])
        return turned, doubled, make_node("Mul", [x, doubled.outputs[0]], {}, [FLOATS])

    graph = region([FLOATS], make)
    computed = {graph.nodes[1].outputs[0]: ArrayTensor(np.full((2, 3), 5, np.float32))}
    data = standalone(HOST, graph, {}, computed)
    made = onnx.load_from_string(data)
    assert [node.op_type for node in made.graph.node] == ["Mul"]
    assert len(made.graph.initializer) == 1
    assert run(data, {"in0": np.ones((2, 3), np.float32)})[0].tolist() == [[5.0] * 3] * 2
