"""Small models for the checker's tests, as it gets them: parsed, from bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from superopt.check import Request, check
from superopt.ir.onnx import Model, parse
from superopt.report import CheckReport

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
FLOAT16, DOUBLE, INT32, UINT8 = TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.UINT8
Array = NDArray[Any]
node = helper.make_node


def value(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    name: str = "g",
) -> GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), tensors)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    opset: int = 18,
    domains: Sequence[str] = (),
) -> Model:
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    opsets += [helper.make_opsetid(domain, 1) for domain in domains]
    made = helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=opsets, ir_version=9)
    return parse(made.SerializeToString())


def compared(original: Model, candidate: Model, **request: Any) -> CheckReport:
    return check(original, candidate, Request(**request))


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
