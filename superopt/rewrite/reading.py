"""A node as rules see it: tensors, and arguments in one spelling, whatever the opset and the exporter wrote.

Attributes are filled in, axes count from the front, pads are numbers, the target of a Reshape is the shape it gives.
That is only a proposal: a node is readable when its formula under this spelling is the same as under its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.ir.graph import Node, Opaque, Value
from superopt.ir.tensor import Tensor as Weights
from superopt.ir.types import DType, TensorType
from superopt.ops.condition import Condition, deciding
from superopt.ops.evaluate import sized
from superopt.ops.formula import Illegal, NotCovered, Tensor, constant
from superopt.ops.index import Index, Poly, same
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.alike import alike
from superopt.rewrite.constants import Constants
from superopt.rewrite.numerals import decimal
from superopt.rewrite.sizes import Sizes, decide, dtype_of
from superopt.rewrite.spelling import canonical
from superopt.rewrite.stretching import Stretcher

_ABSENT_WHEN_EMPTY = frozenset({"roi", "scales", "sizes"})
"""Inputs of Resize: older opsets want the one before another written, if only as an empty list."""
NARROW_FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16})


class Undetermined(Exception):
    """A question about symbolic sizes that has no single answer."""


@dataclass(frozen=True)
class Reading:
    """A node in one spelling: its operator's newest definition, tensor operands in order, arguments by name."""

    operator: Operator
    operands: tuple[Value | None, ...]
    arguments: Mapping[str, Any]
    ranks: tuple[int, ...]
    """Of the operands that are there."""
    shape: tuple[Index, ...] = ()
    """Of the first operand."""

    @property
    def rank(self) -> int:
        """Of the first operand."""
        return self.ranks[0] if self.ranks else 0


def strictly(condition: Condition) -> bool:
    """Answers questions about sizes while a formula is built; open ones end it."""
    answer = decide(condition)
    if answer is None:
        raise Undetermined(f"it is not known whether {condition}")
    return answer


class Reader:
    """Reads the nodes of one model; each node once."""

    def __init__(
        self,
        registry: Registry,
        opset: int,
        constants: Constants,
        sizes: Sizes,
        own: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.registry, self.opset, self.constants, self.sizes = registry, opset, constants, sizes
        self.own = own
        """Operators that the model defines itself."""
        self.stretcher = Stretcher(opset, constants)
        self._read: dict[Node, Reading | str] = {}
        self._signatures: dict[tuple[object, ...], tuple[Reading | str, tuple[int | None, ...]]] = {}

    def read(self, node: Node) -> Reading | str:
        """The reading, or why there is none."""
        found = self._read.get(node)
        if found is None:
            found = self._read[node] = self._like_others(node)
        return found

    def _like_others(self, node: Node) -> Reading | str:
        """Nodes of one operator, attributes and types on the same constants read alike: a search makes many of them."""
        key = self._signature(node)
        if key is None:
            return self._attempt(node)
        known = self._signatures.get(key)
        if known is None:
            found = self._attempt(node)
            if isinstance(found, Reading) and not set(found.operands).issubset((None, *node.inputs)):
                return found  # some were expanded
            kept = () if isinstance(found, str) else tuple(v and node.inputs.index(v) for v in found.operands)
            self._signatures[key] = (found, kept)
            return found
        found, kept = known
        if isinstance(found, str):
            return found
        return replace(found, operands=tuple(None if k is None else node.inputs[k] for k in kept))

    def _signature(self, node: Node) -> tuple[object, ...] | None:
        """None where a dim is unknown: it is another unknown each time."""
        parts: list[object] = [node.op, node.domain, node.attributes, node.types]
        if any(not isinstance(t, TensorType) or t.shape is None or None in t.shape for t in node.types):
            return None
        for value in node.inputs:
            type_ = None if value is None else value.tensor_type
            if value is not None and (type_ is None or type_.shape is None or None in type_.shape):
                return None
            parts.append(value if value is not None and value.constant is not None else type_)
        distinct = dict.fromkeys(v for v in node.inputs if v is not None)
        return (*parts, tuple(list(distinct).index(v) if v is not None else -1 for v in node.inputs))

    def version(self, op: str, domain: str) -> Operator | None:
        """The definition that the model's opset means; none of an operator that the model defines itself."""
        return None if (domain, op) in self.own else self.registry.find(op, domain, None if domain else self.opset)

    def _attempt(self, node: Node) -> Reading | str:
        newest, own = self.registry.find(node.op, node.domain), self.version(node.op, node.domain)
        if newest is None or own is None:
            return f"{node.kind} has no formula at opset {self.opset}"
        try:
            operands, raw = self._raw(node, own)
            shapes = tuple(None if v is None else self.sizes.shape(v) for v in operands)
            if any(v is not None and s is None for v, s in zip(operands, shapes, strict=True)):
                return f"an operand of {node.kind} has an unknown rank"
            results = tuple(self.sizes.shape(v) for v in node.outputs)
            known = None in operands or any(v is not None and self.constants.tensor(v) is not None for v in operands)
            fills = tuple(None if v is None or not known else self.constants.fill(v) for v in operands)
            spelled = canonical(newest, raw, shapes, results, fills)
            if node.op == "Cast" and (word := _cast_in_words(node)):
                spelled = replace(spelled, arguments={**spelled.arguments, "to": word})
            kept = tuple(v if k not in spelled.dropped else None for k, v in enumerate(operands))
            with deciding(strictly):
                problem = self._same_meaning(node, own, raw, operands, newest, spelled.arguments, kept)
        except (Illegal, NotCovered, Undetermined, ZeroDivisionError) as error:
            return f"{node.kind}: {error}"
        ranks = tuple(len(s) for s, v in zip(shapes, kept, strict=True) if s is not None and v is not None)
        first = (shapes[0] if shapes else None) or ()
        return problem or Reading(newest, _without_trailing_none(kept), spelled.arguments, ranks, first)

    def _raw(self, node: Node, operator: Operator) -> tuple[tuple[Value | None, ...], dict[str, Any]]:
        """Tensor operands and the node's own arguments: attributes, and inputs whose value must be known."""
        arguments: dict[str, Any] = {}
        for name, value in node.attributes:
            if isinstance(value, Opaque) or operator.parameter(name) is None:
                raise NotCovered(f"attribute {name}")
            arguments[name] = _plain(value)
        if any(p.variadic for p in operator.parameters):
            return node.inputs, arguments
        inputs = self.stretcher.operands(node)
        positional = [p for p in operator.parameters if p.kind != "attribute" and p.name not in arguments]
        if len(inputs) > len(positional):
            raise NotCovered(f"{len(inputs)} inputs")
        operands: list[Value | None] = []
        for p, value in zip(positional, inputs, strict=False):
            if p.kind == "tensor":
                operands.append(value)
            elif value is not None:
                arguments[p.name] = self._static(p.name, value, node)
        return tuple(operands), arguments

    def _static(self, name: str, value: Value, node: Node) -> Any:
        found = self.constants.integers(value)
        if found is not None:
            type_ = value.tensor_type
            if not found and name in _ABSENT_WHEN_EMPTY:
                return None
            if type_ is not None and type_.rank == 0:
                return found[0]
            if type_ is not None and type_.rank is not None and type_.rank > 1:
                tensor = self.constants.tensor(value)
                assert tensor is not None
                return tensor.numpy().tolist()
            return found
        if name == "shape":  # a Reshape or Expand is told by the shape it gives
            shape = self.sizes.shape(node.outputs[0])
            if shape is not None:
                return list(shape)
        raise NotCovered(f"the value of {name} is not known")

    def _same_meaning(
        self,
        node: Node,
        own: Operator,
        raw: Mapping[str, Any],
        operands: tuple[Value | None, ...],
        newest: Operator,
        arguments: Mapping[str, Any],
        kept: tuple[Value | None, ...],
    ) -> str:
        """Empty when both spellings give one formula, and the shapes that the node's types say."""
        tensors = [self._tensor(k, v) for k, v in enumerate(operands)]
        pairs = zip(own.tensors, operands, strict=False)
        told = {p.name: str(dtype_of(v)) for p, v in pairs if v is not None}
        types = told if own.name == "Cast" else {name: "bool" for name, kind in told.items() if kind == "bool"}
        if any(isinstance(v, Fraction) for v in raw.values()):  # definitions refuse some numbers, and look for floats
            own.apply(tensors, {k: float(v) if isinstance(v, Fraction) else v for k, v in raw.items()}, len(node.types))
        before = own.apply(tensors, raw, len(node.types), types)
        for result, value in zip(before, node.outputs, strict=False):
            if not self._fits(result, value):
                return f"{node.kind}: its formula gives another shape than its type says"
        if own is newest and _identical(dict(raw), dict(arguments)) and kept == operands and not types:
            return ""
        fewer = [None if kept[k] is None else t for k, t in enumerate(tensors)]
        after = newest.apply(fewer, arguments, len(node.types))
        same = len(before) == len(after) and all(alike(a, b) for a, b in zip(before, after, strict=True))
        return "" if same else f"{node.kind}: its attributes have no plain spelling"

    def _fits(self, result: Tensor, value: Value) -> bool:
        """Where the type names a number, the formula must give that number."""
        shape = self.sizes.shape(value)
        if shape is None:
            return True
        if len(shape) != result.rank:
            return False
        pairs = zip(result.shape, shape, strict=True)
        return all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))

    def _tensor(self, position: int, value: Value | None) -> Tensor | None:
        if value is None:
            return None
        shape = self.sizes.shape(value)
        assert shape is not None
        fill = self.constants.fill(value)
        if fill is not None and math.isfinite(fill):
            return constant(exact(fill, value), shape)
        return _access(f"x{position}", shape)


def _identical(a: Any, b: Any) -> bool:
    """Written the same; sizes that are equal only for some values of their symbols are not."""
    if isinstance(a, Poly) or isinstance(b, Poly):
        return isinstance(a, int | Poly) and isinstance(b, int | Poly) and same(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_identical(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_identical, a, b))
    return type(a) is type(b) and bool(np.all(a == b))


def _cast_in_words(cast: Node) -> str:
    """`wider` or `narrower`, between float32 and types that it holds; its formula tells whether that says it all."""
    given = cast.inputs[0]
    before, after = None if given is None else dtype_of(given), dtype_of(Value(cast))
    if before is after or (before in NARROW_FLOATS and after is DType.FLOAT32):
        return "wider"
    return "narrower" if before is DType.FLOAT32 and after in NARROW_FLOATS else ""


def _access(name: str, shape: tuple[Index, ...]) -> Tensor:
    return sized(shape, name)  # pyright: ignore[reportArgumentType]


def exact(number: float | int, value: Value) -> Fraction | int | float:
    """A number as people would write it: the shortest decimal that its type rounds to it."""
    if isinstance(number, int):
        return number
    return decimal(number, str(dtype_of(value)))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotCovered("an attribute that is no finite number")
        return decimal(value)
    if isinstance(value, Weights):
        return value.numpy()
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _without_trailing_none(operands: tuple[Value | None, ...]) -> tuple[Value | None, ...]:
    while operands and operands[-1] is None:
        operands = operands[:-1]
    return operands
