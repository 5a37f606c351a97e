# pyright: basic
"""Run one operator in onnxruntime, from the same arguments that its formula takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from superopt.ops.registry import Operator
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

OPSETS = {"": 24, "com.microsoft": 1}
IR_VERSION = 11


def opset_for(operator: Operator) -> int:
    """The newest opset that both the runtime and the definition cover."""
    newest = OPSETS[""] if operator.until is None else operator.until
    return newest if not operator.domain else OPSETS[""]


def run(
    operator: Operator, inputs: list[np.ndarray | None], arguments: dict[str, Any], outputs: int
) -> list[np.ndarray]:
    opset = opset_for(operator)
    names: list[str] = []
    infos, initializers, attributes, feeds = [], [], {}, {}
    in_file = _input_names(operator, opset)
    for k, value in enumerate(inputs):
        if value is None:
            names.append("")
            continue
        names.append(f"x{k}")
        infos.append(helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        feeds[f"x{k}"] = value
    for name, value in arguments.items():
        parameter = operator.parameter(name)
        assert parameter is not None, name
        if parameter.kind == "static" and (in_file is None or name in in_file):
            position = [p.name for p in operator.parameters].index(name) if in_file is None else in_file.index(name)
            names.extend([""] * (position + 1 - len(names)))
            names[position] = name
            initializers.append(numpy_helper.from_array(np.asarray(value, np.int64), name))
        elif value is not None:
            attributes[name] = value
    node = helper.make_node(
        operator.name, names, [f"y{k}" for k in range(outputs)], domain=operator.domain, **attributes
    )
    graph = helper.make_graph(
        [node], "one", infos,
        [helper.make_tensor_value_info(f"y{k}", TensorProto.UNDEFINED, None) for k in range(outputs)], initializers,
    )  # fmt: skip
    for output in graph.output:
        output.ClearField("type")
    imports = [helper.make_opsetid("", opset)]
    if operator.domain:
        imports.append(helper.make_opsetid(operator.domain, OPSETS[operator.domain]))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    with Session(model.SerializeToString(), Deployment("cpu", threads=1, level="disable")) as session:
        found = session.run(feeds)
    return [np.asarray(found[f"y{k}"]) for k in range(outputs)]


def _input_names(operator: Operator, opset: int) -> list[str] | None:
    """Names of the operator's inputs as ONNX has them; None where onnx knows no schema."""
    try:
        schema = onnx.defs.get_schema(operator.name, opset, operator.domain)
    except onnx.defs.SchemaError:
        return None
    return [i.name for i in schema.inputs]
