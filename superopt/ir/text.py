"""Print a graph. `superopt.ir.parse` reads it back to the same structure.

    graph main (x: float32[n, 4], c: bool[]) -> (y) {
      w = float32[4] {1.0, 2.0, 3.0, 4.0}
      big = float32[64, 64] #0f3c…
      h: float32[n, 4] = Add(x, w)
      y: float32[n, 4] = If(c, then_branch=graph captures (h: float32[n, 4]) -> (r) {
        r: float32[n, 4] = Relu(h)
      }, else_branch=…) captured (h)
    }

`_` stands for an absent operand or an unnamed result, `Op@2` for a further copy of an equal node. Large constants are
named by digest and looked up by the reader. Names of nodes are not printed: they are not structure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from superopt.ir.graph import Attribute, Graph, Label, Node, Opaque, Parameter, Value
from superopt.ir.tensor import Tensor, pack
from superopt.ir.types import IDENTIFIER, DType, format_type

INLINE = 16
"""Constants of up to this many elements are written out."""

_RESERVED = {"graph", "captures", "captured", "inf", "nan", "true", "false", "_"}


def format_graph(graph: Graph, indent: str = "") -> str:
    return "\n".join(_Printer(graph, {}).lines(indent))


def format_nodes(graph: Graph, outer: Mapping[int, str] | None = None) -> dict[Node, str]:
    """Each node's own line, as `format_graph` prints it but for bodies, which are left out as `graph {…}`.

    `outer` names what the graph captures, by position.
    """
    printer = _Printer(graph, outer or {}, brief=True)
    return {node: printer.node(node, "") for node in graph.nodes}


def value_names(graph: Graph, outer: Mapping[int, str] | None = None) -> Mapping[Value, str]:
    """The name of every value, as `format_graph` prints it but unquoted."""
    return _Printer(graph, outer or {}).names


def format_name(name: str) -> str:
    return name if IDENTIFIER.match(name) and name not in _RESERVED else json.dumps(name)


class _Printer:
    """Names every value of one graph, then writes it line by line."""

    def __init__(self, graph: Graph, outer: Mapping[int, str], brief: bool = False) -> None:
        self.graph, self.brief = graph, brief
        self.names: dict[Value, str] = {}
        self.used: set[str] = set()
        for parameter, name in zip(graph.inputs, graph.input_names, strict=True):
            self._give(Value(parameter), name)
        for parameter in graph.captures:
            self._give(Value(parameter), outer[parameter.position])
        for constant, name in graph.constants.items():
            self._give(Value(constant), name)
        for node in graph.nodes:
            label = graph.labels.get(node, Label())
            for i, value in enumerate(node.outputs):
                self._give(value, label.outputs[i] if i < len(label.outputs) else "")

    def _give(self, value: Value, wanted: str) -> None:
        name, count = wanted or "v", 1
        while name in self.used:
            count += 1
            name = f"{wanted or 'v'}.{count}"
        self.used.add(name)
        self.names[value] = name

    def _name(self, value: Value | None) -> str:
        return "_" if value is None else format_name(self.names[value])

    def lines(self, indent: str) -> Iterator[str]:
        graph = self.graph
        head = "graph" + (f" {format_name(graph.name)}" if graph.name else "")
        inputs = [self._parameter(p) for p in graph.inputs]
        head += f" ({', '.join(inputs)})"
        if graph.captures:
            head += f" captures ({', '.join(self._parameter(p) for p in graph.captures)})"
        results = [
            self._name(v) if self.names[v] == n else f"{format_name(n)} = {self._name(v)}"
            for v, n in zip(graph.outputs, graph.output_names, strict=True)
        ]
        yield f"{head} -> ({', '.join(results)}) {{"
        for constant in graph.constants:
            yield f"{indent}  {self._name(Value(constant))} = {format_tensor(constant.tensor)}"
        for node in graph.nodes:
            yield f"{indent}  {self.node(node, indent + '  ')}"
        yield f"{indent}}}"

    def _parameter(self, parameter: Parameter) -> str:
        return f"{self._name(Value(parameter))}: {format_type(parameter.type)}"

    def node(self, node: Node, indent: str) -> str:
        targets = ", ".join(self._name(v) for v in node.outputs)
        types = "" if all(t is None for t in node.types) else ": " + ", ".join(map(format_type, node.types))
        outer = {i: self.names[v] for i, v in enumerate(node.captured)}
        operands = [self._name(v) for v in node.inputs]
        operands += [f"{format_name(k)}={self._attribute(v, outer, indent)}" for k, v in node.attributes]
        domain = f"{format_name(node.domain)}::" if node.domain else ""
        instance = f"@{node.instance}" if node.instance else ""
        captured = f" captured ({', '.join(map(self._name, node.captured))})" if node.captured else ""
        left = f"{targets}{types} = " if node.outputs else "= "
        return f"{left}{domain}{format_name(node.op)}{instance}({', '.join(operands)}){captured}"

    def _attribute(self, value: Attribute, outer: Mapping[int, str], indent: str) -> str:
        if isinstance(value, Graph):
            return "graph {…}" if self.brief else "\n".join(_Printer(value, outer).lines(indent))
        if isinstance(value, tuple):
            return f"[{', '.join(self._attribute(v, outer, indent) for v in value)}]"
        return format_scalar(value)


def format_scalar(value: int | float | str | bytes | Tensor | Opaque) -> str:
    if isinstance(value, Tensor):
        return format_tensor(value)
    if isinstance(value, Opaque):
        return f'opaque"{value.data.hex()}"'
    if isinstance(value, bytes):
        return f'hex"{value.hex()}"'
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value)


def format_tensor(tensor: Tensor) -> str:
    elements = _elements(tensor)
    if elements is None:
        return f"{tensor.type} #{tensor.digest}"
    return f"{tensor.type} {{{', '.join(elements)}}}"


def _elements(tensor: Tensor) -> list[str] | None:
    """Its elements as text, where that text gives back the very same bytes."""
    if tensor.count > INLINE or not tensor.readable or tensor.dtype.value.startswith("complex"):
        return None
    values = tensor.numpy().reshape(-1)
    if tensor.dtype is DType.STRING:
        if not all(_is_text(v) for v in values.tolist()):
            return None
        return [json.dumps(v.decode() if isinstance(v, bytes) else str(v)) for v in values.tolist()]
    if tensor.dtype is DType.BOOL:
        return ["true" if v else "false" for v in values.tolist()]
    if not tensor.dtype.is_float:
        return [str(int(v)) for v in values]
    text = [repr(float(v)) for v in values]
    with np.errstate(all="ignore"):
        again = values.astype("float64").astype(values.dtype)
    return text if pack(again, tensor.dtype) == pack(values, tensor.dtype) and "nan" not in text else None


def _is_text(value: object) -> bool:
    if not isinstance(value, bytes):
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
