# pyright: basic
"""The networks built for the benchmark: valid, the same every time, and the same function when merged by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks import built, built_images, handmade, suite
from benchmarks.building import IR_VERSION, OPSET, Net, draw
from benchmarks.built_images import Block
from benchmarks.graphs import count_nodes


def random_inputs(model: onnx.ModelProto) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(1)
    shapes = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input]
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def answers(model: onnx.ModelProto) -> list[np.ndarray]:
    (found,) = suite.run(model.SerializeToString(), [(random_inputs(model), ())])
    return [np.asarray(y) for y in found]


def block_model(write, block: Block, pixels: int = 8) -> onnx.ModelProto:
    net = Net("block")
    net.output(write(net, "x", block), "y")
    size = -(-pixels // block.stride)
    return net.model({"x": [1, block.channels, pixels, pixels]}, {"y": [1, block.out, size, size]})


@pytest.mark.unit
def test_a_weight_is_a_function_of_its_name() -> None:
    assert (draw("a", 5) == draw("a", 5)).all()
    assert not (draw("a", 5) == draw("b", 5)).any()


@pytest.mark.unit
def test_a_scalar_stays_one_and_is_shared() -> None:
    net = Net("scalars")
    assert net.scalar(3.0) == net.scalar(3.0)
    assert [list(t.dims) for t in net.weights.values()] == [[]]


@pytest.mark.unit
def test_what_is_merged_by_hand_is_built_too(tmp_path: Path) -> None:
    assert handmade.MODELS.keys() < built.MODELS.keys()
    assert built.main([str(tmp_path), "--only", "matmul|lstm"]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"matmul-chain.onnx", "matmul-chain.hand.onnx", "lstm-unrolled.onnx"}
    first = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    built.write(tmp_path, ["matmul-chain", "lstm-unrolled"])
    assert first == {p.name: p.read_bytes() for p in tmp_path.iterdir()}


@pytest.mark.ort
@pytest.mark.parametrize(
    "block",
    [
        Block("stem", 3, 8, (3, 1), stride=2),
        Block("dense", 8, 8, (3, 1)),
        Block("depthwise", 8, 8, (3, 3, 1), groups=8),
        Block("grouped", 8, 8, (3, 1), groups=2),
        Block("depthwise-stride", 8, 8, (3, 1), 2, 8),
        Block("pointwise", 8, 16, (1, 1)),
    ],
    ids=lambda block: block.name,
)
def test_a_block_is_one_convolution_when_merged(block: Block) -> None:
    branched, merged = (block_model(w, block) for w in (built_images.spelled_out, handmade.merged_block))
    assert [n.op_type for n in merged.graph.node] == ["Conv", "Relu"]
    (found,), (expected,) = answers(merged), answers(branched)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert (expected > 0).mean() > 0.1


@pytest.mark.ort
@pytest.mark.slow
@pytest.mark.parametrize("name", built.MODELS)
def test_a_built_network_is_valid_and_runs_and_is_what_was_merged_by_hand(name: str) -> None:
    model = built.MODELS[name]()
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == IR_VERSION
    assert [o.version for o in model.opset_import if o.domain == ""] == [OPSET]
    assert model.ByteSize() < 64_000_000
    assert model.ByteSize() > 500_000 or name in ("linear-attention-block", "hardswish-block")  # without weights
    expected = answers(model)
    assert all(np.isfinite(y).all() and y.std() > 0.05 for y in expected)
    if name in handmade.MODELS:
        merged = handmade.MODELS[name]()
        assert merged.graph.input == model.graph.input
        assert merged.graph.output == model.graph.output
        assert count_nodes(merged.graph) < count_nodes(model.graph) or "linear-attention" in name
        for found, right in zip(answers(merged), expected, strict=True):
            assert np.abs(found - right).max() < 1e-5 * np.abs(right).max()
