# pyright: basic
"""From frozen graphs back to messages: the file's own records, edited where the graph says so.

Names of inputs, outputs, constants and of every node that survived are the file's. A new value gets a name that occurs
nowhere in the model. An output that is now an input, a constant, an outer value or another output is copied by an
Identity node, so that the interface stays as it was.

Constants that onnxruntime has named get other names: of a model that it has optimized it may not open what was
rewritten, because it fuses again and gives its names a second time ("Attempt to replace the existing tensor").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from superopt.ir.graph import Attribute, Graph, Label, Node, Opaque, Value
from superopt.ir.onnx.metadata import add_metadata
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import SparseConstant, embedded, tensor_of
from superopt.ir.tensor import Tensor

WriteTensor = Callable[[Tensor, str], TensorProto]
_NO_METADATA: Mapping[str, str] = {}
_NUMBERED = re.compile(r"(_token_\d+|_new_shape)$")
"""How onnxruntime tells names apart that it gives, the first of each kind having no number; and what it makes of two
targets of Reshapes."""
_FIRST = ("gemm_input_shape", "gemm_output_shape")
_INLINED = "_inlfunc_"
"""How names of values begin that come of an operator which it runs as several: it gives the same ones again, too."""


def encode(
    model: Model,
    graph: Graph,
    write_tensor: WriteTensor = embedded,
    metadata: Mapping[str, str] = _NO_METADATA,
) -> ModelProto:
    """The model with its top graph replaced, and notes of superopt added; everything else around it as it was."""
    proto = ModelProto()
    _copy_fields(model.proto, proto, but=("graph",))
    add_metadata(proto, metadata)
    _Exporter(model, write_tensor).graph(graph, proto.graph)
    _import_domains(proto, graph)
    return proto


def _import_domains(proto: ModelProto, graph: Graph) -> None:
    """Domains that rewrites brought along are imported; what the file imports stays as it is."""
    imported = {"" if o.domain == "ai.onnx" else o.domain for o in proto.opset_import}
    for domain in dict.fromkeys(node.domain for node in graph.all_nodes()):
        if domain and domain not in imported and all(f.domain != domain for f in proto.functions):
            proto.opset_import.add(domain=domain, version=1)


@dataclass
class _Names:
    """Names while one graph is written."""

    of: dict[Value, str]
    used: set[str]

    def give(self, value: Value, name: str) -> None:
        self.of[value] = name
        self.used.add(name)


_UNNAMED = Label()


class _Exporter:
    def __init__(self, model: Model, write_tensor: WriteTensor) -> None:
        self.write_tensor, self.folder = write_tensor, model.folder
        self.reserved = set(_all_names(model.proto.graph))
        self.given_by_runtime = self.reserved & {
            *_FIRST, *(name for n in self.reserved if _NUMBERED.search(n) for name in (n, _NUMBERED.sub("", n)))
        }  # fmt: skip
        self.counter = 0

    def fresh(self, base: str) -> str:
        while True:
            self.counter += 1
            name = f"{base or 'value'}_so{self.counter}"
            if name not in self.reserved:
                self.reserved.add(name)
                return name

    def graph(self, graph: Graph, out: GraphProto, outer: Mapping[Value, str] | None = None) -> None:
        """Write one graph. `outer` names the captures of a body as the enclosing graph knows them."""
        origin = graph.origin if isinstance(graph.origin, GraphProto) else GraphProto(name=graph.name)
        names = _Names(dict(outer or {}), set((outer or {}).values()))
        input_names = [self._interface_name(name, names, outer) for name in graph.input_names]
        for parameter, name in zip(graph.inputs, input_names, strict=True):
            names.give(Value(parameter), name)
        spoken_of = {*graph.output_names, *_annotated(origin), *(q.tensor_name for q in origin.quantization_annotation)}
        for constant, name in graph.constants.items():
            is_free = name in self.given_by_runtime and name not in spoken_of
            names.give(Value(constant), self.fresh(name) if is_free else self._interface_name(name, names, outer))
        output_names: list[str] = []
        copies: list[tuple[Value, str]] = []
        for value, declared in zip(graph.outputs, graph.output_names, strict=True):
            if names.of.get(value) == declared:
                output_names.append(declared)
                continue
            name = self._interface_name(declared, names, outer)
            output_names.append(name)
            if value in names.of:
                copies.append((value, name))
                names.used.add(name)
            else:
                names.give(value, name)
        for node in graph.nodes:
            self._name_outputs(node, graph.labels.get(node, _UNNAMED), names)

        out.name = origin.name
        if origin.HasField("doc_string"):
            out.doc_string = origin.doc_string
        _rename_into(out.input, origin.input, input_names)
        _rename_into(out.output, origin.output, output_names)
        out.metadata_props.extend(origin.metadata_props)
        self._constants(graph, origin, names, out)
        for node in graph.nodes:
            self._node(node, graph.labels.get(node, _UNNAMED), names, out.node.add())
        for value, name in copies:
            out.node.add(op_type="Identity", name=self.fresh(f"{name}_copy"), input=[names.of[value]], output=[name])
        _annotations(origin, out)

    def _interface_name(self, name: str, names: _Names, outer: Mapping[Value, str] | None) -> str:
        """A model's inputs, outputs and constants keep their names; a body's give way to outer values it reads."""
        return self.fresh(name) if outer is not None and name in names.used else name

    def _name_outputs(self, node: Node, label: Label, names: _Names) -> None:
        for i, value in enumerate(node.outputs):
            if value in names.of:
                continue
            if i >= len(label.outputs):
                names.give(value, self.fresh(node.op.lower()))
            elif label.outputs[i]:
                wanted = label.outputs[i]
                is_free = wanted not in names.used and not wanted.startswith(_INLINED)
                names.give(value, wanted if is_free else self.fresh(wanted))

    def _constants(self, graph: Graph, origin: GraphProto, names: _Names, out: GraphProto) -> None:
        """Constants in the file's order, new ones last; defaults of overridable inputs are the file's own."""
        by_name = {name: constant for constant, name in graph.constants.items()}
        inputs = {*graph.input_names, *_annotated(origin)}
        for tensor in origin.initializer:
            constant = by_name.pop(tensor.name, None)
            if constant is not None:
                out.initializer.append(self.write_tensor(constant.tensor, names.of[Value(constant)]))
            elif tensor.name in inputs:
                out.initializer.append(self._default(tensor))
        for constant in by_name.values():
            if isinstance(constant.tensor, SparseConstant):
                out.sparse_initializer.append(constant.tensor.proto)
                out.sparse_initializer[-1].values.name = names.of[Value(constant)]
            else:
                out.initializer.append(self.write_tensor(constant.tensor, names.of[Value(constant)]))

    def _default(self, tensor: TensorProto) -> TensorProto:
        """The file's own record, unless that points at a data file that will not lie beside the result."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return tensor
        return self.write_tensor(tensor_of(tensor, self.folder, f"initializer {tensor.name!r}"), tensor.name)

    def _node(self, node: Node, label: Label, names: _Names, out: NodeProto) -> None:
        origin = label.origin
        if isinstance(origin, NodeProto):
            if node.bodies or any(isinstance(a, Tensor) for _, a in node.attributes):
                _copy_fields(origin, out, but=("attribute", "input", "output"))
                ordered = [a.name for a in origin.attribute]
            else:
                out.CopyFrom(origin)
                ordered = None
            del out.input[:], out.output[:]
        else:
            out.op_type, out.domain, ordered = node.op, node.domain, [name for name, _ in node.attributes]
            out.name = label.name or self.fresh(node.op)
            if not out.domain:
                out.ClearField("domain")
            for key, value in label.metadata:
                out.metadata_props.add(key=key, value=value)
        out.input.extend("" if v is None else names.of[v] for v in node.inputs)
        out.output.extend(names.of.get(v, "") for v in node.outputs)
        if ordered is not None:
            attributes = dict(node.attributes)
            originals = {a.name: a for a in origin.attribute} if isinstance(origin, NodeProto) else {}
            captured = {
                Value(p): names.of[v] for body in node.bodies for p, v in zip(body.captures, node.captured, strict=True)
            }
            for name in ordered:
                self._attribute(name, attributes[name], captured, originals.get(name), out.attribute.add())

    def _attribute(
        self,
        name: str,
        value: Attribute,
        captured: Mapping[Value, str],
        origin: AttributeProto | None,
        out: AttributeProto,
    ) -> None:
        if isinstance(value, Graph):
            out.name, out.type = name, AttributeProto.GRAPH
            self.graph(value, out.g, captured)
        elif isinstance(value, tuple) and value and isinstance(value[0], Graph):
            out.name, out.type = name, AttributeProto.GRAPHS
            for body in value:
                assert isinstance(body, Graph)
                self.graph(body, out.graphs.add(), captured)
        elif isinstance(value, Tensor):
            out.name, out.type = name, AttributeProto.TENSOR
            out.t.CopyFrom(self.write_tensor(value, origin.t.name if origin is not None else ""))
        elif isinstance(value, Opaque):
            out.ParseFromString(value.data)
        elif origin is not None:
            out.CopyFrom(origin)
        else:
            out.CopyFrom(helper.make_attribute(name, value))
        if origin is not None and origin.doc_string:
            out.doc_string = origin.doc_string


def _copy_fields(source: ModelProto | NodeProto, target: ModelProto | NodeProto, but: tuple[str, ...]) -> None:
    for descriptor, value in source.ListFields():
        if descriptor.name in but:
            continue
        if isinstance(value, int | float | str | bytes):
            setattr(target, descriptor.name, value)
        else:
            getattr(target, descriptor.name).extend(value)


def _rename_into(out: Any, values: Iterable[ValueInfoProto], names: list[str]) -> None:
    for value, name in zip(values, names, strict=True):
        out.add().CopyFrom(value)
        out[-1].name = name


def _annotations(origin: GraphProto, out: GraphProto) -> None:
    """Declared types of inner values and quantization notes, for the names that are still there."""
    interface = {v.name for v in (*out.input, *out.output)}
    constants = {t.name for t in out.initializer} & {t.name for t in origin.initializer}
    written = {n for node in out.node for n in node.output} - interface
    out.value_info.extend(v for v in origin.value_info if v.name in written or v.name in constants)
    present = written | interface | constants
    out.quantization_annotation.extend(q for q in origin.quantization_annotation if q.tensor_name in present)


def _all_names(graph: GraphProto) -> Iterable[str]:
    yield from (v.name for v in graph.input)
    yield from (t.name for t in graph.initializer)
    for node in graph.node:
        yield node.name
        yield from node.output
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _all_names(attribute.g)
            elif attribute.type == AttributeProto.GRAPHS:
                for body in attribute.graphs:
                    yield from _all_names(body)


def _annotated(graph: GraphProto) -> set[str]:
    """Tensors that hold parameters of a quantization: they are found by name."""
    return {p.value for q in graph.quantization_annotation for p in q.quant_parameter_tensor_names}
