# pyright: basic
"""Sizes of a lifted graph's symbols for given shapes of its inputs: shape inference twice, and the results compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto

from superopt.ir.onnx.infer import infer, value_types
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.symbols import bodies_of
from superopt.ir.types import TensorType


def symbol_sizes(model: Model, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Those that follow from shapes; a size that depends on values (NonZero) is missing."""
    sizes: dict[str, int] = {}
    open_, closed = infer(model.proto), infer(model.proto, shapes)
    if open_ is not None and closed is not None:
        _collect(open_, closed, sizes)
    for name, parameter in zip(model.graph.input_names, model.graph.inputs, strict=True):
        if isinstance(parameter.type, TensorType) and parameter.type.shape is not None and name in shapes:
            pairs = zip(parameter.type.shape, shapes[name], strict=True)
            sizes.update((dim, size) for dim, size in pairs if isinstance(dim, str))
    return sizes


def _collect(open_: GraphProto, closed: GraphProto, sizes: dict[str, int]) -> None:
    known = value_types(closed)
    for name, type_ in value_types(open_).items():
        other = known.get(name)
        if isinstance(type_, TensorType) and isinstance(other, TensorType) and type_.rank == other.rank:
            for dim, size in zip(type_.shape or (), other.shape or (), strict=True):
                if isinstance(dim, str) and isinstance(size, int):
                    sizes.setdefault(dim, size)
    for node, twin in zip(open_.node, closed.node, strict=True):
        for body, its_twin in zip(bodies_of(node), bodies_of(twin), strict=True):
            _collect(body, its_twin, sizes)
