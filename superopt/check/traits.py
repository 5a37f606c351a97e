"""What lies upstream of each output and decides how it can be compared: precision, rounding to codes, randomness.

The checker keeps its own list of random operators instead of the passes': it must not inherit their mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from superopt.check.consumers import preserves
from superopt.ir.graph import Graph, Node, Value
from superopt.ir.types import DType, OptionalType, SequenceType, Type

_COARSENESS = (DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
_RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
)
_QUANTIZES = ("Quantize", "QLinear", "QGemm", "QAttention", "MatMulIntegerToFloat")
# onnxruntime computes these to about 1e-7 of their range, not of their result.
_SATURATES = frozenset(
    (
        "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softmax", "Erf", "Gelu", "Softsign", "Sin", "Cos", "LSTM",
        "GRU", "RNN", "Attention", "MultiHeadAttention", "FastGelu", "BiasGelu", "QuickGelu", "Swish",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Traits:
    coarsest: DType | None = None
    """The least precise float type computed with on the way."""
    random: bool = False
    quantizes: bool = False
    """Somewhere a float is rounded to a code of few bits, so that rounding noise can jump a whole step."""
    saturates: bool = False
    code: bool = False
    """The value itself is such a code."""


_CONSTANT = Traits()


def traits_of_outputs(graph: Graph) -> tuple[Traits, ...]:
    """In the order of the graph's outputs."""
    known = _flow(graph)
    return tuple(known.get(value, _CONSTANT) for value in graph.outputs)


def _flow(graph: Graph) -> dict[Value, Traits]:
    """Of every value that depends on an input or on chance; what is constant is computed once and exactly."""
    known = {Value(p): Traits(_coarse(p.type)) for p in (*graph.inputs, *graph.captures)}
    for node in graph.nodes:
        own = _own(node)
        read = [known[v] for v in node.operands if v in known]
        if not read and not own.random:
            continue
        joined = _join([own, *read])
        first = known.get(node.inputs[0], _CONSTANT) if node.inputs and node.inputs[0] is not None else _CONSTANT
        code = own.code or ((preserves(node, 0) or node.op == "MaxPool") and first.code)
        for value in node.outputs:
            known[value] = replace(joined, coarsest=_coarser(joined.coarsest, _coarse(value.type)), code=code)
    return known


def asks_for_nan(graph: Graph) -> bool:
    """Whether the graph itself tests for NaN or infinity: only then is its answer to them its own."""
    return any(node.op in ("IsNaN", "IsInf") and not node.domain for node in graph.all_nodes())


def _own(node: Node) -> Traits:
    """What the node adds by itself, everything in its bodies included."""
    random = node.op in _RANDOM or (node.op == "Dropout" and _trains(node))
    rounds = _rounds(node)
    alone = Traits(None, random, rounds, node.op in _SATURATES)
    inner = _join([alone, *(traits for body in node.bodies for traits in _flow(body).values())])
    return replace(inner, code=rounds)


def _rounds(node: Node) -> bool:
    return not node.op.startswith("Dequantize") and any(word in node.op for word in _QUANTIZES)


def _trains(dropout: Node) -> bool:
    if len(dropout.inputs) < 3 or dropout.inputs[2] is None:
        return False
    mode = dropout.inputs[2].constant
    return mode is None or not mode.readable or bool(mode.numpy().any())


def _join(parts: Iterable[Traits]) -> Traits:
    coarsest, random, quantizes, saturates = None, False, False, False
    for part in parts:
        coarsest = _coarser(coarsest, part.coarsest)
        random, quantizes = random or part.random, quantizes or part.quantizes
        saturates = saturates or part.saturates
    return Traits(coarsest, random, quantizes, saturates)


def _coarse(type_: Type) -> DType | None:
    while isinstance(type_, SequenceType | OptionalType):
        type_ = type_.element
    dtype = getattr(type_, "dtype", None)
    return dtype if dtype in _COARSENESS else None


def _coarser(a: DType | None, b: DType | None) -> DType | None:
    if a is None or b is None:
        return a or b
    return max(a, b, key=_COARSENESS.index)
