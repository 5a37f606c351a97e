# pyright: basic
"""Run one operator in onnxruntime, from the same arguments that its formula takes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from superopt.errors import CannotRun
from superopt.ops.registry import Operator
from superopt.runtime.deployment import Deployment, Target
from superopt.runtime.session import Session

OPSETS = {"": 24, "com.microsoft": 1}
IR_VERSION = 11


def opset_for(operator: Operator) -> int:
    """The newest opset that both the runtime and the definition cover."""
    newest = OPSETS[""] if operator.until is None else operator.until
    return newest if not operator.domain else OPSETS[""]


def run(
    operator: Operator,
    inputs: list[np.ndarray | None],
    arguments: dict[str, Any],
    outputs: int,
    target: Target | None = None,
) -> list[np.ndarray]:
    """The results on a target; where none is named, on the one that has a kernel."""
    if _takes_the_process_down(operator, inputs, arguments):
        raise CannotRun("onnxruntime divides by the size of an empty diagonal, which x86 does not survive")
    opset = opset_for(operator)
    names: dict[int, str] = {}
    infos, initializers, attributes, feeds = [], [], {}, {}
    in_file = _input_names(operator, opset)
    slots = [p.name for p in operator.parameters if p.kind != "attribute"] if in_file is None else in_file
    known = {p.name for p in operator.parameters if p.kind == "static"}
    places = (k for k in itertools.count() if k >= len(slots) or slots[k] not in known)
    for k, (place, value) in enumerate(zip(places, inputs, strict=False)):
        if value is None:
            continue
        names[place] = f"x{k}"
        if k and (target or operator.runs_on) == "cuda":  # NhwcConv has a kernel for constant filters alone
            initializers.append(numpy_helper.from_array(value, f"x{k}"))
            continue
        infos.append(helper.make_tensor_value_info(f"x{k}", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        feeds[f"x{k}"] = value
    for name, value in arguments.items():
        parameter = operator.parameter(name)
        assert parameter is not None, name
        if value is None:
            continue
        if parameter.kind == "static" and name in slots:
            names[slots.index(name)] = name
            initializers.append(numpy_helper.from_array(_static(value), name))
        else:
            attributes[name] = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
    in_order = [names.get(k, "") for k in range(max(names, default=-1) + 1)]
    node = helper.make_node(
        operator.name, in_order, [f"y{k}" for k in range(outputs)], domain=operator.domain, **attributes
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
    deployment = Deployment(target or operator.runs_on, threads=1, level="disable", tf32=False)
    with Session(model.SerializeToString(), deployment) as session:
        found = session.run(feeds)
    return [np.asarray(found[f"y{k}"]) for k in range(outputs)]


def _takes_the_process_down(operator: Operator, inputs: list[np.ndarray | None], arguments: dict[str, Any]) -> bool:
    """Einsum with a letter twice in one term, of a tensor without elements."""
    terms = str(arguments.get("equation", "")).split("->")[0].replace("...", "").replace(" ", "").split(",")
    pairs = zip(terms, inputs, strict=False)
    return operator.name == "Einsum" and any(len(set(t)) < len(t) and x is not None and not x.size for t, x in pairs)


def _static(value: Any) -> np.ndarray:
    """An array keeps its type; other integers are written as ONNX has most of them."""
    if isinstance(value, np.ndarray):
        return value
    array = np.asarray(value)
    return array.astype(np.float32 if array.size and array.dtype.kind == "f" else np.int64)


def _input_names(operator: Operator, opset: int) -> list[str] | None:
    """Names of the operator's inputs as ONNX has them; None where onnx knows no schema."""
    try:
        schema = onnx.defs.get_schema(operator.name, opset, operator.domain)
    except onnx.defs.SchemaError:
        return None
    return [i.name for i in schema.inputs]
