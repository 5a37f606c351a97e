# pyright: basic
"""What comes of operators that onnx's inference does not know is what their formulas say, as laws hold them to."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.errors import BadInput
from superopt.ir.onnx import parse
from superopt.ir.onnx.stand_ins import _MICROSOFT as KNOWN  # pyright: ignore[reportPrivateUsage]
from superopt.ir.types import DType, TensorType
from superopt.ops.registry import Operator
from tests.specs.test_laws import OPERATORS, apply, draws, name

pytestmark = pytest.mark.unit
FORMULAS = [o for o in OPERATORS if o.domain == "com.microsoft" and o.name in KNOWN]
HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list],
    outputs: list[str],
    opset: int = 17,
    dtype: int = FLOAT,
    **more,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(key, dtype, shape) for key, shape in inputs.items()],
        [helper.make_tensor_value_info(key, dtype, None) for key in outputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def microsoft(op: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    read, written = (["" if key == "_" else key for key in keys.split()] for keys in (inputs, outputs))
    return helper.make_node(op, read, written, domain="com.microsoft", **attributes)


def types(proto: onnx.ModelProto) -> dict[str, TensorType]:
    graph = parse(proto.SerializeToString()).graph
    return {key: value.type for key, value in zip(graph.output_names, graph.outputs, strict=True)}  # pyright: ignore[reportReturnType]


def is_attribute(operator: Operator, key: str, value: object) -> bool:
    parameter = operator.parameter(key)
    return parameter is not None and parameter.kind == "attribute" and value is not None


def test_every_operator_that_rules_write_is_told() -> None:
    assert {o.name for o in OPERATORS if o.domain == "com.microsoft"} - set(KNOWN) == {"NhwcConv"}


@pytest.mark.parametrize("operator", FORMULAS, ids=name)
def test_results_have_the_shapes_that_the_formula_gives_them(operator: Operator) -> None:
    told = 0
    for draw, _ in draws(operator, 25):
        expected = [tuple(result.shape) for result in apply(operator, draw)]
        if any(0 in shape for shape in (*draw.shapes, *expected) if shape is not None):
            continue
        given = {f"x{k}": list(shape) for k, shape in enumerate(draw.shapes) if shape is not None}
        names = " ".join(f"x{k}" if f"x{k}" in given else "_" for k in range(len(draw.shapes)))
        results = [f"y{k}" for k in range(len(expected))]
        attributes = {key: value for key, value in draw.arguments.items() if is_attribute(operator, key, value)}
        node = microsoft(operator.name, names, " ".join(results), **attributes)
        for opset in (13, 20):
            found = types(model([node], given, results, opset))
            shapes = [found[key].shape if isinstance(found[key], TensorType) else None for key in results]
            assert all(shape in (None, real) for shape, real in zip(shapes, expected, strict=True)), draw
            told += shapes[0] is not None
    assert told > 10


def test_sizes_that_are_symbols_stay_what_they_are() -> None:
    nodes = [
        microsoft("SkipLayerNormalization", "x z g b", "n _ _ s", epsilon=1e-5),
        microsoft("Attention", "n w c", "a", num_heads=2),
        microsoft("FusedMatMul", "a m", "p", transB=1),
        microsoft("FastGelu", "p", "y"),
    ]
    inputs = {
        "x": ["batch", "length", 8], "z": ["batch", "length", 8], "g": [8], "b": [8], "w": [8, 24], "c": [24],
        "m": [12, 8],
    }  # fmt: skip
    found = types(model(nodes, inputs, ["y", "s"], dtype=HALF))
    batch, length, _ = found["s"].shape or (None, None, None)
    assert found["y"] == TensorType(DType.FLOAT16, (batch, length, 12))
    assert isinstance(batch, str)
    assert batch != length


def test_queries_keys_and_values_that_are_packed_by_head() -> None:
    nodes = [microsoft("MultiHeadAttention", "x", "y", num_heads=4)]
    assert types(model(nodes, {"x": [2, 5, 4, 3, 6]}, ["y"]))["y"].shape == (2, 5, 24)
    nodes = [microsoft("MultiHeadAttention", "q k", "y", num_heads=4)]
    assert types(model(nodes, {"q": [2, 5, 24], "k": [2, 7, 4, 2, 6]}, ["y"]))["y"].shape == (2, 5, 24)


def test_values_of_a_width_of_their_own() -> None:
    nodes = [microsoft("MultiHeadAttention", "q k v", "y", num_heads=2)]
    inputs = {"q": ["b", 5, 8], "k": ["b", "t", 8], "v": ["c", "t", 6]}
    assert (types(model(nodes, inputs, ["y"]))["y"].shape or ())[1:] == (5, 6)
    split = [microsoft("Attention", "x w c", "y", num_heads=2, qkv_hidden_sizes=[8, 8, 4])]
    found = types(model(split, {"x": [2, 5, 8], "w": [8, 20], "c": [20]}, ["y"]))["y"]
    assert found is None or found.shape is None


@pytest.mark.parametrize("op", ["FastGelu", "Inverse"])
def test_nothing_is_believed_of_what_a_function_of_the_model_says_about_an_operator_of_onnxruntimes(op: str) -> None:
    """onnxruntime runs its own operator, if there is one of that name."""
    body = [helper.make_node("Transpose", ["x"], ["y"])]
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("com.microsoft", op, ["x"], ["y"], body, opsets)
    nodes = [microsoft(op, "x", "y"), helper.make_node("Relu", ["x"], ["z"])]
    found = types(model(nodes, {"x": [2, 3]}, ["y", "z"], functions=[function]))
    assert found["y"] is None or found["y"].shape is None
    assert found["z"].shape == (2, 3)


def test_a_bias_of_a_gelu_may_make_it_larger() -> None:
    """Without a kernel for 16 bits onnxruntime runs it as a sum and a function."""
    node = microsoft("FastGelu", "x b", "y")
    assert types(model([node], {"x": [1, 4], "b": [3, 4]}, ["y"], dtype=HALF))["y"].shape == (3, 4)
    shape = types(model([node], {"x": ["n", 1], "b": [4]}, ["y"], dtype=HALF))["y"].shape
    assert shape is not None
    assert shape[-1] == 4


@pytest.mark.parametrize("where", ["read", "input", "initializer", "branch"])
def test_names_that_stand_ins_would_have_stay_those_of_the_model(where: str) -> None:
    """The part of a stand-in must not be taken for a value of the model that happens to be called so."""
    name, inputs = "part of y 2", {"x": [2, 5, 8], "w": [8, 24], "c": [24]}
    nodes, outputs = [microsoft("Attention", "x w c", "y", num_heads=2)], ["y"]
    if where == "read":
        nodes.insert(0, helper.make_node("Transpose", ["w"], [name], perm=[1, 0]))
        outputs.append(name)
    proto = model(nodes, {**inputs, **({name: [8, 7]} if where == "input" else {})}, outputs)
    tensor = onnx.numpy_helper.from_array(np.zeros((8, 7), np.float32), name)
    if where == "initializer":
        proto.graph.initializer.append(tensor)
    if where == "branch":
        proto = in_a_branch(proto, tensor)
    found = types(proto)
    assert found["y"].shape == (2, 5, 8)
    if where == "read":
        assert found[name].shape == (24, 8)


def in_a_branch(proto: onnx.ModelProto, tensor: onnx.TensorProto) -> onnx.ModelProto:
    branch = onnx.GraphProto(name="b", node=proto.graph.node, output=proto.graph.output, initializer=[tensor])
    given = [*proto.graph.input, helper.make_tensor_value_info("c0", TensorProto.BOOL, [])]
    choice = helper.make_node("If", ["c0"], ["z"], then_branch=branch, else_branch=branch)
    last = helper.make_node("Identity", ["z"], ["y"])
    proto.graph.CopyFrom(helper.make_graph([choice, last], "g", given, proto.graph.output))
    return proto


@pytest.mark.parametrize("op", [*KNOWN, "LayerNormalization", "SimplifiedLayerNormalization"])
def test_nodes_that_lack_something_are_loaded_or_refused(op: str) -> None:
    attributes = [
        onnx.AttributeProto(name="dilations", type=onnx.AttributeProto.INTS),
        onnx.AttributeProto(name="op_type", type=onnx.AttributeProto.STRING, s=b"x"),
        onnx.AttributeProto(name="transA", type=onnx.AttributeProto.INT, i=1),
        onnx.AttributeProto(name="qkv_hidden_sizes", type=onnx.AttributeProto.INT, i=1, ref_attr_name="k"),
    ]
    for read, written in itertools.product(
        ([], [""], ["x"], ["", "x"], ["x", "x", "", "x"]), ([], [""], ["y"], ["", "y"])
    ):
        node = onnx.NodeProto(op_type=op, domain="com.microsoft" if op in KNOWN else "", input=read, output=written)
        node.attribute.extend(attributes)
        last = helper.make_node("Relu", ["x"], ["z"])
        with contextlib.suppress(BadInput):
            parse(model([node, last], {"x": [2, 4]}, ["z"], opset=16).SerializeToString())


def test_normalizations_that_onnxruntime_writes_into_old_opsets() -> None:
    nodes = [
        helper.make_node("LayerNormalization", ["x", "g"], ["y"], axis=-1),
        helper.make_node("SimplifiedLayerNormalization", ["y", "g"], ["z"], axis=-1),
    ]
    assert types(model(nodes, {"x": ["n", 4, 8], "g": [8]}, ["z"], opset=16))["z"].shape is not None


def test_weights_of_another_type_decide_what_a_normalization_gives() -> None:
    proto = model(
        [helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"])], {"x": [4, 8]}, ["y"], dtype=HALF
    )
    proto.graph.output[0].type.tensor_type.elem_type = FLOAT
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(8, np.float32), "g"))
    assert types(proto)["y"].dtype is DType.FLOAT32
