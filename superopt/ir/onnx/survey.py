# pyright: basic
"""What a file claims, held against what can be true, before any of it is followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs

from superopt.errors import BadExternalData, BadModel, LimitHit
from superopt.ir.onnx.tensors import DTYPES, external_path

MAX_NODES = 2_000_000


def survey(proto: ModelProto, opsets: dict[str, int], folder: Path | None) -> tuple[str, ...]:
    """The external data files of a model, by their locations; raises for text, types, arity or files that are wrong."""
    own = {(f.domain, f.name) for f in proto.functions}
    files: dict[str, None] = {}
    nodes = 0
    for graph in _graphs(proto.graph):
        nodes += len(graph.node)
        if nodes > MAX_NODES:
            raise LimitHit(f"more than {MAX_NODES} nodes")
        for value in (*graph.input, *graph.output, *graph.value_info):
            _need_text(value.name, value.doc_string)
            _need_known_type(value.type, value.name)
        _need_text(graph.name, graph.doc_string)
        for node in graph.node:
            _need_node_text(node)
            if (node.domain, node.op_type) not in own:
                _need_operands(node, opsets)
    for function in proto.functions:
        _need_text(function.name, function.domain, function.doc_string)
    for tensor in _tensors(proto):
        _need_text(tensor.name, tensor.doc_string)
        if tensor.data_location == TensorProto.EXTERNAL:
            location = next((e.value for e in tensor.external_data if e.key == "location"), "")
            _need_text(location)
            if not external_path(location, folder, f"tensor {tensor.name!r}").is_file():
                raise BadExternalData(f"tensor {tensor.name!r}: external data file {location!r} is missing")
            files[location] = None
        elif tensor.data_type not in DTYPES:
            raise BadModel(f"tensor {tensor.name!r}: unknown element type {tensor.data_type}")
    _need_text(proto.producer_name, proto.producer_version, proto.domain, proto.doc_string)
    for entry in proto.metadata_props:
        _need_text(entry.key, entry.value)
    return tuple(files)


def _graphs(top: GraphProto) -> Iterator[GraphProto]:
    waiting = [top]
    while waiting:
        graph = waiting.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    waiting.append(attribute.g)
                elif attribute.type == AttributeProto.GRAPHS:
                    waiting.extend(attribute.graphs)


def _tensors(proto: ModelProto) -> Iterator[TensorProto]:
    for graph in _graphs(proto.graph):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        yield from _held(graph)
    for function in proto.functions:
        yield from _held(function)


def _held(body: GraphProto | FunctionProto) -> Iterator[TensorProto]:
    for node in body.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == AttributeProto.TENSORS:
                yield from attribute.tensors


def _need_node_text(node: NodeProto) -> None:
    _need_text(node.name, node.op_type, node.domain, node.doc_string, *node.input, *node.output)
    _need_text(*(a.name for a in node.attribute))


def _need_text(*found: str | bytes) -> None:
    """protobuf hands out text that is no UTF-8 as bytes."""
    for text in found:
        if not isinstance(text, str):
            raise BadModel(f"the text {text[:40]!r} is not UTF-8; the file is damaged")


def _need_known_type(type_: TypeProto, name: str) -> None:
    kind = type_.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        _need_known_type(getattr(type_, kind).elem_type, name)
    elif kind in ("tensor_type", "sparse_tensor_type"):
        code = getattr(type_, kind).elem_type
        if code and code not in DTYPES:
            raise BadModel(f"value {name!r}: unknown element type {code}")
        dims: Iterable = getattr(type_, kind).shape.dim
        _need_text(*(d.dim_param for d in dims))


def _need_operands(node: NodeProto, opsets: dict[str, int]) -> None:
    """onnxruntime refuses a node without an operand that its operator needs, and no pass should meet one."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    needed = _needed(domain, node.op_type, opsets.get(domain, 0))
    for i, name in enumerate(needed):
        if i >= len(node.input) or not node.input[i]:
            raise BadModel(f"node {node.name or node.op_type!r} ({node.op_type}): its input {name!r} is missing")


@cache
def _needed(domain: str, op: str, version: int) -> tuple[str, ...]:
    """Names of the operands that may not be left out; none for an operator that ONNX does not define."""
    try:
        schema = defs.get_schema(op, version, domain)
    except (defs.SchemaError, TypeError):
        return ()
    required = [i for i in schema.inputs if i.option == defs.OpSchema.FormalParameterOption.Single]
    return tuple(i.name for i in required)
