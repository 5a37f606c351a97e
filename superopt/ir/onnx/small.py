# pyright: basic
"""A few nodes as a model of their own, with the versions of the model they come from: to run them, or to type one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, defs, helper

from superopt.ir.graph import Node, Opaque, Value
from superopt.ir.onnx.infer import SMALL, infer, value_types
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import CODES, embedded
from superopt.ir.tensor import Array, Tensor
from superopt.ir.types import DType, TensorType, Type


@cache
def is_standard(domain: str, op: str, version: int) -> bool:
    """Whether ONNX itself defines the operator in this version of its domain."""
    try:
        return not defs.get_schema(op, version, domain).deprecated
    except defs.SchemaError:
        return False


@dataclass(frozen=True)
class SmallModel:
    data: bytes
    feeds: dict[str, Array]


@dataclass
class Names:
    """Values named in the order in which they are met."""

    of: dict[Value, str] = field(default_factory=dict)

    def name(self, value: Value) -> str:
        return self.of.setdefault(value, f"v{len(self.of)}")


def runnable(
    model: Model,
    nodes: Iterable[tuple[Node, Sequence[bool]]],
    known: Mapping[Value, Tensor],
    outputs: Mapping[Value, TensorType],
) -> SmallModel:
    """Nodes, with which of their outputs exist, on known tensors; large ones are fed, never copied into the message."""
    proto = shell(model)
    names = Names()
    feeds: dict[str, Array] = {}
    for node, present in nodes:
        for value in node.inputs:
            if value is not None and value in known and value not in names.of:
                tensor, name = known[value], names.name(value)
                if tensor.dtype is DType.STRING or tensor.nbytes <= SMALL:
                    proto.graph.initializer.append(embedded(tensor, name))
                else:
                    proto.graph.input.add(name=name).type.CopyFrom(type_proto(tensor.type))
                    feeds[name] = tensor.numpy()
        add_node(proto.graph, node, names, present)
    for value, type_ in outputs.items():
        proto.graph.output.add(name=names.of[value]).type.CopyFrom(type_proto(type_))
    return SmallModel(proto.SerializeToString(deterministic=True), feeds)


def infer_types(model: Model, node: Node, known: Mapping[Value, Tensor], present: Sequence[bool]) -> tuple[Type, ...]:
    """What onnx infers for the node's outputs from its operands' types and, where known, their values."""
    proto = shell(model)
    names = Names()
    for value in dict.fromkeys(v for v in node.inputs if v is not None):
        tensor, name = known.get(value), names.name(value)
        if tensor is not None and tensor.readable and tensor.dtype is not DType.STRING and tensor.nbytes <= SMALL:
            proto.graph.initializer.append(embedded(tensor, name))
        elif isinstance(value.type, TensorType) and value.type.dtype is not None:
            proto.graph.input.add(name=name).type.CopyFrom(type_proto(tensor.type if tensor else value.type))
        else:
            return node.types
    message = add_node(proto.graph, node, names, present)
    for name in message.output:
        if name:
            proto.graph.output.add(name=name)
    found = value_types(infer(proto))
    return tuple(found.get(n) if n else None for n in message.output)


def shell(model: Model) -> ModelProto:
    """An empty model with the versions of another."""
    proto = ModelProto(ir_version=max(model.ir_version, 4), graph=GraphProto(name="small"))
    proto.opset_import.extend(model.proto.opset_import)
    return proto


def add_node(graph: GraphProto, node: Node, names: Names, present: Sequence[bool]) -> NodeProto:
    message = graph.node.add(op_type=node.op, domain=node.domain)
    message.input.extend("" if v is None else names.name(v) for v in node.inputs)
    message.output.extend(names.name(v) if there else "" for v, there in zip(node.outputs, present, strict=True))
    for name, value in node.attributes:
        attribute = message.attribute.add()
        if isinstance(value, Opaque):
            attribute.ParseFromString(value.data)
        elif isinstance(value, Tensor):
            attribute.CopyFrom(helper.make_attribute(name, embedded(value, "")))
        else:
            attribute.CopyFrom(helper.make_attribute(name, value))
    return message


def type_proto(type_: TensorType) -> TypeProto:
    shape = None if type_.shape is None else [d if isinstance(d, int) else None for d in type_.shape]
    assert type_.dtype is not None
    return helper.make_tensor_type_proto(CODES[type_.dtype], shape)
