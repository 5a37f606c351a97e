# pyright: basic
"""From messages to frozen graphs: names resolved, bodies closed, types known where inference knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

from superopt.errors import BadModel
from superopt.ir.graph import (
    Attribute,
    Constant,
    Graph,
    Label,
    Node,
    Opaque,
    Parameter,
    Value,
    make_node,
    make_parameter,
)
from superopt.ir.onnx.infer import infer, type_of, value_types
from superopt.ir.onnx.order import in_order
from superopt.ir.onnx.symbols import with_own_symbols
from superopt.ir.onnx.tensors import DTYPES, SparseConstant, tensor_of
from superopt.ir.types import Type


@dataclass
class Captures:
    """Outer values that the bodies of one node read, in the order of `Node.captured`."""

    positions: dict[str, int] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)

    def parameter(self, name: str, outer: Scope) -> Value | None:
        if name not in self.positions:
            outside = outer.find(name)
            if outside is None:
                return None
            self.positions[name] = len(self.values)
            self.values.append(outside)
        position = self.positions[name]
        return Value(make_parameter(position, self.values[position].type, captured=True))


@dataclass
class Scope:
    """Names of one graph while it is lifted; what it lacks it captures from outside."""

    names: dict[str, Value]
    outer: Scope | None
    captures: Captures

    def find(self, name: str) -> Value | None:
        found = self.names.get(name)
        if found is None and self.outer is not None:
            return self.captures.parameter(name, self.outer)
        return found


class Lifter:
    """Lifts one model. Holds what all its graphs share."""

    def __init__(self, model: ModelProto, folder: Path | None) -> None:
        self.model, self.folder = model, folder

    def lift(self) -> Graph:
        return self._graph(self.model.graph, infer(self.model), None, Captures(), "graph")

    def _graph(
        self,
        proto: GraphProto,
        inferred: GraphProto | None,
        outer: Scope | None,
        captures: Captures,
        where: str,
    ) -> Graph:
        types = value_types(inferred)
        scope = Scope({}, outer, captures)
        # onnxruntime holds a run to the shapes of the model's inputs, not to those of a body
        trusted = with_own_symbols(proto.input) if outer is None else proto.input
        inputs = tuple(
            make_parameter(i, type_of(v.type) if outer is None and v.HasField("type") else types.get(v.name))
            for i, v in enumerate(trusted)
        )
        input_names = tuple(v.name for v in proto.input)
        for name, parameter in zip(input_names, inputs, strict=True):
            self._define(scope, name, Value(parameter), where)
        constants = dict(self._constants(proto, scope, set(input_names), where))
        nodes: list[Node] = []
        labels: dict[Node, Label] = {}
        copies: dict[Node, int] = {}
        bodies = _bodies_by_output(inferred)
        for message in in_order(proto, where):
            node = self._node(message, scope, types, bodies, where)
            copies[node] = count = copies.get(node, -1) + 1
            if count:
                node = _again(node, count)
            nodes.append(node)
            labels[node] = Label(message.name, tuple(message.output), message)
            for name, value in zip(message.output, node.outputs, strict=True):
                if name:
                    self._define(scope, name, value, where)
        outputs = tuple(self._resolve(scope, v.name, f"output {v.name!r} of {where}") for v in proto.output)
        return Graph(
            inputs, outputs, tuple(nodes), input_names, tuple(v.name for v in proto.output),
            name=proto.name, labels=labels, constants=constants, origin=proto,
        )  # fmt: skip

    def _constants(
        self, proto: GraphProto, scope: Scope, inputs: set[str], where: str
    ) -> Iterator[tuple[Constant, str]]:
        """Initializers. One that is also an input may be overridden by the caller from IR version 4 on: no constant."""
        for tensor in proto.initializer:
            value = tensor_of(tensor, self.folder, f"initializer {tensor.name!r}")
            if tensor.name in inputs and self.model.ir_version >= 4:
                continue
            constant = Constant(value)
            if tensor.name in inputs:
                scope.names[tensor.name] = Value(constant)
            else:
                self._define(scope, tensor.name, Value(constant), where)
            yield constant, tensor.name
        for sparse in proto.sparse_initializer:
            dtype = DTYPES.get(sparse.values.data_type)
            if dtype is None:
                raise BadModel(f"initializer {sparse.values.name!r}: unknown element type {sparse.values.data_type}")
            constant = Constant(SparseConstant(sparse, dtype, tuple(sparse.dims)))
            self._define(scope, sparse.values.name, Value(constant), where)
            yield constant, sparse.values.name

    def _node(
        self,
        message: NodeProto,
        scope: Scope,
        types: dict[str, Type],
        inferred_bodies: dict[str, dict[str, list[GraphProto]]],
        where: str,
    ) -> Node:
        place = f"node {message.name or message.op_type!r} ({message.op_type})"
        inputs = tuple(self._resolve(scope, n, f"{place} in {where}") if n else None for n in message.input)
        key = next((n for n in message.output if n), "")
        known = inferred_bodies.get(key, {})
        captures = Captures()
        attributes = {a.name: self._attribute(a, scope, captures, known, place) for a in message.attribute}
        if captures.values:
            seen = tuple(make_parameter(i, v.type, captured=True) for i, v in enumerate(captures.values))
            attributes = {name: _with_captures(value, seen) for name, value in attributes.items()}
        return make_node(
            message.op_type, inputs, attributes, tuple(types.get(n) for n in message.output),
            domain="" if message.domain == "ai.onnx" else message.domain, captured=captures.values,
        )  # fmt: skip

    def _attribute(
        self,
        a: AttributeProto,
        scope: Scope,
        captures: Captures,
        inferred: dict[str, list[GraphProto]],
        where: str,
    ) -> Attribute:
        if a.ref_attr_name:
            return Opaque(a.SerializeToString(deterministic=True))
        if a.type == AttributeProto.INT:
            return int(a.i)
        if a.type == AttributeProto.FLOAT:
            return float(a.f)
        if a.type == AttributeProto.STRING:
            return _text(a.s)
        if a.type == AttributeProto.INTS and a.ints:
            return tuple(a.ints)
        if a.type == AttributeProto.FLOATS and a.floats:
            return tuple(a.floats)
        if a.type == AttributeProto.STRINGS and a.strings:
            return tuple(_text(s) for s in a.strings)
        if a.type == AttributeProto.TENSOR:
            return tensor_of(a.t, self.folder, f"attribute {a.name!r} of {where}")
        if a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) and (a.HasField("g") or a.graphs):
            protos = [a.g] if a.type == AttributeProto.GRAPH else list(a.graphs)
            known = inferred.get(a.name, [])
            bodies = tuple(
                self._graph(g, known[i] if i < len(known) else None, scope, captures, f"{a.name} of {where}")
                for i, g in enumerate(protos)
            )
            return bodies[0] if a.type == AttributeProto.GRAPH else bodies
        return Opaque(a.SerializeToString(deterministic=True))

    @staticmethod
    def _define(scope: Scope, name: str, value: Value, where: str) -> None:
        if name in scope.names:
            raise BadModel(f"{where}: the name {name!r} is given to two values")
        scope.names[name] = value

    @staticmethod
    def _resolve(scope: Scope, name: str, where: str) -> Value:
        value = scope.find(name)
        if value is None:
            raise BadModel(f"{where}: reads {name!r}, which nothing produces")
        return value


def _again(node: Node, instance: int) -> Node:
    return make_node(
        node.op, node.inputs, node.attributes, node.types,
        domain=node.domain, captured=node.captured, instance=instance,
    )  # fmt: skip


def _with_captures(value: Attribute, captures: tuple[Parameter, ...]) -> Attribute:
    if isinstance(value, Graph):
        return replace(value, captures=captures)
    if isinstance(value, tuple):
        bodies = tuple(replace(g, captures=captures) for g in value if isinstance(g, Graph))
        return bodies or value
    return value


def _bodies_by_output(inferred: GraphProto | None) -> dict[str, dict[str, list[GraphProto]]]:
    """Inferred bodies, found by the first output name of the node that holds them."""
    found: dict[str, dict[str, list[GraphProto]]] = {}
    for node in inferred.node if inferred is not None else ():
        bodies = {
            a.name: [a.g] if a.type == AttributeProto.GRAPH else list(a.graphs)
            for a in node.attribute
            if a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS)
        }
        if bodies:
            found[next((n for n in node.output if n), "")] = bodies
    return found


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
