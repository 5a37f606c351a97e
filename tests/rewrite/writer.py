# pyright: basic
"""Nodes as one exporter or another would write them, for an opset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from superopt.ir.onnx.schema import attribute_names, input_counts
from superopt.ops.formula import Tensor
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.numerals import number_of
from superopt.rewrite.spelling import widened


class NotWritable(Exception):
    """A call that this opset has no node for."""


@dataclass(frozen=True)
class Spelling:
    """What a file may write in several ways; the chances of each, and what kinds of values inputs are."""

    defaults: float = 0.0
    """Attributes written although they say what leaving them out says."""
    negative_axes: float = 0.0
    reshape_targets: float = 0.0
    number_axes: float = 0.0
    """Numbers with an axis of size 1."""
    swapped: float = 0.0
    symbolic: float = 0.0
    """Dims of graph inputs that get a name instead of a size."""
    weights: float = 0.4
    """Inputs other than the first that are initializers."""
    constant_nodes: float = 0.0
    dtype: str = "float32"
    least: int = 1
    """The smallest size drawn."""


PLAIN = Spelling()
EXPORTED = Spelling(
    defaults=0.5, negative_axes=0.5, reshape_targets=0.5, number_axes=0.3, swapped=0.4, constant_nodes=0.3
)
DYNAMIC = replace(EXPORTED, symbolic=0.5)


@dataclass
class Writer:
    """The model under construction."""

    registry: Registry
    opset: int
    spelling: Spelling
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """Of tensors, by identity."""
    kept: dict[str, Tensor] = field(default_factory=dict)
    domains: set[str] = field(default_factory=set)
    wide: set[str] = field(default_factory=set)
    """Values of a wider type than the inputs', by name."""
    newest: bool = True
    counter: int = 0

    def is_wide(self, tensor: Tensor | None) -> bool:
        return tensor is not None and self.names.get(id(tensor)) in self.wide

    def fresh(self, base: str) -> str:
        self.counter += 1
        return f"{base}_{self.counter}"

    def chance(self, of: float) -> bool:
        return of > 0 and self.rng.random() < of

    def name(self, tensor: Tensor, name: str) -> None:
        self.kept[name] = tensor
        self.names[id(tensor)] = name

    def constant(self, array: np.ndarray, name: str) -> str:
        if self.chance(self.spelling.constant_nodes):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def number(self, value: Any, *, wide: bool = False) -> str:
        shape = (1,) if self.chance(self.spelling.number_axes) else ()
        array = np.full(shape, number_of(value)).astype("float32" if wide else self.spelling.dtype)
        return self.constant(array, self.fresh("number"))

    def call(
        self, operator: Operator, operands: list[Tensor | None], arguments: Mapping[str, Any], results: list[Tensor]
    ) -> None:
        own = self.registry.find(operator.name, operator.domain, None if operator.domain else self.opset)
        if own is None:
            raise NotWritable(f"{operator.kind} at opset {self.opset}")
        if str(arguments.get("auto_pad")).startswith("SAME") and any(d != 1 for d in arguments.get("dilations") or ()):
            raise NotWritable("onnxruntime does not run it")
        self.newest = self.newest and own is operator
        known = attribute_names(operator.name, operator.domain, self.opset)
        names = ["" if o is None else self.names[id(o)] for o in operands]
        if operator.commutative and len(names) == 2 and self.chance(self.spelling.swapped):
            names.reverse()
        attributes: dict[str, Any] = {}
        statics: dict[str, str] = {}
        for name, value in self._spelled(operator, operands, arguments, results).items():
            parameter = operator.parameter(name)
            assert parameter is not None
            if value is None:
                continue
            if parameter.kind == "attribute" if known is None else name in known:
                attributes[name] = _attribute(operator, name, value, self.spelling.dtype)
            elif parameter.kind == "static":
                dtype = np.float32 if name == "scales" else np.int64
                statics[name] = self.constant(np.asarray(value, dtype), self.fresh(name))
            else:
                raise NotWritable(f"{name} of {operator.kind} at opset {self.opset}")
        outputs = [self.fresh("v") for _ in results]
        inputs = names if any(p.variadic for p in own.parameters) else _placed(own, names, attributes, statics)
        least, most = input_counts(operator.name, operator.domain, self.opset) or (0, len(inputs))
        lost = inputs is not names and len(names) > len(own.tensors)
        if lost or "" in inputs[:least] or not least <= len(inputs) <= most:
            raise NotWritable(f"the operands of {operator.kind} at opset {self.opset}")
        told: dict[str, Any] = {name: value for name, value in attributes.items() if _is_told(value)}
        self.nodes.append(helper.make_node(operator.name, inputs, outputs, domain=operator.domain, **told))
        self.domains.add(operator.domain)
        cast = arguments["to"] if operator.name == "Cast" else None
        if cast == "wider" or (cast is None and any(map(self.is_wide, operands))):
            self.wide.update(outputs)
        for tensor, name in zip(results, outputs, strict=True):
            self.name(tensor, name)

    def _spelled(
        self, operator: Operator, operands: list[Tensor | None], arguments: Mapping[str, Any], results: list[Tensor]
    ) -> dict[str, Any]:
        """The arguments as one file or another would have them."""
        found = dict(arguments)
        rank = operands[0].rank if operands and operands[0] is not None else 0
        for p in operator.parameters:
            if p.kind == "attribute" and p.name not in found and self.chance(self.spelling.defaults):
                found[p.name] = _default(operator, p.name, p.default, operands, rank)
        if isinstance(found.get("axis"), int) and found["axis"] >= 0 and self.chance(self.spelling.negative_axes):
            found["axis"] -= rank
        if isinstance(found.get("axes"), list) and self.chance(self.spelling.negative_axes):
            total = rank + (len(found["axes"]) if operator.name == "Unsqueeze" else 0)
            found["axes"] = [a - total if a >= 0 and self.chance(0.5) else a for a in found["axes"]]
        if operator.name == "Pad" and found.get("axes") is not None and (self.opset < 18 or self.chance(0.5)):
            found = dict(widened(found, rank))
        if operator.name == "Cast" and isinstance(found["to"], str):
            to = "float32" if found["to"] == "wider" else self.spelling.dtype
            found["to"] = int(helper.np_dtype_to_tensor_dtype(np.dtype(to)))
        if operator.name == "Reshape" and operands[0] is not None:
            found["shape"] = self._target(list(found["shape"]), operands[0].shape)
        return found

    def _target(self, shape: list[int], source: tuple[Any, ...]) -> list[int]:
        target = list(shape)
        for k, n in enumerate(shape):
            if k < len(source) and source[k] == n and self.chance(self.spelling.reshape_targets):
                target[k] = 0
        if target and all(shape) and self.chance(self.spelling.reshape_targets):
            target[int(self.rng.integers(len(target)))] = -1
        return target


def _is_told(value: Any) -> bool:
    """A list without entries has no type that could be written."""
    return isinstance(value, str) or not hasattr(value, "__len__") or len(value) > 0


def _placed(own: Operator, names: list[str], attributes: Mapping[str, Any], statics: Mapping[str, str]) -> list[str]:
    waiting = iter(names)
    inputs: list[str] = []
    for p in own.parameters:
        if p.kind == "tensor":
            inputs.append(next(waiting, ""))
        elif p.kind == "static" and p.name not in attributes:
            inputs.append(statics.get(p.name, ""))
    while inputs and not inputs[-1]:
        inputs.pop()
    return inputs


def _default(operator: Operator, name: str, default: Any, operands: list[Tensor | None], rank: int) -> Any:
    """What an exporter writes where nothing had to be written."""
    spatial = rank - 2
    if name in ("strides", "dilations") and default is None and spatial > 0:
        return [1] * spatial
    if name == "kernel_shape" and len(operands) > 1 and operands[1] is not None and operator.name.endswith("Conv"):
        return list(operands[1].shape[2:])
    return default


def _attribute(operator: Operator, name: str, value: Any, dtype: str) -> Any:
    if operator.name == "ConstantOfShape":
        return numpy_helper.from_array(np.asarray([number_of(value)]).astype(dtype))
    parameter = operator.parameter(name)
    assert parameter is not None
    if isinstance(value, list | tuple | str):
        return value
    if isinstance(value, int) and not isinstance(parameter.default, float) and not _is_real(operator, name):
        return value
    return float(number_of(value))


def _is_real(operator: Operator, name: str) -> bool:
    """Whether ONNX has the attribute as a number with a fraction."""
    try:
        schema = onnx.defs.get_schema(operator.name, 24, operator.domain)
    except onnx.defs.SchemaError:
        return name in ("epsilon", "alpha", "scale")
    return schema.attributes[name].type == onnx.defs.OpSchema.AttrType.FLOAT
