"""The original more precisely: what it computes in 16 bits computed in float32, from the same inputs and weights.

Moving inputs by a unit of the last place does not show what rounding every result on the way to 11 bits does: a
transformer of four layers in float16 is 1.2 to 2.2 tolerances away from what its own weights say. This says how far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from superopt.ir.onnx.model import Model

MOST_BYTES = 512 << 20
"""Of weights, as they are in the file; larger models are not widened."""
_NARROW = frozenset((TensorProto.FLOAT16, TensorProto.BFLOAT16))
_WIDE = TensorProto.FLOAT
_TYPE_ATTRIBUTES = frozenset(("to", "dtype", "stash_type"))


def widened(model: Model) -> bytes | None:
    """A model of the same inputs and outputs; None where nothing is narrow, or it would be too large. Where some
    operator knows 16 bits alone it cannot be opened."""
    if sum(constant.tensor.nbytes for constant in model.graph.constants) + len(model.data) > MOST_BYTES:
        return None
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    if not _has_narrow(proto):
        return None
    if model.folder is not None:
        load_external_data_for_model(proto, str(model.folder))
    _widen_main(proto.graph)
    for function in proto.functions:
        _widen_nodes(function.node, {})
    return proto.SerializeToString()


def _has_narrow(proto: ModelProto) -> bool:
    graph = proto.graph
    described = (*graph.input, *graph.output, *graph.value_info)
    tensors = (tensor.data_type for tensor in graph.initializer)
    return any(_is_narrow(value) for value in described) or any(kind in _NARROW for kind in tensors)


def _widen_main(graph: GraphProto) -> None:
    """Inputs and outputs stay what they are, with a Cast behind and before them."""
    given = {value.name for value in graph.input}
    renamed = {value.name: f"{value.name}~wide" for value in (*graph.input, *graph.output) if _is_narrow(value)}
    types = {value.name: value.type.tensor_type.elem_type for value in graph.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in given]  # an input's default
    changed = [_wide(tensor) for tensor in graph.initializer if tensor.name not in given]
    for tensor in changed:
        tensor.name = renamed.get(tensor.name, tensor.name)
    del graph.initializer[:], graph.value_info[:]
    graph.initializer.extend([*kept, *changed])
    _widen_nodes(graph.node, renamed)
    begin = [helper.make_node("Cast", [n], [wide], to=_WIDE) for n, wide in renamed.items() if n in given]
    end = [helper.make_node("Cast", [wide], [n], to=types[n]) for n, wide in renamed.items() if n not in given]
    nodes = [*begin, *graph.node, *end]
    del graph.node[:]
    graph.node.extend(nodes)


def _widen_nodes(nodes: Iterable[NodeProto], renamed: Mapping[str, str]) -> None:
    for node in nodes:
        for names in (node.input, node.output):
            names[:] = [renamed.get(name, name) for name in names]
        for attribute in node.attribute:
            _widen_attribute(attribute, renamed)


def _widen_attribute(attribute: AttributeProto, renamed: Mapping[str, str]) -> None:
    if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _NARROW:
        attribute.i = _WIDE
    if attribute.HasField("t"):
        attribute.t.CopyFrom(_wide(attribute.t))
    for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
        _widen_inner(graph, renamed)


def _widen_inner(graph: GraphProto, renamed: Mapping[str, str]) -> None:
    """The body of an If, a Loop or a Scan; names of the graph around it may be used in it."""
    for value in (*graph.input, *graph.output):
        value.name = renamed.get(value.name, value.name)
        if _is_narrow(value):
            value.type.tensor_type.elem_type = _WIDE
    tensors = [_wide(tensor) for tensor in graph.initializer]
    del graph.initializer[:], graph.value_info[:]
    graph.initializer.extend(tensors)
    _widen_nodes(graph.node, renamed)


def _is_narrow(value: ValueInfoProto) -> bool:
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in _NARROW


def _wide(tensor: TensorProto) -> TensorProto:
    if tensor.data_type not in _NARROW:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float32"), tensor.name)
