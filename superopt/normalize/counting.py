"""Whether any of many is true, asked by counting them: counted in floats, which every device adds up fast.

A sum of zeros and ones is above 0 where one of them is 1, in floats as well: what is added never makes it smaller.
Exporters write `any` as integers of 64 bits, which onnxruntime's CUDA provider adds up far slower.
"""

from __future__ import annotations

import numpy as np

from superopt.ir.graph import Attribute, Constant, Node, Value, make_node
from superopt.ir.onnx.tensors import CODES
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType, Type
from superopt.normalize.rule import Replacement, Result, Rule, dtype_of
from superopt.normalize.scope import Scope

_COUNTS = (DType.INT32, DType.INT64)


def _any_by_count(node: Node, scope: Scope) -> Result:
    """Greater(ReduceSum(Cast(truths)), 0)"""
    count, threshold = node.inputs
    total = scope.operator(count, "ReduceSum")
    ones = scope.operator(total.inputs[0], "Cast") if total is not None else None
    zeros = scope.tensor(threshold)
    if total is None or ones is None or zeros is None or not scope.is_filled(threshold, 0):
        return None
    if dtype_of(ones.inputs[0]) is not DType.BOOL or dtype_of(Value(ones)) not in _COUNTS:
        return None
    if scope.uses[Value(ones)] != 1 or scope.uses[Value(total)] != 1:
        return None  # the count is wanted, too
    to: dict[str, Attribute] = {**dict(ones.attributes), "to": int(CODES[DType.FLOAT32])}
    cast = make_node("Cast", ones.inputs, to, _in_floats(ones))
    added = make_node("ReduceSum", (Value(cast), *total.inputs[1:]), total.attributes, _in_floats(total))
    zero = Constant(ArrayTensor(np.zeros(zeros.shape, np.float32)))
    return Replacement(
        make_node("Greater", (Value(added), Value(zero)), node.attributes, node.types),
        like=node,
        constants=((zero, "_zero"),),
        inner=((cast, "_floats"), (added, "_count")),
    )


def _in_floats(node: Node) -> tuple[Type]:
    found = Value(node).tensor_type
    return (TensorType(DType.FLOAT32, None if found is None else found.shape),)


RULES = (Rule("any-counted-in-floats", ("Greater",), _any_by_count),)
