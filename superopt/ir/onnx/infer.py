# pyright: basic
"""What onnx's shape inference knows about every value, computed without carrying the weights along.

Inference starts from what onnxruntime enforces: the model's tensor inputs and its constants. Shapes that the file
declares for anything else are not believed (inner values, inputs of a loop's body, elements of a sequence: nobody holds
a run to them), and neither is the default of an input that the caller may override. A rewrite must not rest on them.
Symbols of the result are as `superopt.ir.onnx.symbols` says: equal ones are equal sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, ValueInfoProto

from superopt.ir.onnx.guesses import HIDDEN, hide_all, hide_guesses
from superopt.ir.onnx.solving import solve
from superopt.ir.onnx.stand_ins import Setting, stand_ins
from superopt.ir.onnx.symbols import clear_shapes, forget_elements, nodes_within, with_own_symbols
from superopt.ir.onnx.tensors import DTYPES
from superopt.ir.types import (
    Dim,
    DType,
    MapType,
    OptionalType,
    SequenceType,
    SparseType,
    TensorType,
    Type,
)

ROUNDS, WORK = 64, 100_000
"""How often inference begins again with what was solved, and nodes that this may come to: before opset 14 it knows
nothing of what comes of a Reshape whose target is computed, and all that follows waits."""
SMALL = 1024
"""Constants up to this many bytes keep their values: shapes and axes are computed from them."""


def infer(model: ModelProto, shapes: Mapping[str, Sequence[int]] | None = None) -> GraphProto | None:
    """The graph with inferred value types in its value_info fields, bodies likewise; None where inference gives up.

    With `shapes` the inputs they name have those instead of what the file declares.
    """
    if any(f.domain in ("", "ai.onnx") for f in model.functions):
        return None  # onnx would infer by its own definition of an operator that the model redefines
    setting = Setting.of(model)
    # From version 4 on onnx takes the type of an initializer that is no input from the initializer.
    skeleton = ModelProto(ir_version=max(model.ir_version, 4))
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    for imports in (skeleton.opset_import, *(f.opset_import for f in skeleton.functions)):
        imports.add(domain=HIDDEN, version=1)  # beside functions inference gives up at the first domain not imported
    for function in skeleton.functions:
        function.ClearField("value_info")
        hide_all(function.node, setting.opset)
    _strip(model.graph, skeleton.graph, setting, overridable=model.ir_version >= 4)
    known = {value.name: value for value in with_own_symbols(model.graph.input)}
    for value in skeleton.graph.input:
        value.CopyFrom(known[value.name])
        if shapes is not None and value.name in shapes and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
            value.type.tensor_type.shape.SetInParent()
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add(dim_value=size)
    found: GraphProto | None = None
    nodes = sum(1 for _ in nodes_within(skeleton.graph.node))
    for _ in range(max(2, min(ROUNDS, WORK // max(1, nodes)))):
        more = _without_guesses(skeleton, setting.opset)
        if more is None:
            break
        found = more
        forget_elements(found, model.functions)
        try:
            solved = solve(found)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            break  # attributes or inputs that are none: onnxruntime will say so
        if not _told(skeleton.graph, found, solved):
            break
    return found


def _without_guesses(skeleton: ModelProto, opset: int) -> GraphProto | None:
    found = _inferred(skeleton)
    if found is not None and hide_guesses(skeleton.graph, found, opset):
        found = _inferred(skeleton)
        if found is not None and hide_guesses(skeleton.graph, found, opset):
            hide_all(skeleton.graph.node, opset)
            found = _inferred(skeleton)
    return found


def _told(skeleton: GraphProto, found: GraphProto, shapes: Mapping[str, Sequence[Dim]]) -> bool:
    """Tells inference shapes of which it found nothing; whether there were any. Symbols that it invented go without a
    name, because it invents others the next time; shapes that have some wait until there are no others: more may come
    to be known of them."""
    own = {dim.dim_param for value in skeleton.input for dim in value.type.tensor_type.shape.dim}
    known = {v.name for v in (*skeleton.value_info, *skeleton.output) if v.type.tensor_type.HasField("shape")}
    types = {value.name: value for value in (*found.value_info, *found.output)}
    outputs = {value.name: value for value in skeleton.output}
    news = {name: shape for name, shape in shapes.items() if name not in known and name in types}
    whole = {name: shape for name, shape in news.items() if all(isinstance(d, int) or d in own for d in shape)}
    for name, shape in (whole or news).items():
        value = skeleton.value_info.add(name=name) if name not in outputs else outputs[name]
        value.type.tensor_type.elem_type = types[name].type.tensor_type.elem_type
        value.type.tensor_type.shape.SetInParent()
        for dim in shape:
            told = value.type.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                told.dim_value = dim
            elif dim in own:
                told.dim_param = dim
    return bool(news)


def _inferred(skeleton: ModelProto) -> GraphProto | None:
    try:
        return onnx.shape_inference.infer_shapes(skeleton, check_type=False, strict_mode=False, data_prop=True).graph
    except (RuntimeError, ValueError, onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
        return None


def _strip(graph: GraphProto, out: GraphProto, setting: Setting, overridable: bool) -> None:
    """Copy a graph without heavy constants and without declared shapes."""
    out.name = graph.name
    inputs = _free_inputs(graph, overridable)
    for value in inputs:
        _without_shape(value, out.input.add())
    for value in graph.output:
        _without_shape(value, out.output.add())
    defaults = {v.name for v in inputs}
    for tensor in graph.initializer:
        if tensor.name not in defaults:
            _strip_tensor(tensor, out.initializer.add())
    for sparse in graph.sparse_initializer:
        slim = out.sparse_initializer.add()
        slim.dims.extend(sparse.dims)
        _strip_tensor(sparse.values, slim.values)
    for node in graph.node:
        if others := stand_ins(node, setting):
            out.node.extend(others)
            continue
        slim_node = out.node.add(op_type=node.op_type, domain=node.domain, overload=node.overload)
        slim_node.input.extend(node.input)
        slim_node.output.extend(node.output)
        for attribute in node.attribute:
            _strip_attribute(attribute, slim_node.attribute.add(), setting, overridable)


def _free_inputs(graph: GraphProto, overridable: bool) -> list[ValueInfoProto]:
    """Inputs that no initializer fixes; where initializers can be overridden, that is all of them."""
    fixed = set() if overridable else {t.name for t in graph.initializer}
    return [v for v in graph.input if v.name not in fixed]


def _without_shape(value: ValueInfoProto, out: ValueInfoProto) -> None:
    out.name = value.name
    if value.HasField("type"):
        out.type.CopyFrom(value.type)
        clear_shapes(out.type)


def _strip_attribute(attribute: AttributeProto, out: AttributeProto, setting: Setting, overridable: bool) -> None:
    out.name, out.type = attribute.name, attribute.type
    if attribute.type == AttributeProto.GRAPH:
        _strip(attribute.g, out.g, setting, overridable)
    elif attribute.type == AttributeProto.GRAPHS:
        for body in attribute.graphs:
            _strip(body, out.graphs.add(), setting, overridable)
    elif attribute.type == AttributeProto.TENSOR:
        _strip_tensor(attribute.t, out.t)
    else:
        out.CopyFrom(attribute)


def _strip_tensor(tensor: TensorProto, out: TensorProto) -> None:
    if tensor.data_location != TensorProto.EXTERNAL and tensor.ByteSize() <= SMALL:
        out.CopyFrom(tensor)
        return
    out.name, out.data_type, out.data_location = tensor.name, tensor.data_type, TensorProto.EXTERNAL
    out.dims.extend(tensor.dims)


def value_types(graph: GraphProto | None) -> dict[str, Type]:
    """Types by name for one graph, bodies not included."""
    if graph is None:
        return {}
    return {
        value.name: type_of(value.type)
        for value in (*graph.value_info, *graph.input, *graph.output)
        if value.HasField("type")
    }


def type_of(proto: onnx.TypeProto) -> Type:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return TensorType(_dtype(proto.tensor_type.elem_type), _shape(proto.tensor_type))
    if kind == "sparse_tensor_type":
        return SparseType(_dtype(proto.sparse_tensor_type.elem_type), _shape(proto.sparse_tensor_type))
    if kind == "sequence_type":
        return SequenceType(type_of(proto.sequence_type.elem_type))
    if kind == "optional_type":
        return OptionalType(type_of(proto.optional_type.elem_type))
    if kind == "map_type":
        return MapType(_dtype(proto.map_type.key_type) or DType.INT64, type_of(proto.map_type.value_type))
    return None


def _dtype(code: int) -> DType | None:
    return DTYPES.get(code)


def _shape(proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor) -> tuple[Dim, ...] | None:
    if not proto.HasField("shape"):
        return None
    return tuple(_dim(d) for d in proto.shape.dim)


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param or None
