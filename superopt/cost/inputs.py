"""Inputs to time a region with: random, of the types it declares."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from superopt.cost.weights import is_weight, is_weight_only
from superopt.ir.graph import Graph, Node, Parameter, Value
from superopt.ir.tensor import Array, ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType, TensorType

_HALF = frozenset((DType.FLOAT16, DType.BFLOAT16))
_SMALL = 0.05  # of weights
_SAFE_BELOW = 2  # 0 and 1 are indices of almost anything
_INDEX_AXES = {"Gather": 0, "GatherElements": 0}


def region_feeds(graph: Graph, sizes: Mapping[str, int], seed: int) -> dict[str, Array] | None:
    """By name (in0, in1, …); None where a type or a dim is unknown, so that the region cannot be timed.

    Floats are standard normal. Indices reach as far as what they pick from, other whole numbers are 0 or 1, and
    what is divided by is 1.
    """
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for i, parameter in enumerate(graph.inputs):
        type_ = parameter.type
        shape = _shape(type_, sizes)
        if shape is None or not isinstance(type_, TensorType) or type_.dtype is None:
            return None
        if type_.dtype is DType.STRING:
            return None
        feeds[f"in{i}"] = _drawn(rng, type_.dtype, shape, _range(graph, parameter, sizes))
    return feeds


def stand_ins(graph: Graph, seed: int) -> dict[Value, Tensor]:
    """For what is computed from weights in 16 bits and read by what runs: any numbers of its shape.

    In the model that is returned such weights are computed once, by superopt. onnxruntime, which is given the region as
    it is, leaves what its CPU provider has no kernel for to every run; a convolution with channels last does not even
    run with weights that are not there from the start.
    """
    rng = np.random.default_rng([seed, 1])
    running = [node for node in graph.nodes if not is_weight_only(node)]
    read = dict.fromkeys(v for node in running for v in node.operands if isinstance(v.producer, Node) and is_weight(v))
    found: dict[Value, Tensor] = {}
    for value in read:
        shape, dtype = _shape(value.type, {}), None if value.tensor_type is None else value.tensor_type.dtype
        if shape is not None and dtype is not None and dtype in _HALF and value not in graph.outputs:
            drawn = _drawn(rng, dtype, shape, (0, 1)) * numpy_dtype(dtype).type(_SMALL)
            found[value] = ArrayTensor(np.asarray(drawn))  # of no axes, numpy gives a number
    return found


def _shape(type_: object, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return None
    dims = [sizes.get(d) if isinstance(d, str) else d for d in type_.shape]
    known = tuple(d for d in dims if d is not None)
    return known if len(known) == len(dims) else None


def _drawn(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], bounds: tuple[int, int]) -> Array:
    if dtype is DType.BOOL:
        return np.asarray(rng.integers(0, 2, shape).astype(np.bool_))
    if dtype.is_float or dtype.value.startswith("complex"):
        return np.asarray(rng.standard_normal(shape, np.float32)).astype(numpy_dtype(dtype))
    return np.asarray(rng.integers(*bounds, shape)).astype(numpy_dtype(dtype))


def _range(graph: Graph, parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, int]:
    """From, and up to but not including."""
    least, most = 0, None
    for node in graph.nodes:
        second = node.inputs[1] if len(node.inputs) > 1 else None
        if second is None or second.producer is not parameter:
            continue
        if node.op in ("Div", "Mod"):
            least = 1
        elif node.op in _INDEX_AXES:
            reach = _reach(node, sizes)
            most = reach if most is None else min(reach, most)
    return least, max(least + 1, _SAFE_BELOW if most is None else most)


def _reach(node: Node, sizes: Mapping[str, int]) -> int:
    data: Value | None = node.inputs[0]
    shape = _shape(data.type, sizes) if data is not None else None
    axis = int(node.attribute("axis", _INDEX_AXES[node.op]))
    return max(1, shape[axis]) if shape else _SAFE_BELOW
