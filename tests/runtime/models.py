"""Small models for the tests of this folder and of tests/cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def tensor(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: dict[str, Any] | None = None,
) -> onnx.ModelProto:
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in (initializers or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), initializer=constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def add_one() -> bytes:
    nodes = [helper.make_node("Add", ["x", "one"], ["y"])]
    made = model(nodes, [tensor("x", ["n", 3])], [tensor("y", ["n", 3])], {"one": np.array([1, 1, 1], np.float32)})
    return made.SerializeToString()
