# pyright: basic
"""Symbols that can be trusted: within one lifted graph equal symbols are equal sizes.

A file's own names cannot be. Real models write `batch` or `?` for unrelated dims, and nobody holds a run to them. So
every dim of every input gets a symbol of its own before shape inference: the first `batch` keeps its name, the next is
`batch#2`. Inference then carries symbols only to where sizes are equal, and invents new ones (`unk__7`), never one
twice, bodies included; with one exception, for which see `forget_elements`.

The names of the file are not touched: they stay in its messages, which are what goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto


def with_own_symbols(inputs: Iterable[ValueInfoProto]) -> list[ValueInfoProto]:
    """A model's inputs with a symbol for each dim that is no number, named or not; some exporters write -1 there.

    Only tensors are held to their shapes: the shapes inside sequences and optionals are left out.
    """
    values: list[ValueInfoProto] = []
    for declared in inputs:
        value = ValueInfoProto()
        value.CopyFrom(declared)
        if not value.type.HasField("tensor_type"):
            clear_shapes(value.type)
        values.append(value)
    taken = {d.dim_param for v in values for d in _dims(v.type)}
    met: dict[str, int] = {}
    for value in values:
        for axis, dim in enumerate(_dims(value.type)):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                continue
            name = dim.dim_param
            met[name] = count = met.get(name, 0) + 1
            if not name:
                dim.dim_param = _fresh(f"{value.name}.{axis}", 1, taken)
            elif count > 1:
                dim.dim_param = _fresh(name, count, taken)
    return values


def _fresh(name: str, count: int, taken: set[str]) -> str:
    while f"{name}#{count}" in taken:
        count += 1
    taken.add(f"{name}#{count}")
    return f"{name}#{count}"


def clear_shapes(proto: TypeProto) -> None:
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        getattr(proto, kind).ClearField("shape")
    elif kind in ("sequence_type", "optional_type"):
        clear_shapes(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        clear_shapes(proto.map_type.value_type)


def forget_elements(graph: GraphProto, functions: Sequence[FunctionProto]) -> None:
    """Drop the symbols of sequence elements wherever they got to.

    Elements of one sequence differ in size, and inference has one symbol for all of them. What a function of the model
    does inside is not shown, so one that works with sequences takes every symbol with it.
    """
    everything = any(_is_about_sequences(node) for f in functions for node in nodes_within(f.node))
    doubtful = {d.dim_param for value in _values(graph) for d in _dims(value.type) if everything}
    doubtful |= {d.dim_param for value in _values(graph) for d in _element_dims(value.type)}
    for value in _values(graph) if doubtful else ():
        for dim in _dims(value.type):
            if dim.dim_param in doubtful:
                dim.ClearField("dim_param")


def _is_about_sequences(node: NodeProto) -> bool:
    return "Sequence" in node.op_type


def nodes_within(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes and those of their bodies."""
    for node in nodes:
        yield node
        for body in bodies_of(node):
            yield from nodes_within(body.node)


def _values(graph: GraphProto) -> Iterator[ValueInfoProto]:
    yield from (*graph.input, *graph.output, *graph.value_info)
    for node in graph.node:
        for body in bodies_of(node):
            yield from _values(body)


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def _dims(proto: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    """Every dim, however deep inside a sequence."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(proto, kind).shape.dim
    elif kind in ("sequence_type", "optional_type"):
        yield from _dims(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        yield from _dims(proto.map_type.value_type)


def _element_dims(proto: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "map_type"):
        yield from _dims(proto)
    elif kind == "optional_type":
        yield from _element_dims(proto.optional_type.elem_type)
