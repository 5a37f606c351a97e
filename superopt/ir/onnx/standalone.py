# pyright: basic
"""A region as an ONNX model of its own, to be run and timed apart from the model it was cut from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from google.protobuf.message import EncodeError
from onnx import ModelProto, defs

from superopt.errors import CannotRun
from superopt.ir.graph import Constant, Graph, Node, Value
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.small import Names, add_node, shell, type_proto
from superopt.ir.onnx.tensors import SparseConstant, embedded
from superopt.ir.tensor import Tensor
from superopt.ir.types import Dim, TensorType, Type, format_type

_OTHER_DOMAIN_VERSION = 1
_TWO_GIGABYTES = 1 << 31


def standalone(
    model: Model, graph: Graph, sizes: Mapping[str, int], computed: Mapping[Value, Tensor] | None = None
) -> bytes:
    """The region with inputs in0, in1, … and outputs out0, out1, …, in the versions of its model.

    Symbols among the dims of inputs become their `sizes`; what stays unknown is left open. Constants are initializers,
    and so are values that were `computed` before. Equal regions give equal bytes. Raises `CannotRun` where an input's
    type is unknown, or where the region outgrows what one message can hold.
    """
    computed = computed or {}
    proto = shell(model)
    imported = {o.domain for o in proto.opset_import}
    for domain in dict.fromkeys(n.domain for n in graph.nodes if n.domain and n.domain not in imported):
        proto.opset_import.add(domain=domain, version=_OTHER_DOMAIN_VERSION)
    names = Names()
    for i, parameter in enumerate(graph.inputs):
        names.of[Value(parameter)] = f"in{i}"
        proto.graph.input.add(name=f"in{i}").type.CopyFrom(type_proto(_sized(parameter.type, sizes, f"input {i}")))
    copies = _name_outputs(graph, names)
    nodes = _left(graph, computed)
    read = {v for node in nodes for v in node.operands} | set(graph.outputs)
    for constant in _constants(nodes, graph.outputs):
        _add_constant(proto, constant.tensor, names.name(Value(constant)))
    for value, tensor in computed.items():
        _add_constant(proto, tensor, names.name(value))
    for node in nodes:
        add_node(proto.graph, node, names, [v in read or not _optional(model, node, v.index) for v in node.outputs])
    for value, name in copies:
        proto.graph.node.add(op_type="Identity", input=[names.name(value)], output=[name])
    for i, value in enumerate(graph.outputs):
        output = proto.graph.output.add(name=f"out{i}")
        if isinstance(value.type, TensorType) and value.type.dtype is not None:
            # The shape is onnxruntime's to infer: what is declared here could only be wrong.
            output.type.CopyFrom(type_proto(TensorType(value.type.dtype, None)))
    return _serialized(proto)


def _name_outputs(graph: Graph, names: Names) -> list[tuple[Value, str]]:
    """Names the results; those that are inputs, constants or earlier outputs must be copied, and are returned."""
    copies: list[tuple[Value, str]] = []
    for i, value in enumerate(graph.outputs):
        if isinstance(value.producer, Node) and value not in names.of:
            names.of[value] = f"out{i}"
        else:
            copies.append((value, f"out{i}"))
    return copies


def _left(graph: Graph, computed: Mapping[Value, Tensor]) -> list[Node]:
    """The nodes that something still needs, in order."""
    if not computed:
        return list(graph.nodes)
    needed = set(graph.outputs)
    found: list[Node] = []
    for node in reversed(graph.nodes):
        if any(v in needed and v not in computed for v in node.outputs):
            found.append(node)
            needed.update(node.operands)
    return found[::-1]


def _constants(nodes: Iterable[Node], outputs: Iterable[Value]) -> Iterable[Constant]:
    """Every constant that is read, once, in the order of its first reader."""
    operands = [v for node in nodes for v in node.operands]
    return dict.fromkeys(v.producer for v in (*operands, *outputs) if isinstance(v.producer, Constant))


def _add_constant(proto: ModelProto, tensor: Tensor, name: str) -> None:
    if isinstance(tensor, SparseConstant):
        sparse = proto.graph.sparse_initializer.add()
        sparse.CopyFrom(tensor.proto)
        sparse.values.name = name
    else:
        proto.graph.initializer.append(embedded(tensor, name))


def _sized(type_: Type, sizes: Mapping[str, int], where: str) -> TensorType:
    if not isinstance(type_, TensorType) or type_.dtype is None:
        raise CannotRun(f"{where} of the region: expected a tensor of a known type, found {format_type(type_)}")
    shape = None if type_.shape is None else tuple(_size(d, sizes) for d in type_.shape)
    return TensorType(type_.dtype, shape)


def _size(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    return sizes.get(dim) if isinstance(dim, str) else dim


def _optional(model: Model, node: Node, index: int) -> bool:
    """Whether an output that nobody reads may be left out. Operators of other domains require their first alone."""
    optional = _optional_outputs(node.domain, node.op, model.opsets.get(node.domain, _OTHER_DOMAIN_VERSION))
    return index > 0 if optional is None else index in optional


@cache
def _optional_outputs(domain: str, op: str, version: int) -> frozenset[int] | None:
    try:
        schema = defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None
    optional = defs.OpSchema.FormalParameterOption.Optional
    return frozenset(i for i, output in enumerate(schema.outputs) if output.option == optional)


def _serialized(proto: ModelProto) -> bytes:
    try:
        size = proto.ByteSize()
        if size < _TWO_GIGABYTES:
            return proto.SerializeToString(deterministic=True)
    except (EncodeError, ValueError):
        size = 0
    raise CannotRun(f"the region is too large to stand alone: {size or 'over 2147483648'} bytes")
