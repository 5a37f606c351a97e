"""A model more precisely: from the same inputs and weights, what it computes in 16 bits in float32, or else what it
computes in float32 in float64.

Moving inputs by a unit of the last place does not show what rounding every result on the way does: a small transformer
in float16 may be further than a tolerance away from what its own weights say. This says how far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.external_data_helper import load_external_data_for_model
from onnx.helper import make_node, tensor_dtype_to_np_dtype

from superopt.ir.onnx.model import Model

MOST_BYTES = 512 << 20
"""Of weights, as they are in the file; larger models are not widened."""
_HALF: Mapping[int, int] = {TensorProto.FLOAT16: TensorProto.FLOAT, TensorProto.BFLOAT16: TensorProto.FLOAT}
_SINGLE: Mapping[int, int] = {TensorProto.FLOAT: TensorProto.DOUBLE}
_TYPE_ATTRIBUTES = frozenset(("to", "dtype"))


def widened(model: Model) -> bytes | None:
    """A model of the same inputs and outputs; None where nothing can be wider, or it would be too large. Where some
    operator knows the narrower type alone it cannot be opened."""
    if sum(constant.tensor.nbytes for constant in model.graph.constants) + len(model.data) > MOST_BYTES:
        return None
    types = next((t for t in (_HALF, _SINGLE) if _has_any(model.proto.graph, t)), None)
    if types is None:
        return None
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    if model.folder is not None:
        load_external_data_for_model(proto, str(model.folder))
    widening = _Widening(types)
    widening.main(proto.graph)
    for function in proto.functions:
        widening.nodes(function.node)
    return proto.SerializeToString()


def _has_any(graph: GraphProto, types: Mapping[int, int]) -> bool:
    described = (*graph.input, *graph.output, *graph.value_info)
    return any(_element(v) in types for v in described) or any(t.data_type in types for t in graph.initializer)


def _element(value: ValueInfoProto) -> int:
    return value.type.tensor_type.elem_type if value.type.HasField("tensor_type") else TensorProto.UNDEFINED


class _Widening:
    """What is of the one type becomes of the other."""

    def __init__(self, types: Mapping[int, int]) -> None:
        self._types = types
        self._renamed: dict[str, str] = {}

    def main(self, graph: GraphProto) -> None:
        """Inputs and outputs stay what they are, with a Cast behind and before them."""
        given = {value.name for value in graph.input}
        inputs = {value.name: self._types[_element(value)] for value in graph.input if _element(value) in self._types}
        outputs = {value.name: _element(value) for value in graph.output if _element(value) in self._types}
        outputs = {name: element for name, element in outputs.items() if name not in given}
        self._renamed = {name: f"{name}~wide" for name in (*inputs, *outputs)}
        kept = [tensor for tensor in graph.initializer if tensor.name in given]  # an input's default
        changed = [self._tensor(tensor) for tensor in graph.initializer if tensor.name not in given]
        for tensor in changed:
            tensor.name = self._renamed.get(tensor.name, tensor.name)
        del graph.initializer[:], graph.value_info[:]
        graph.initializer.extend([*kept, *changed])
        self.nodes(graph.node)
        begin = [make_node("Cast", [name], [self._renamed[name]], to=to) for name, to in inputs.items()]
        end = [make_node("Cast", [self._renamed[name]], [name], to=to) for name, to in outputs.items()]
        nodes = [*begin, *graph.node, *end]
        del graph.node[:]
        graph.node.extend(nodes)

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        for node in nodes:
            for names in (node.input, node.output):
                names[:] = [self._renamed.get(name, name) for name in names]
            for attribute in node.attribute:
                self._attribute(attribute)

    def _attribute(self, attribute: AttributeProto) -> None:
        if attribute.name in _TYPE_ATTRIBUTES:
            attribute.i = self._types.get(attribute.i, attribute.i)
        if attribute.HasField("t"):
            attribute.t.CopyFrom(self._tensor(attribute.t))
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            self._inner(graph)

    def _inner(self, graph: GraphProto) -> None:
        """The body of an If, a Loop or a Scan; names of the graph around it may be used in it."""
        for value in (*graph.input, *graph.output):
            value.name = self._renamed.get(value.name, value.name)
            if (element := _element(value)) in self._types:
                value.type.tensor_type.elem_type = self._types[element]
        tensors = [self._tensor(tensor) for tensor in graph.initializer]
        del graph.initializer[:], graph.value_info[:]
        graph.initializer.extend(tensors)
        self.nodes(graph.node)

    def _tensor(self, tensor: TensorProto) -> TensorProto:
        if tensor.data_type not in self._types:
            return tensor
        dtype = tensor_dtype_to_np_dtype(self._types[tensor.data_type])
        return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name)
