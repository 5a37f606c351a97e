"""Names a region by everything its time depends on, and by nothing else.

Operators, wiring, attributes, types and sizes count; the order in which nodes are listed and the content of weights do
not. Constants that steer (whole numbers such as shapes and axes, single numbers such as exponents, which decide
what a runtime can fuse) count by content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from superopt.ir.graph import Constant, Graph, Node, Parameter, Value
from superopt.ir.tensor import Tensor
from superopt.ir.types import DType, TensorType, Type, format_type

_STEERING_ELEMENTS = 64


def structure(graph: Graph, sizes: Mapping[str, int]) -> str:
    """A digest, equal for regions of equal structure at equal sizes."""
    h = hashlib.blake2b(digest_size=16)
    names: dict[Parameter | Constant | Node, str] = {}
    for i, parameter in enumerate(graph.inputs):
        names[parameter] = f"in{i}"
        h.update(f"in{i} {format_type(_sized(parameter.type, sizes))}\n".encode())
    for producer in _in_canonical_order(graph):
        if producer not in names:
            h.update(f"{_line(producer, names)}\n".encode())
            names[producer] = f"v{len(names)}"
    h.update(" ".join(_name(v, names) for v in graph.outputs).encode())
    return h.hexdigest()


def _in_canonical_order(graph: Graph) -> list[Parameter | Constant | Node]:
    """Producers behind the outputs, each after what it reads: the same for any order of the graph's list."""
    found: dict[Parameter | Constant | Node, None] = {}
    stack = [v.producer for v in reversed(graph.outputs)]
    while stack:
        top = stack[-1]
        waiting = [] if top in found or not isinstance(top, Node) else [v.producer for v in top.operands]
        waiting = [p for p in waiting if p not in found]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            found[stack.pop()] = None
    return list(found)


def _line(producer: Parameter | Constant | Node, names: Mapping[Parameter | Constant | Node, str]) -> str:
    if isinstance(producer, Constant):
        return _tensor(producer.tensor)
    if isinstance(producer, Parameter):
        return f"outer {producer.position} {format_type(producer.type)}"
    inputs = ", ".join("-" if v is None else _name(v, names) for v in producer.inputs)
    attributes = " ".join(f"{name}={_attribute(value)}" for name, value in producer.attributes)
    return f"{producer.kind}({inputs}) {attributes} -> {len(producer.types)}"


def _name(value: Value, names: Mapping[Parameter | Constant | Node, str]) -> str:
    return f"{names[value.producer]}.{value.index}"


def _attribute(value: object) -> str:
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, Graph):
        return value.digest
    return repr(tuple(map(_attribute, value))) if isinstance(value, tuple) else repr(value)


def _tensor(tensor: Tensor) -> str:
    steers = tensor.dtype.is_integer or tensor.dtype in (DType.BOOL, DType.STRING)
    if tensor.readable and tensor.count <= (_STEERING_ELEMENTS if steers else 1):
        return f"{tensor.type} {tensor.digest}"
    return str(tensor.type)


def _sized(type_: Type, sizes: Mapping[str, int]) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    return replace(type_, shape=tuple(sizes.get(d) if isinstance(d, str) else d for d in type_.shape))
