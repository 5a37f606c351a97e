# pyright: basic
"""BatchNormalization into the convolution before it: where it is right, how it is rounded, where it is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.graphs import run
from tests.normalize.models import Done, done, held
from tests.normalize.test_folding import onnx_model

pytestmark = pytest.mark.ort

ABS = helper.make_node("Abs", ["c"], ["z"])


def network(
    op: str = "Conv",
    *,
    dtype: str = "float32",
    group: int = 1,
    bias: bool = True,
    opset: int = 17,
    ir: int = 8,
    variance: float = 1.0,
    scale: float = 1.0,
    weight: float = 1.0,
    extra: tuple[onnx.NodeProto, ...] = (),
    outputs: tuple[str, ...] = ("y",),
    **attributes: int,
) -> bytes:
    """x [n,4,6,6] → convolution to 6 channels → BatchNormalization → Relu."""
    rng = np.random.default_rng(1)
    shape = (6, 4 // group, 3, 3) if op == "Conv" else (4, 6 // group, 3, 3)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    arrays = {
        "w": rng.normal(size=shape) * weight,
        "b": rng.normal(size=6),
        "s": rng.uniform(0.5, 2, 6) * scale,
        "t": rng.normal(size=6),
        "m": rng.normal(size=6),
        "v": rng.uniform(0.5, 2, 6) * variance,
    }
    if not bias:
        del arrays["b"]
    nodes = [
        helper.make_node(op, ["x", "w", "b"] if bias else ["x", "w"], ["c"], "conv", group=group),
        helper.make_node(
            "BatchNormalization", ["c", "s", "t", "m", "v"], ["n"], "norm", None, None, None, **attributes
        ),
        helper.make_node("Relu", ["n"], ["y"], "relu"),
        *extra,
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", code, ["n", 4, 6, 6])],
        [helper.make_tensor_value_info(name, code, None) for name in outputs],
        [numpy_helper.from_array(a.astype(dtype), name) for name, a in arrays.items()],
    )
    return onnx_model(graph, opset, ir)


def merged(outcome: Done) -> bool:
    assert ("batchnorm-into-conv" in outcome.names) == ("BatchNormalization" not in outcome.ops)
    return "batchnorm-into-conv" in outcome.names


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("opset", [7, 9, 14, 15])
def test_it_merges(op: str, group: int, bias: bool, opset: int) -> None:
    outcome = held(network(op, group=group, bias=bias, opset=opset))
    assert merged(outcome)
    assert outcome.ops == [op, "Relu"]
    [rewrite] = outcome.rewrites
    assert rewrite.proof == "by definition; rounded once from float64"
    assert rewrite.place == "norm"
    assert outcome.proto.graph.node[0].name == "conv"
    assert outcome.constants == ["n_weight", "n_bias"]


def test_it_merges_in_float64() -> None:
    assert merged(done(network(dtype="float64")))  # for which onnxruntime has no Conv on the CPU


def test_it_merges_in_float16() -> None:
    """The original rounds once more, after the convolution: the merged one must be no further from the truth."""
    data = network(dtype="float16")
    outcome = done(data)
    assert merged(outcome)
    x = np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype(np.float16)
    [before], [after] = run(data, {"x": x}), run(outcome.after, {"x": x})
    [truth] = run(network(), {"x": x.astype(np.float32)})
    assert np.abs(after - truth).max() < 2 * np.abs(before - truth).max() < 0.05


def test_it_rounds_once() -> None:
    data = network()
    arrays = {
        t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.load_from_string(data).graph.initializer
    }
    factor = arrays["s"] / np.sqrt(arrays["v"] + np.float64(np.float32(1e-5)))
    outcome = {t.name: numpy_helper.to_array(t) for t in held(data).proto.graph.initializer}
    np.testing.assert_array_equal(outcome["n_weight"], (arrays["w"] * factor[:, None, None, None]).astype(np.float32))


def test_before_ir_version_4_new_constants_are_nodes() -> None:
    data = network(opset=9, ir=3)
    proto = onnx.load_from_string(data)
    for tensor in proto.graph.initializer:
        proto.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    outcome = held(proto.SerializeToString())
    assert merged(outcome)
    assert len(outcome.constants) == 6


@pytest.mark.parametrize(
    ("why", "data"),
    [
        ("it trains", network(opset=14, training_mode=1)),
        ("each element has its own statistics", network(opset=7, spatial=0)),
        ("the variance is negative", network(variance=-1.0)),
        ("float16 overflows", network(dtype="float16", scale=2e4, weight=20.0)),
        ("float16 underflows", network(dtype="float16", scale=1e-4, weight=1e-3)),
        (
            "the convolution is read elsewhere",
            network(extra=(helper.make_node("Abs", ["c"], ["z"]),), outputs=("y", "z")),
        ),
        ("the convolution is a result", network(outputs=("y", "c"))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_does_not_merge(why: str, data: bytes) -> None:
    assert not merged(done(data))


def test_statistics_that_are_inputs_stay() -> None:
    proto = onnx.load_from_string(network())
    proto.graph.input.append(helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [6]))
    outcome = held(proto.SerializeToString(), {"v": np.full(6, 2, np.float32)})
    assert not merged(outcome)


def test_a_shared_weight_is_copied_within_the_cap_only() -> None:
    other = helper.make_node("Conv", ["x", "w"], ["z"])
    data = network(extra=(other,), outputs=("y", "z"))
    assert merged(held(data))
    assert not merged(held(data, growth_cap=100))


def test_the_zero_bias_of_the_torch_exporter() -> None:
    """CastLike(0, x) → Expand gives each bias-free convolution a bias: it ends as a constant, and the rest merges."""
    proto = onnx.load_from_string(network(bias=False))
    zero = helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array(0, np.float32)))
    like = helper.make_node("CastLike", ["zero", "x"], ["like"], "like")
    size = helper.make_node("Constant", [], ["size"], value_ints=[6])
    bias = helper.make_node("Expand", ["like", "size"], ["b"], "expand")
    nodes = [zero, like, size, bias, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.node[4].input.append("b")
    outcome = held(proto.SerializeToString())
    assert outcome.names == ["cast-like", "cast-same-type", "constant-folding", "batchnorm-into-conv"]
    assert outcome.ops == ["Conv", "Relu"]
