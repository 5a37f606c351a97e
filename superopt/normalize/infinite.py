"""Whether anything of 16 bits is infinite, asked as a GPU answers it fastest; and limits that depend on the answer.

T5's networks ask it behind every sum in float16: where anything is infinite, everything is clipped to 64504, else
nothing is. Exporters write that in float32 or float64, because IsInf knows no others before opset 20, and as a count.

Shrink(x, 65504) is 0 where a float16 is finite or no number, and x itself where it is infinite. Added up, that is 0 if
nothing is infinite, and infinite or no number otherwise, in any order of adding and in any precision. So it holds for
all values, those that are no numbers included, of which tests try all 65536. (CUDA's kernels compute it so, by their
machine code in onnxruntime 1.31.1: Shrink compares in float32 and is false for NaN, Clip lets NaN pass.)

These are for CUDA alone. onnxruntime's CPU provider has no kernels for sums in float16 and casts: slower, and not what
ONNX says. What it adds in float32 it does not round to float16 in front of the question, so that it finds finite what
is infinite in float16, and on CUDA; the rewritten model rounds, and finds it infinite. Where a CPU checks a model for
CUDA and a sum overflows in that check, these passes are left out.
"""

from __future__ import annotations

from math import prod

import numpy as np

from superopt.ir.graph import Constant, Node, Value, make_node
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType, Type
from superopt.normalize.casting import target
from superopt.normalize.rule import Replacement, Result, Rule, broadcast_keeps, dtype_of
from superopt.normalize.scope import Scope

PROOF = "by definition, for every value of float16, infinities and NaN among them"
MOST = float(np.finfo(np.float16).max)
_EQUAL_OF_FLOATS = 11
"""The opset since which Equal compares float16."""
_SUM_TAKES_AXES = 13
"""The opset since which the axes of ReduceSum are an input."""


def _any_infinite(node: Node, scope: Scope) -> Result:
    """Whether any is: Greater(ReduceSum(Cast(IsInf(x))), 0), or ReduceMax(Cast(IsInf(x))), cast to a truth."""
    total = _asked(node, scope)
    ones = scope.operator(total.inputs[0], "Cast") if total is not None else None
    asked = scope.operator(ones.inputs[0], "IsInf") if ones is not None else None
    if total is None or ones is None or asked is None or not scope.context.for_cuda:
        return None
    if any(scope.uses[Value(each)] != 1 for each in (total, ones, asked)) or scope.opset < _EQUAL_OF_FLOATS:
        return None
    x = _source(asked.inputs[0], scope)
    if x is None or not _is_number(target(ones)):
        return None
    if not all(asked.attribute(f"detect_{sign}", 1) == 1 for sign in ("negative", "positive")):
        return None
    if total.op == "ReduceMax" and not _has_elements(x):
        return None
    kept = make_node("Shrink", (x,), {"lambd": MOST}, (x.type,))
    added, axes = _sum_like(total, kept, scope)
    zero = Constant(ArrayTensor(np.zeros((), np.float16)))
    none = make_node("Equal", (Value(added), Value(zero)), {}, node.types)
    return Replacement(
        make_node("Not", (Value(none),), {}, node.types),
        constants=((zero, "_zero"), *((constant, "_axes") for constant in axes)),
        inner=((kept, "_infinite"), (added, "_sum"), (none, "_none")),
        proof=PROOF,
    )


def _asked(node: Node, scope: Scope) -> Node | None:
    """The reduction of zeros and ones of which it is asked whether it is above 0, and which has its shape."""
    if node.op == "Cast":
        return scope.operator(node.inputs[0], "ReduceMax", "ReduceSum") if target(node) is DType.BOOL else None
    total, zeros = scope.operator(node.inputs[0], "ReduceMax", "ReduceSum"), scope.tensor(node.inputs[1])
    if total is None or zeros is None or not scope.is_filled(node.inputs[1], 0):
        return None
    return total if broadcast_keeps(Value(total).type, zeros.shape) else None


def _is_number(dtype: DType | None) -> bool:
    return dtype is not None and (dtype.is_integer or dtype.is_float)


def _has_elements(value: Value) -> bool:
    """The largest of none is no truth."""
    shape = value.tensor_type.static_shape if value.tensor_type is not None else None
    return shape is not None and 0 not in shape


def _source(value: Value | None, scope: Scope) -> Value | None:
    """What is in float16, whether it is asked itself or after it was widened."""
    cast = scope.operator(value, "Cast")
    source = value if cast is None or target(cast) not in (DType.FLOAT32, DType.FLOAT64) else cast.inputs[0]
    return source if dtype_of(source) is DType.FLOAT16 else None


def _sum_like(total: Node, kept: Node, scope: Scope) -> tuple[Node, tuple[Constant, ...]]:
    """The sum over the axes of another reduction, and a constant made for it: ReduceSum was given its axes as an input
    before ReduceMax was."""
    attributes = dict(total.attributes)
    axes = attributes.pop("axes", None)
    if axes is None or scope.opset < _SUM_TAKES_AXES:
        return make_node("ReduceSum", (Value(kept), *total.inputs[1:]), total.attributes, _in_halves(total)), ()
    constant = Constant(ArrayTensor(np.array(axes, np.int64)))
    return make_node("ReduceSum", (Value(kept), Value(constant)), attributes, _in_halves(total)), (constant,)


def _in_halves(node: Node) -> tuple[Type]:
    found = Value(node).tensor_type
    return (TensorType(DType.FLOAT16, None if found is None else found.shape),)


def _limits(node: Node, scope: Scope) -> Result:
    """Between Where(c, −65504, a) and Where(c, 65504, b), where c is that nothing in x is infinite: x itself if c, else
    x between a and b."""
    x, low, high = _between(node, scope)
    if x is None or low is None or high is None or low.inputs[0] != high.inputs[0] or not scope.context.for_cuda:
        return None
    condition = low.inputs[0]
    if condition is None or _said_to_be_finite(condition, scope) != x or not _is_one(condition, x):
        return None
    if any(_number(limit.inputs[1], scope) != most for limit, most in ((low, -MOST), (high, MOST))):
        return None
    least, most = (_number(limit.inputs[2], scope) for limit in (low, high))
    if least is None or most is None or not least <= most:  # which of two limits wins that are the wrong way round?
        return None
    clipped = make_node("Clip", (x, low.inputs[2], high.inputs[2]), {}, node.types)
    chosen = make_node("Where", (condition, x, Value(clipped)), {}, node.types)
    return Replacement(chosen, inner=((clipped, "_clipped"),), proof=PROOF)


def _between(node: Node, scope: Scope) -> tuple[Value | None, Node | None, Node | None]:
    """What stands between which limits: of Clip(x, low, high), Min(Max(x, low), high) and Max(Min(x, high), low)."""
    x, limits = node.inputs[0], list(node.inputs[1:])
    if node.op != "Clip":
        inner = scope.operator(x, "Min" if node.op == "Max" else "Max")
        if inner is None or len(inner.inputs) != 2 or len(limits) != 1 or scope.uses[Value(inner)] != 1:
            return None, None, None
        x, limits = inner.inputs[0], [inner.inputs[1], *limits] if node.op == "Min" else [*limits, inner.inputs[1]]
    if len(limits) != 2 or dtype_of(x) is not DType.FLOAT16:
        return None, None, None
    low, high = (scope.operator(limit, "Where") for limit in limits)
    return x, low, high


def _said_to_be_finite(condition: Value, scope: Scope) -> Value | None:
    """The value of which it says that nothing in it is infinite."""
    none = scope.operator(condition, "Equal")
    total = scope.operator(none.inputs[0], "ReduceSum") if none is not None else None
    kept = scope.operator(total.inputs[0], "Shrink") if total is not None else None
    if none is None or kept is None or not scope.is_filled(none.inputs[1], 0):
        return None
    return kept.inputs[0] if kept.attribute("lambd") == MOST and not kept.attribute("bias", 0.0) else None


def _is_one(condition: Value, x: Value) -> bool:
    """Whether it is one answer, about all of x, that leaves x its shape."""
    found = condition.tensor_type
    shape = found.static_shape if found is not None else None
    return shape is not None and prod(shape) == 1 and broadcast_keeps(x.type, shape)


def _number(value: Value | None, scope: Scope) -> float | None:
    """Of a constant that Clip takes."""
    tensor = scope.tensor(value)
    return float(tensor.numpy()) if tensor is not None and not tensor.shape else None


RULES = (
    Rule("any-infinite-by-shrinking", ("Greater", "Cast"), _any_infinite),
    Rule("limits-of-infinite", ("Clip", "Min", "Max"), _limits),
)
