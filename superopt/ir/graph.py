"""Frozen graphs of hash-consed nodes.

A `Value` is one result of a producer: a `Parameter` (graph input or captured outer value), a `Constant` or a `Node`.
Nodes are made by `make_node` alone, which returns the node it made before when one with the same operator, operands,
attributes and types still lives: equal structure is the same object. What must never be merged (a random node; two
equal nodes of a file that no pass has merged yet) differs by its `instance`.

Names are no part of structure. They live beside it, in the graph's labels, with an opaque `origin` by which the border
finds the file's own record of a node and writes it back untouched.

The body of If, Loop or Scan is a graph of its own, closed: outer values reach it only through `Node.captured`, where
entry i is what the body sees as its i-th capture. All bodies of one node share that list.
"""

from __future__ import annotations

import hashlib
import struct
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from superopt.ir.tensor import ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType, TensorType, Type, format_type


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute passed through by its file bytes: sparse tensors, type descriptions, empty lists, references."""

    data: bytes


Scalar: TypeAlias = int | float | str | bytes
Scalars: TypeAlias = tuple[int, ...] | tuple[float, ...] | tuple[str | bytes, ...]
Attribute: TypeAlias = "Scalar | Scalars | Tensor | Graph | tuple[Graph, ...] | Opaque"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Parameter:
    """An input of a graph, or an outer value as its body sees it; interned by position and type."""

    position: int
    type: Type
    captured: bool

    def __getitem__(self, index: int) -> Value:
        return Value(self, index)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A tensor as an operand. Two constants are one only when they hold the same tensor object."""

    tensor: Tensor


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Node:
    domain: str
    op: str
    inputs: tuple[Value | None, ...]
    attributes: tuple[tuple[str, Attribute], ...]
    types: tuple[Type, ...]
    captured: tuple[Value, ...] = ()
    instance: int = 0
    _digest: list[bytes] = field(default_factory=list, repr=False)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(Value(self, i) for i in range(len(self.types)))

    @property
    def operands(self) -> Iterator[Value]:
        """Every value the node reads, those of its bodies included."""
        yield from (v for v in self.inputs if v is not None)
        yield from self.captured

    @property
    def bodies(self) -> tuple[Graph, ...]:
        found: list[Graph] = []
        for _, value in self.attributes:
            if isinstance(value, Graph):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(v for v in value if isinstance(v, Graph))
        return tuple(found)

    def attribute(self, name: str, default: Any = None) -> Any:
        for key, value in self.attributes:
            if key == name:
                return value
        return default

    @property
    def kind(self) -> str:
        """The operator as people write it: `Conv`, `com.microsoft::FusedConv`."""
        return f"{self.domain}::{self.op}" if self.domain else self.op

    def __repr__(self) -> str:
        return f"<{self.kind}/{self.instance} {id(self):#x}>"


@dataclass(frozen=True, slots=True)
class Value:
    producer: Parameter | Constant | Node
    index: int = 0

    @property
    def type(self) -> Type:
        if isinstance(self.producer, Node):
            return self.producer.types[self.index]
        if isinstance(self.producer, Constant):
            return self.producer.tensor.type
        return self.producer.type

    @property
    def tensor_type(self) -> TensorType | None:
        return self.type if isinstance(self.type, TensorType) else None

    @property
    def node(self) -> Node | None:
        return self.producer if isinstance(self.producer, Node) else None

    @property
    def constant(self) -> Tensor | None:
        """The tensor behind an initializer or a Constant node that holds one, or numbers."""
        if isinstance(self.producer, Constant):
            return self.producer.tensor
        if isinstance(self.producer, Node) and self.producer.op == "Constant" and not self.producer.domain:
            value = self.producer.attribute("value")
            return value if isinstance(value, Tensor) else _numbers(self.producer)
        return None


@dataclass(frozen=True, slots=True)
class Label:
    """Names of a node and of its outputs, and the file's own record of it."""

    name: str = ""
    outputs: tuple[str, ...] = ()
    origin: object = None
    metadata: tuple[tuple[str, str], ...] = ()
    """Notes to write with a node that the file does not have: where it came from. A node of the file keeps its own."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which each comes after what it reads; unread ones are kept until a pass drops them."""

    inputs: tuple[Parameter, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    captures: tuple[Parameter, ...] = ()
    name: str = ""
    labels: Mapping[Node, Label] = field(default_factory=dict[Node, Label])
    constants: Mapping[Constant, str] = field(default_factory=dict[Constant, str])
    """Every constant of the graph, used or not, with its name."""
    origin: object = None

    @property
    def digest(self) -> str:
        """Names the structure (operators, wiring, attributes, types, constants' content), not the names."""
        h = hashlib.blake2b(digest_size=16)
        for parameter in (*self.inputs, *self.captures):
            h.update(_parameter_digest(parameter))
        for node in self.nodes:
            h.update(_node_digest(node))
        for value in self.outputs:
            h.update(_value_digest(value))
        return h.hexdigest()

    def all_nodes(self) -> Iterator[Node]:
        """Its nodes and those of nested bodies, outer first."""
        stack: list[Iterator[Node]] = [iter(self.nodes)]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            yield node
            for body in reversed(node.bodies):
                stack.append(iter(body.nodes))


_NUMBERS = {
    "value_int": DType.INT64,
    "value_ints": DType.INT64,
    "value_float": DType.FLOAT32,
    "value_floats": DType.FLOAT32,
}
_tensors: weakref.WeakKeyDictionary[Node, Tensor] = weakref.WeakKeyDictionary()


def _numbers(node: Node) -> Tensor | None:
    """What a Constant node stands for whose attribute is a number or a list of them; one object for each node."""
    found = _tensors.get(node)
    if found is None and len(node.attributes) == 1:
        name, value = node.attributes[0]
        if name in _NUMBERS and isinstance(value, int | float | tuple):
            found = _tensors[node] = ArrayTensor(np.asarray(value, dtype=numpy_dtype(_NUMBERS[name])))
    return found


_parameters: weakref.WeakValueDictionary[tuple[int, Type, bool], Parameter] = weakref.WeakValueDictionary()
_nodes: weakref.WeakValueDictionary[tuple[object, ...], Node] = weakref.WeakValueDictionary()


def make_parameter(position: int, type_: Type, *, captured: bool = False) -> Parameter:
    key = (position, type_, captured)
    found = _parameters.get(key)
    if found is None:
        found = _parameters[key] = Parameter(position, type_, captured)
    return found


def make_node(
    op: str,
    inputs: Iterable[Value | None],
    attributes: Mapping[str, Attribute] | tuple[tuple[str, Attribute], ...] = (),
    types: Iterable[Type] = (None,),
    *,
    domain: str = "",
    captured: Iterable[Value] = (),
    instance: int = 0,
) -> Node:
    """The one node of this structure; attributes are kept sorted by name."""
    inputs, types, captured = tuple(inputs), tuple(types), tuple(captured)
    named = attributes if isinstance(attributes, tuple) else tuple(attributes.items())
    pairs = tuple(sorted(named, key=lambda pair: pair[0]))
    key = (domain, op, inputs, tuple((n, _exact(a)) for n, a in pairs), types, captured, instance)
    found = _nodes.get(key)
    if found is None:
        found = _nodes[key] = Node(domain, op, inputs, pairs, types, captured, instance)
    return found


def replace_inputs(node: Node, inputs: Iterable[Value | None], captured: Iterable[Value]) -> Node:
    """The same operator on other operands."""
    inputs, captured = tuple(inputs), tuple(captured)
    if inputs == node.inputs and captured == node.captured:
        return node
    return make_node(
        node.op,
        inputs,
        node.attributes,
        node.types,
        domain=node.domain,
        captured=captured,
        instance=node.instance,
    )


def again(node: Node) -> Node:
    """The same operator on the same operands once more, apart from the first."""
    return make_node(
        node.op, node.inputs, node.attributes, node.types,
        domain=node.domain, captured=node.captured, instance=node.instance + 1,
    )  # fmt: skip


def _exact(value: object) -> object:
    """An attribute as a key that tells 1 from 1.0 and 0.0 from −0.0, and finds NaN equal to itself."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, tuple):
        return tuple(_exact(v) for v in value)
    return (type(value).__name__, value)


def _hash(*parts: bytes) -> bytes:
    h = hashlib.blake2b(digest_size=16)
    for part in parts:
        h.update(len(part).to_bytes(8, "little"))
        h.update(part)
    return h.digest()


def _parameter_digest(parameter: Parameter) -> bytes:
    return _hash(
        b"parameter",
        f"{parameter.position} {parameter.captured}".encode(),
        format_type(parameter.type).encode(),
    )


def _value_digest(value: Value | None) -> bytes:
    if value is None:
        return b"none"
    producer = value.producer
    if isinstance(producer, Parameter):
        return _parameter_digest(producer)
    if isinstance(producer, Constant):
        return _hash(b"constant", producer.tensor.digest.encode())
    return _hash(_node_digest(producer), str(value.index).encode())


def _node_digest(node: Node) -> bytes:
    """Bottom-up without recursion: chains of a hundred thousand nodes exist."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top._digest:  # pyright: ignore[reportPrivateUsage]
            stack.pop()
            continue
        waiting = [
            v.producer
            for v in top.operands
            if isinstance(v.producer, Node) and not v.producer._digest  # pyright: ignore[reportPrivateUsage]
        ]
        if waiting:
            stack.extend(waiting)
            continue
        top._digest.append(  # pyright: ignore[reportPrivateUsage]
            _hash(
                top.kind.encode(),
                str(top.instance).encode(),
                *(_value_digest(v) for v in top.inputs),
                b"captured",
                *(_value_digest(v) for v in top.captured),
                *(_hash(name.encode(), _attribute_digest(value)) for name, value in top.attributes),
                *(format_type(t).encode() for t in top.types),
            )
        )
        stack.pop()
    return node._digest[0]  # pyright: ignore[reportPrivateUsage]


def _attribute_digest(value: object) -> bytes:
    if isinstance(value, tuple):
        return _hash(b"tuple", *(_attribute_digest(v) for v in value))
    if isinstance(value, Tensor):
        return _hash(b"tensor", value.digest.encode())
    if isinstance(value, Graph):
        return _hash(b"graph", value.digest.encode())
    if isinstance(value, Opaque):
        return _hash(b"opaque", value.data)
    if isinstance(value, bytes):
        return _hash(b"bytes", value)
    if isinstance(value, float):
        return _hash(b"float", struct.pack("<d", value))
    return _hash(type(value).__name__.encode(), str(value).encode())
