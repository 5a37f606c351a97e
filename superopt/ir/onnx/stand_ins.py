# pyright: basic
"""Standard nodes that have results of the same types as operators of which onnx's shape inference knows nothing.

They stand in a skeleton that nobody runs. Without them everything behind an operator of onnxruntime's own would be of
unknown type, and no rule would touch it: in models that onnxruntime or its transformer tools have optimized, in those
that superopt gave back. Where a result cannot be told exactly nothing stands in, and it stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import GraphProto, ModelProto, NodeProto, helper

from superopt.ir.onnx.guesses import HIDDEN
from superopt.ir.onnx.symbols import bodies_of

MICROSOFT = "com.microsoft"
StandIns: TypeAlias = "Iterator[NodeProto]"
Made: TypeAlias = Callable[[NodeProto, "Setting"], StandIns]

_CAST_LIKE, _LAYER_NORM, _EVEN_SPLITS = 15, 17, 18
"""Opsets from which on there are the first two, and from which on a Split wants to know into how many."""


@dataclass(frozen=True)
class Setting:
    opset: int
    prefix: str
    """What no name of the model begins with."""
    own: frozenset[str]
    """What the model has functions for in onnxruntime's domain. Where it has an operator of that name it runs that,
    whatever the function says."""

    @classmethod
    def of(cls, model: ModelProto) -> Setting:
        opset = next((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), 1)
        prefix, names = "part of ", set(_names(model.graph))
        while any(name.startswith(prefix) for name in names):
            prefix = f"another {prefix}"
        return cls(opset, prefix, frozenset(f.name for f in model.functions if f.domain == MICROSOFT))


def _names(graph: GraphProto) -> Iterator[str]:
    yield from (value.name for value in (*graph.input, *graph.output, *graph.initializer))
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from (*node.input, *node.output)
        for body in bodies_of(node):
            yield from _names(body)


def stand_ins(node: NodeProto, setting: Setting) -> list[NodeProto]:
    """None where it is inferred itself, or where nothing can be said of it."""
    if node.domain == MICROSOFT and node.op_type in setting.own:
        return [NodeProto(op_type=node.op_type, domain=HIDDEN, input=node.input, output=node.output)]
    table = _STANDARD if node.domain in ("", "ai.onnx") else _MICROSOFT if node.domain == MICROSOFT else {}
    made = table.get(node.op_type)
    if made is None or (node.op_type == "LayerNormalization" and setting.opset >= _LAYER_NORM):
        return []
    return list(made(node, setting))


def _input(node: NodeProto, place: int) -> str:
    return node.input[place] if place < len(node.input) else ""


def _output(node: NodeProto, place: int) -> str:
    return node.output[place] if place < len(node.output) else ""


def _ints(node: NodeProto, *names: str) -> list[int]:
    values = {a.name: a.i for a in node.attribute}
    return [values.get(name, 0) for name in names]


def _like_first(*places: int) -> Made:
    """These results are of the first operand's type."""

    def made(node: NodeProto, setting: Setting) -> StandIns:
        for place in places:
            if _input(node, 0) and _output(node, place):
                yield helper.make_node("Identity", [node.input[0]], [node.output[place]])

    return made


def _biased(node: NodeProto, setting: Setting) -> StandIns:
    """Of the first operand's type, or of what a bias makes of it: without a kernel it runs as a sum and a function."""
    if _input(node, 1):
        yield helper.make_node("Add", node.input[:2], node.output[:1])
    else:
        yield from _like_first(0)(node, setting)


def _normalized(node: NodeProto, setting: Setting) -> StandIns:
    """Of the first operand's shape, and of the type of what it is scaled with."""
    if setting.opset >= _CAST_LIKE and _input(node, 0) and _input(node, 1) and _output(node, 0):
        yield helper.make_node("CastLike", node.input[:2], node.output[:1])


def _product(node: NodeProto, setting: Setting) -> StandIns:
    *turned, left_batch, right_batch = _ints(node, "transA", "transB", "transBatchA", "transBatchB")
    if left_batch or right_batch or not (_input(node, 0) and _input(node, 1) and _output(node, 0)):
        return
    operands = list(node.input[:2])
    for place in (k for k in (0, 1) if turned[k]):
        operands[place] = f"{setting.prefix}{node.output[0]} {place}"
        yield helper.make_node("Einsum", [node.input[place]], [operands[place]], equation="...ij->...ji")
    yield helper.make_node("MatMul", operands, node.output[:1])


def _bare(op: str, operands: int, *dropped: str) -> Made:
    """The standard operator without what is fused behind it."""

    def made(node: NodeProto, setting: Setting) -> StandIns:
        bare = NodeProto(op_type=op, input=node.input[:operands], output=node.output[:1])
        bare.attribute.extend(a for a in node.attribute if a.name not in dropped)
        yield bare

    return made


def _thirds(value: str, axis: int, node: NodeProto, setting: Setting) -> tuple[NodeProto, list[str]]:
    """Named after the result, which nothing else is: weights may be shared."""
    parts = [f"{setting.prefix}{node.output[0]} {k}" for k in range(3)]
    more: dict[str, Any] = {"num_outputs": 3} if setting.opset >= _EVEN_SPLITS else {}
    return helper.make_node("Split", [value], parts, axis=axis, **more), parts


def _attention(node: NodeProto, setting: Setting) -> StandIns:
    """The values' projection, as wide as the others unless sizes are given."""
    sizes = next((list(a.ints) for a in node.attribute if a.name == "qkv_hidden_sizes"), [])
    if len(set(sizes)) > 1 or not (_input(node, 0) and _input(node, 1) and _output(node, 0)):
        return
    split, parts = _thirds(node.input[1], 1, node, setting)
    yield split
    yield helper.make_node("MatMul", [node.input[0], parts[2]], node.output[:1])


def _multi_head(node: NodeProto, setting: Setting) -> StandIns:
    """A position for each query, as wide as the values; or queries, keys and values packed by head."""
    if not _output(node, 0) or not _input(node, 0):
        return
    query, key, value = (_input(node, k) for k in range(3))
    if value:
        yield helper.make_node("Einsum", [query, value], node.output[:1], equation="bsh,ctv->bsv")
    elif key:
        yield helper.make_node("Identity", [query], node.output[:1])
    else:
        split, parts = _thirds(query, 3, node, setting)
        shape = f"{parts[0]} shape"
        yield split
        yield helper.make_node("Constant", [], [shape], value_ints=[0, 0, -1])
        yield helper.make_node("Reshape", [parts[2], shape], node.output[:1])


def _grouped_query(node: NodeProto, setting: Setting) -> StandIns:
    if _input(node, 0) and _input(node, 1) and _output(node, 0):  # else queries, keys and values are packed
        yield helper.make_node("Identity", node.input[:1], node.output[:1])


def _embedded(node: NodeProto, setting: Setting) -> StandIns:
    for place in (0, 2):
        if _output(node, place) and _input(node, 0) and _input(node, 2):
            yield helper.make_node("Gather", [node.input[2], node.input[0]], [node.output[place]], axis=0)


_STANDARD: dict[str, Made] = {
    "GroupNormalization": _like_first(0),
    "LayerNormalization": _normalized,  # onnxruntime writes it into models of opsets that have none
    "MeanVarianceNormalization": _like_first(0),
    "SimplifiedLayerNormalization": _normalized,
}
_MICROSOFT: dict[str, Made] = {
    "Attention": _attention,
    "BiasAdd": _like_first(0),
    "BiasGelu": _biased,
    "BiasSoftmax": _like_first(0),
    "EmbedLayerNormalization": _embedded,
    "FastGelu": _biased,
    "FusedConv": _bare("Conv", 3, "activation", "activation_params"),
    "FusedGemm": _bare("Gemm", 3, "activation", "activation_alpha", "activation_beta", "activation_gamma"),
    "FusedMatMul": _product,
    "Gelu": _like_first(0),
    "GroupNorm": _like_first(0),
    "GroupQueryAttention": _grouped_query,
    "MultiHeadAttention": _multi_head,
    "QuickGelu": _like_first(0),
    "RotaryEmbedding": _like_first(0),
    "SimplifiedLayerNormalization": _normalized,
    "SkipLayerNormalization": _like_first(0, 3),
    "SkipSimplifiedLayerNormalization": _like_first(0, 3),
}
