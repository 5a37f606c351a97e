"""Small models made for the clock alone: an empty one, a yardstick, and the pieces to build others from."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from superopt.ir.graph import Attribute, Constant, Graph, Node, Parameter, Value, make_node, make_parameter
from superopt.ir.onnx import Model, parse
from superopt.ir.tensor import Array, ArrayTensor, Tensor, numpy_dtype, pack
from superopt.ir.types import DType, TensorType
from superopt.runtime.probe import relu_model

_OPSET, _IR_VERSION = 17, 8
_YARDSTICK_SIZES = (128, 256, 256)


@functools.cache
def host() -> Model:
    """The model whose versions a workload takes."""
    return parse(relu_model(_OPSET, _IR_VERSION))


def empty_workload() -> Graph:
    """One element through one node: what is left is the price of a run."""
    x = data(0, (1,))
    return workload([x], node("Relu", [x], (1,)))


def yardstick_workload() -> Graph:
    """A matrix product of a few hundred microseconds."""
    m, k, n = _YARDSTICK_SIZES
    x = data(0, (m, k))
    return workload([x], node("MatMul", [x, weights(k, n)], (m, n)))


def data(position: int, shape: tuple[int, ...], dtype: DType = DType.FLOAT32) -> Value:
    return Value(make_parameter(position, TensorType(dtype, shape)))


def weights(*shape: int, dtype: DType = DType.FLOAT32, seed: int = 0) -> Value:
    """Random numbers, small enough to stay so through many layers."""
    return Value(Constant(_Drawn(dtype, shape, seed)))


class _Drawn(Tensor):
    """Numbers that are drawn when they are wanted: most workloads are looked up, and were timed long before."""

    def __init__(self, dtype: DType, shape: tuple[int, ...], seed: int) -> None:
        super().__init__(dtype, shape)
        self._seed = seed

    @functools.cached_property
    def _array(self) -> Array:
        random = np.random.default_rng([len(self.shape), self._seed] if self._seed else len(self.shape))
        drawn = random.standard_normal(self.shape, np.float32)
        array = (drawn / np.float32(max(1, self.shape[0]) ** 0.5)).astype(numpy_dtype(self.dtype))
        array.flags.writeable = False
        return array

    def numpy(self) -> Array:
        return self._array

    def chunks(self) -> Iterator[bytes]:
        yield pack(self._array, self.dtype)


def number(value: float, dtype: DType = DType.FLOAT32) -> Value:
    return Value(Constant(ArrayTensor(np.array(value, numpy_dtype(dtype)))))


def whole(*numbers: int) -> Value:
    return Value(Constant(ArrayTensor(np.array(numbers, np.int64))))


def node(
    op: str,
    inputs: Sequence[Value | None],
    *shapes: tuple[int, ...],
    domain: str = "",
    attributes: Mapping[str, Attribute] | None = None,
) -> Node:
    """A node whose results have the first operand's element type and the given shapes."""
    first = inputs[0].tensor_type if inputs and inputs[0] is not None else None
    types = [TensorType(first.dtype if first is not None else DType.FLOAT32, shape) for shape in shapes]
    return make_node(op, inputs, attributes or {}, types, domain=domain)


def workload(inputs: Sequence[Value], *nodes: Node) -> Graph:
    """The nodes in order; the results are those of the last."""
    parameters = tuple(v.producer for v in inputs if isinstance(v.producer, Parameter))
    outputs = nodes[-1].outputs
    input_names = tuple(f"in{i}" for i in range(len(parameters)))
    return Graph(parameters, outputs, nodes, input_names, tuple(f"out{i}" for i in range(len(outputs))))
