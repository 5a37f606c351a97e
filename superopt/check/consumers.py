"""What an operator asks of the values in one of its slots: an index, a length, a shape, a flag, a divisor.

One table for what is asked, one for where values go on unchanged, one for arithmetic. `superopt.check.uses` walks a
graph with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from superopt.ir.graph import Node, Value
from superopt.ir.tensor import Tensor
from superopt.ir.types import Dim

Kind: TypeAlias = Literal[
    "index",  # picks an element along an axis of `size`
    "place",  # likewise, for writing: two equal ones race
    "length",  # 1 to `size`
    "flag",  # 0 or 1
    "count",  # how often a loop runs
    "extent",  # a dim of a result
    "stretch",  # a dim to broadcast to
    "reshape",  # the whole shape of a result with as many elements
    "begin",
    "end",
    "step",
    "axis",
    "parts",  # how `size` is split
    "pad",
    "take",  # how many to take out of `size`
    "divisor",
    "compared",  # with `values`
    "label",  # one of `values`
    "number text",  # a string that is read as a number
    "scale",  # a factor of sizes
    "fraction",  # 0 to 1
    "positive",
]

Inputs: TypeAlias = "tuple[Value | None, ...]"

HARD: frozenset[Kind] = frozenset(
    (
        "index", "place", "length", "count", "extent", "stretch", "reshape", "begin", "end", "step", "axis", "parts",
        "pad", "take",
    )
)  # fmt: skip
"""Uses that fail, or explode, on numbers drawn at random."""


@dataclass(frozen=True)
class Use:
    kind: Kind
    size: Dim = None
    values: tuple[int | float | str, ...] = ()
    shift: int = 0
    """What is added to the input before it is used."""
    exact: bool = True
    """False when arithmetic other than a shift lies between."""
    table: bool = False
    """An index into a constant: embeddings, where nobody means to count from the end."""


_KINDS: dict[str, dict[int, Kind]] = {
    "Reshape": {1: "reshape"},
    "Expand": {1: "stretch"},
    "ConstantOfShape": {0: "extent"},
    "Tile": {1: "extent"},
    "Resize": {2: "scale", 3: "extent"},
    "Upsample": {1: "scale"},
    "Slice": {1: "begin", 2: "end", 3: "axis", 4: "step"},
    "Range": {0: "begin", 1: "end", 2: "step"},
    "Pad": {1: "pad", 3: "axis"},
    "SplitToSequence": {1: "extent"},
    "AffineGrid": {1: "extent"},
    "Col2Im": {1: "extent", 2: "extent"},
    "MelWeightMatrix": {0: "extent", 1: "extent", 2: "extent"},
    "Squeeze": {1: "axis"},
    "Unsqueeze": {1: "axis"},
    "CumSum": {1: "axis"},
    "Trilu": {1: "pad"},
    "BitShift": {1: "pad"},
    "Loop": {0: "count", 1: "flag"},
    "If": {0: "flag"},
    "Where": {0: "flag"},
    "Not": {0: "flag"},
    "And": {0: "flag", 1: "flag"},
    "Or": {0: "flag", 1: "flag"},
    "Xor": {0: "flag", 1: "flag"},
    "Compress": {1: "flag"},
    "NonMaxSuppression": {2: "take", 3: "fraction", 4: "fraction"},
    "Dropout": {1: "fraction", 2: "flag"},
    "BatchNormalization": {4: "positive"},
    "QuantizeLinear": {1: "positive"},
    "DequantizeLinear": {1: "positive"},
    "Bernoulli": {0: "fraction"},
    "SequenceAt": {1: "index"},
    "SequenceErase": {1: "index"},
    "SequenceInsert": {2: "index"},
    "HannWindow": {0: "extent"},
    "HammingWindow": {0: "extent"},
    "BlackmanWindow": {0: "extent"},
    "com.microsoft::MultiHeadAttention": {4: "flag"},
    "com.microsoft::Attention": {3: "flag"},
    "com.microsoft::EmbedLayerNormalization": {7: "flag"},
    "com.microsoft::GroupQueryAttention": {6: "extent"},
}

# Embedding operators: slot of the ids → slot of the table whose first dim bounds them.
_TABLES: dict[str, dict[int, int]] = {
    "com.microsoft::EmbedLayerNormalization": {0: 2, 1: 4, 8: 3},
    "com.microsoft::RotaryEmbedding": {1: 2},
    "RotaryEmbedding": {3: 1},
}

_LABELS = ("keys_strings", "keys_int64s", "cats_strings", "cats_int64s", "pool_strings", "pool_int64s")
_COMPARISONS = frozenset(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"))

# Where a value goes on unchanged: all slots, or those named.
_PRESERVING: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Identity", "Flatten", "Transpose", "Concat", "Optional", "OptionalGetElement")),
    **dict.fromkeys(("SequenceConstruct", "ConcatFromSequence", "Min", "Max", "Clip")),
    **dict.fromkeys(("Cast", "CastLike", "Reshape", "Squeeze", "Unsqueeze", "Expand", "Tile", "Slice"), (0,)),
    **dict.fromkeys(("Split", "SplitToSequence", "Gather", "GatherElements", "GatherND", "SequenceAt"), (0,)),
    **dict.fromkeys(("Pad", "ReverseSequence", "Compress", "DepthToSpace", "SpaceToDepth", "Trilu"), (0,)),
    **dict.fromkeys(("ScatterND", "ScatterElements", "Scatter"), (0, 2)),
    "Where": (1, 2),
    "SequenceInsert": (0, 1),
}
_ARITHMETIC = frozenset(
    (
        "Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Floor", "Ceil", "Round", "Pow", "Sum", "CumSum",
        "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean",
    )
)  # fmt: skip


def preserves(node: Node, slot: int) -> bool:
    if node.domain or node.op not in _PRESERVING:
        return False
    slots = _PRESERVING[node.op]
    return slots is None or slot in slots


def computes(node: Node) -> bool:
    return not node.domain and node.op in _ARITHMETIC


def use_of(node: Node, slot: int, inputs: Inputs) -> Use | None:
    """What `node` asks of the value in `slot`; None where any value will do.

    `inputs` are the node's own, with captured ones replaced by what they are outside.
    """
    if node.kind in _TABLES and slot in _TABLES[node.kind]:
        return Use("index", dim(_at(inputs, _TABLES[node.kind][slot]), 0), table=True)
    kind = _KINDS.get(node.kind, {}).get(slot)
    if kind is not None:
        return Use(kind)
    if node.domain == "ai.onnx.ml" or node.op == "TfIdfVectorizer":
        values = next((v for name in _LABELS if isinstance(v := node.attribute(name), tuple)), ())
        return Use("label", values=tuple(v for v in values if not isinstance(v, bytes))) if values else None
    if node.domain:
        return None
    return _standard(node, slot, inputs)


def _standard(node: Node, slot: int, inputs: Inputs) -> Use | None:
    data = _at(inputs, 0)
    if node.op in ("Gather", "GatherElements") and slot == 1:
        axis = node.attribute("axis", 0)
        return Use("index", dim(data, axis), table=data is not None and data.constant is not None)
    if node.op == "GatherND" and slot == 1:
        return Use("index", _least(data, node.attribute("batch_dims", 0)))
    if node.op in ("ScatterElements", "Scatter") and slot == 1:
        return Use("place", dim(data, node.attribute("axis", 0)))
    if node.op == "ScatterND" and slot == 1:
        return Use("place", _least(data, 0))
    if node.op == "OneHot" and slot < 2:
        return Use("index", _number(_at(inputs, 1))) if slot == 0 else Use("extent")
    if node.op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss") and slot == 1:
        return Use("index", dim(data, 1), table=True)
    if node.op == "Split" and slot == 1:
        return Use("parts", dim(data, node.attribute("axis", 0)))
    if node.op == "RoiAlign" and slot == 2:
        return Use("index", dim(data, 0))
    if node.op == "TopK" and slot == 1:
        return Use("take", dim(data, node.attribute("axis", -1)))
    if node.op in ("LSTM", "GRU", "RNN") and slot == 4:
        return Use("length", dim(data, 1 if node.attribute("layout", 0) else 0))
    if node.op == "ReverseSequence" and slot == 1:
        return Use("length", dim(data, node.attribute("time_axis", 0)))
    if node.op.startswith("Reduce") and slot == 1:
        return Use("axis")
    if node.op in ("Div", "Mod") and slot == 1:
        return Use("divisor")
    if node.op in _COMPARISONS:
        return _compared(_at(inputs, 1 - slot))
    if node.op == "Sub" and slot == 1 and constants(data) == (1,):
        return Use("flag")  # 1 − mask
    return None


def _compared(other: Value | None) -> Use | None:
    values = constants(other, 4096)  # a one-hot code may be spelled as a comparison with every code
    return Use("compared", values=values) if values else None


def constants(value: Value | None, most: int = 8) -> tuple[int | float | str, ...]:
    """The elements of a small constant; nothing for anything else."""
    if value is None:
        return ()
    tensor = value.constant
    if tensor is None:
        return _scalar_attribute(value)
    if not tensor.readable or not 0 < tensor.count <= most:
        return ()
    return tuple(v.decode(errors="replace") if isinstance(v, bytes) else v for v in _elements(tensor))


def _elements(tensor: Tensor) -> list[int | float | str | bytes]:
    array = tensor.numpy().reshape(-1)
    return array.tolist() if array.dtype.kind in "biufO" else array.astype("float64").tolist()


def _scalar_attribute(value: Value) -> tuple[int | float | str, ...]:
    if value.node is None or value.node.kind != "Constant":
        return ()
    found = next((v for name in ("value_int", "value_float") if (v := value.node.attribute(name)) is not None), None)
    return () if found is None else (found,)


def dim(value: Value | None, axis: int) -> Dim:
    shape = value.tensor_type.shape if value is not None and value.tensor_type is not None else None
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _least(value: Value | None, skipped: int) -> Dim:
    """A bound that holds on every axis: the smallest, where all are known."""
    shape = value.tensor_type.shape if value is not None and value.tensor_type is not None else None
    sizes = [d for d in (shape or ())[skipped:] if isinstance(d, int)]
    return min(sizes) if shape is not None and sizes and len(sizes) == len(shape) - skipped else None


def _number(value: Value | None) -> int | None:
    found = constants(value, 1)
    return int(found[0]) if found and not isinstance(found[0], str) else None


def _at(inputs: Inputs, slot: int) -> Value | None:
    return inputs[slot] if slot < len(inputs) else None
