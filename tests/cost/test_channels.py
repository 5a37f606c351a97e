# pyright: basic
"""Regions with channels last at their borders."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.channels import with_channels_last, works_on_images
from superopt.cost.inputs import region_feeds
from superopt.cost.manner import keeps_channels_last
from superopt.cost.workloads import host
from superopt.ir.graph import Graph, Value, make_node, make_parameter
from superopt.ir.onnx.standalone import standalone
from superopt.ir.types import DType, TensorType
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

IMAGE, ROW = TensorType(DType.FLOAT32, (2, 3, 5, 7)), TensorType(DType.FLOAT32, (3, 1, 1))


def region() -> Graph:
    """(x + r, relu(x)), and the row itself."""
    x, row = make_parameter(0, IMAGE), make_parameter(1, ROW)
    total = make_node("Add", [Value(x), Value(row)], {}, [IMAGE])
    pooled = make_node("MaxPool", [total.outputs[0]], {"kernel_shape": (1, 1)}, [IMAGE])
    doubled = make_node("Add", [Value(row), Value(row)], {}, [ROW])
    outputs = (pooled.outputs[0], doubled.outputs[0])
    return Graph((x, row), outputs, (total, pooled, doubled), ("in0", "in1"), ("out0", "out1"))


def answers(graph: Graph, feeds) -> dict:
    with Session(standalone(host(), graph, {}, {}), Deployment("cpu")) as session:
        return session.run(feeds)


@pytest.mark.ort
def test_images_are_turned_at_the_borders_and_nothing_else_is() -> None:
    plain = region()
    turned = with_channels_last(plain, set(plain.inputs))
    assert [p.type for p in turned.inputs] == [TensorType(DType.FLOAT32, (2, 5, 7, 3)), ROW]
    assert [v.type for v in turned.outputs] == [TensorType(DType.FLOAT32, (2, 5, 7, 3)), ROW]
    feeds = region_feeds(plain, {}, 0)
    assert feeds is not None
    expected = answers(plain, feeds)
    found = answers(turned, {**feeds, "in0": np.ascontiguousarray(feeds["in0"].transpose(0, 2, 3, 1))})
    np.testing.assert_array_equal(found["out0"].transpose(0, 3, 1, 2), expected["out0"])
    np.testing.assert_array_equal(found["out1"], expected["out1"])


@pytest.mark.unit
def test_what_the_model_is_given_stays_as_it_is() -> None:
    plain = region()
    turned = with_channels_last(plain, set())
    assert turned.inputs == plain.inputs
    assert turned.outputs[0].type == TensorType(DType.FLOAT32, (2, 5, 7, 3))


@pytest.mark.unit
def test_where_channels_come_last() -> None:
    assert works_on_images(region())
    alone = make_node("Relu", [Value(make_parameter(0, IMAGE))], {}, [IMAGE])
    assert not works_on_images(Graph((make_parameter(0, IMAGE),), alone.outputs, (alone,), ("in0",), ("out0",)))
    assert keeps_channels_last(Deployment("cuda", provider_options=(("prefer_nhwc", "1"),)))
    assert not keeps_channels_last(Deployment("cuda"))
