"""Read the text form of a graph, and the pieces of it that rules share: types, attribute values, tensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
from superopt.ir.lexer import Reader, Token
from superopt.ir.tensor import ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import (
    Dim,
    DType,
    MapType,
    OptionalType,
    SequenceType,
    SparseType,
    TensorType,
    Type,
    element_count,
)

_DTYPES = {d.value: d for d in DType}


def parse_graph(text: str, tensors: Mapping[str, Tensor] | None = None, source: str = "text") -> Graph:
    """The graph that `format_graph` printed; `tensors` holds constants named by digest."""
    reader = Reader(text, source)
    graph = GraphReader(reader, tensors or {}).graph()
    if reader.peek.kind != "end":
        reader.error(f"expected the end of the text, found {reader.found()}")
    return graph


class GraphReader:
    def __init__(self, reader: Reader, tensors: Mapping[str, Tensor]) -> None:
        self.reader, self.tensors = reader, tensors

    def graph(self) -> Graph:
        r = self.reader
        r.expect("graph")
        name = r.name() if not r.at("(") else ""
        names: dict[str, Value] = {}
        inputs = self._parameters(names, is_capture=False)
        captures = self._parameters(names, is_capture=True) if r.take("captures") else ()
        r.expect("->")
        outputs = self._outputs()
        r.expect("{")
        constants: dict[Constant, str] = {}
        nodes: list[Node] = []
        labels: dict[Node, Label] = {}
        while not r.take("}"):
            self._statement(names, constants, nodes, labels)
        values: list[Value] = []
        for _, inner, token in outputs:
            if inner not in names:
                r.error(f"output {inner!r} is not defined", token)
            values.append(names[inner])
        return Graph(
            inputs=tuple(inputs), outputs=tuple(values), nodes=tuple(nodes),
            input_names=tuple(list(names)[: len(inputs)]), output_names=tuple(o for o, _, _ in outputs),
            captures=tuple(captures), name=name, labels=labels, constants=constants,
        )  # fmt: skip

    def _parameters(self, names: dict[str, Value], *, is_capture: bool) -> list[Parameter]:
        r = self.reader
        r.expect("(")
        found: list[Parameter] = []
        while not r.take(")"):
            if found:
                r.expect(",")
            token, name = r.peek, r.name()
            r.expect(":")
            parameter = make_parameter(len(found), parse_type(r), captured=is_capture)
            if name in names:
                r.error(f"{name!r} is defined twice", token)
            names[name] = Value(parameter)
            found.append(parameter)
        return found

    def _outputs(self) -> list[tuple[str, str, Token]]:
        """Output names, the values behind them, and where they stand."""
        r = self.reader
        r.expect("(")
        outputs: list[tuple[str, str, Token]] = []
        while not r.take(")"):
            if outputs:
                r.expect(",")
            token, name = r.peek, r.name()
            outputs.append((name, r.name() if r.take("=") else name, token))
        return outputs

    def _statement(
        self,
        names: dict[str, Value],
        constants: dict[Constant, str],
        nodes: list[Node],
        labels: dict[Node, Label],
    ) -> None:
        r = self.reader
        targets = [] if r.at("=") else [(r.peek, r.name())]
        while r.take(","):
            targets.append((r.peek, r.name()))
        types: list[Type] | None = None
        if r.take(":"):
            types = [parse_type(r)]
            while r.take(","):
                types.append(parse_type(r))
            if len(types) != len(targets):
                r.error(f"{len(targets)} results but {len(types)} types")
        r.expect("=")
        if r.peek.text in _DTYPES and types is None and len(targets) == 1:
            constant = Constant(parse_tensor(r, self.tensors))
            values: tuple[Value, ...] = (Value(constant),)
            constants[constant] = targets[0][1]
        else:
            node = self._call(names, types or [None] * len(targets))
            nodes.append(node)
            labels[node] = Label(outputs=tuple("" if name == "_" else name for _, name in targets))
            values = node.outputs
        for (token, name), value in zip(targets, values, strict=True):
            if name in names:
                r.error(f"{name!r} is defined twice", token)
            if name != "_":
                names[name] = value

    def _call(self, names: Mapping[str, Value], types: list[Type]) -> Node:
        r = self.reader
        op, domain = r.name("an operator"), ""
        if r.take("::"):
            domain, op = op, r.name("an operator")
        instance = r.integer() if r.take("@") else 0
        inputs: list[Value | None] = []
        attributes: dict[str, Attribute] = {}
        r.expect("(")
        first = True
        while not r.take(")"):
            if not first:
                r.expect(",")
            first = False
            token, name = r.peek, r.name("an operand or attribute")
            if r.take("="):
                attributes[name] = self.attribute()
            elif attributes:
                r.error("operands come before attributes", token)
            elif name == "_" and token.kind == "name":
                inputs.append(None)
            elif name not in names:
                r.error(f"{name!r} is not defined", token)
            else:
                inputs.append(names[name])
        captured: list[Value] = []
        if r.take("captured"):
            r.expect("(")
            while not r.take(")"):
                if captured:
                    r.expect(",")
                token, name = r.peek, r.name()
                if name not in names:
                    r.error(f"{name!r} is not defined", token)
                captured.append(names[name])
        return make_node(op, inputs, attributes, types, domain=domain, captured=captured, instance=instance)

    def attribute(self) -> Attribute:
        r = self.reader
        if r.at("graph"):
            return self.graph()
        if r.take("["):
            items: list[Attribute] = []
            while not r.take("]"):
                if items:
                    r.expect(",")
                items.append(self.attribute())
            return tuple(items)  # pyright: ignore[reportReturnType]
        return parse_scalar(r, self.tensors)


def parse_scalar(r: Reader, tensors: Mapping[str, Tensor]) -> Attribute:
    """A number, a string, bytes or a tensor."""
    token = r.peek
    if token.kind == "number":
        return _number(r.next().text)
    if token.kind == "string":
        return r.string()
    if token.kind == "bytes":
        kind, _, rest = r.next().text.partition('"')
        data = bytes.fromhex(rest[:-1])
        return Opaque(data) if kind == "opaque" else data
    if token.text in _DTYPES:
        return parse_tensor(r, tensors)
    return r.error(f"expected an attribute value, found {r.found()}")


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def parse_tensor(r: Reader, tensors: Mapping[str, Tensor]) -> Tensor:
    token = r.peek
    type_ = parse_type(r)
    shape = type_.static_shape if isinstance(type_, TensorType) else None
    if not isinstance(type_, TensorType) or type_.dtype is None or shape is None:
        r.error("a constant needs a tensor type with known dims", token)
    if r.peek.kind == "digest":
        digest = r.next().text[1:]
        if digest not in tensors:
            r.error(f"no tensor with digest {digest} was given", token)
        return tensors[digest]
    r.expect("{")
    values: list[object] = []
    while not r.take("}"):
        if values:
            r.expect(",")
        values.append(_element(r, type_.dtype))
    if len(values) != element_count(shape):
        r.error(f"shape {list(shape)} needs {element_count(shape)} elements, found {len(values)}", token)
    kind = numpy_dtype(type_.dtype)
    array = np.array(values, dtype=object if type_.dtype is DType.STRING else None)
    return ArrayTensor((array if type_.dtype is DType.STRING else array.astype(kind)).reshape(shape))


def _element(r: Reader, dtype: DType) -> object:
    if dtype is DType.STRING:
        return r.string()
    if dtype is DType.BOOL:
        token = r.expect_kind("name", "true or false")
        if token.text not in ("true", "false"):
            r.error(f"expected true or false, found {token.text!r}", token)
        return token.text == "true"
    return _number(r.expect_kind("number", "a number").text)


def parse_type(r: Reader) -> Type:
    if r.take("?"):
        if not r.at("["):
            return None
        return TensorType(None, _shape(r))
    token = r.expect_kind("name", "a type")
    if token.text in _DTYPES:
        return TensorType(_DTYPES[token.text], _shape(r))
    if token.text not in ("seq", "optional", "sparse", "map"):
        r.error(f"expected a type, found {token.text!r}", token)
    r.expect("(")
    if token.text == "map":
        key = r.expect_kind("name", "a key type").text
        if key not in _DTYPES:
            r.error(f"expected an element type, found {key!r}")
        r.expect(",")
        result: Type = MapType(_DTYPES[key], parse_type(r))
    else:
        inner = parse_type(r)
        if token.text == "seq":
            result = SequenceType(inner)
        elif token.text == "optional":
            result = OptionalType(inner)
        elif isinstance(inner, TensorType):
            result = SparseType(inner.dtype, inner.shape)
        else:
            r.error("sparse(…) takes a tensor type", token)
    r.expect(")")
    return result


def _shape(r: Reader) -> tuple[Dim, ...] | None:
    r.expect("[")
    if r.take("*"):
        r.expect("]")
        return None
    dims: list[Dim] = []
    while not r.take("]"):
        if dims:
            r.expect(",")
        if r.take("?"):
            dims.append(None)
        elif r.peek.kind == "number":
            dims.append(r.integer("a size"))
        else:
            dims.append(r.name("a size, a symbol or ?"))
    return tuple(dims)
