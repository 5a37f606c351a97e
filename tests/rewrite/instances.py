# pyright: basic
"""Models that are a rule's left side at small random sizes: what the rule is about, written as a file would have it.

The rule's own program runs with drawn numbers where a proof has symbols, and every call it makes becomes a node. How
nodes are written follows the opset; a `Spelling` adds what exporters do: defaults written out, axes from the back,
targets with 0 and −1, numbers with axes, operands in the other order, dims without a size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from superopt.ir.onnx.schema import attribute_names, input_counts
from superopt.ops.condition import Condition
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.expression import evaluate
from superopt.rewrite.numerals import number_of
from superopt.rewrite.program import Impossible, Program, RealFact, block_ranks, find
from superopt.rewrite.rule import Call, Number, Operand, Rule
from superopt.rewrite.spelling import widened

IR_VERSION = 8
TRIES = 200
MOST_ELEMENTS = 1 << 14


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


@dataclass(frozen=True)
class Instance:
    """A model, what to run it with, and the node where the rule's first root is."""

    rule: Rule
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    opset: int
    newest: bool
    """Whether every operator means at this opset what its newest definition says, which is what rules are about."""
    shapes: dict[str, tuple[int, ...]]
    """Of every value, by name."""

    @property
    def data(self) -> bytes:
        return self.model.SerializeToString()


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, positive: bool = False) -> np.ndarray:
    """Ordinary numbers, or such that logarithms and roots of them exist."""
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    drawn = rng.uniform(0.3, 1.5, shape) if positive else rng.standard_normal(shape)
    return np.asarray(drawn).astype(dtype)


@dataclass
class Drawn:
    """Unknowns as small numbers."""

    rng: np.random.Generator
    least: int = 1

    def positive(self, name: str) -> int:
        return int(self.rng.integers(self.least, 5))

    def natural(self, name: str) -> int:
        return int(self.rng.integers(0, 4))

    def real(self, name: str) -> Fraction:
        eighths = int(self.rng.integers(1, 13))
        return Fraction(-eighths if self.rng.random() < 0.15 else eighths, 8)

    def choose(self, count: int) -> int:
        return int(self.rng.integers(count))

    def assume(self, condition: Condition | bool) -> None:
        if not condition:
            raise Impossible("drawn otherwise")

    def assume_real(self, fact: RealFact) -> None:
        raise Impossible("drawn otherwise")


@dataclass
class _Writer:
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
    newest: bool = True
    counter: int = 0

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

    def number(self, value: Any) -> str:
        shape = (1,) if self.chance(self.spelling.number_axes) else ()
        array = np.full(shape, number_of(value)).astype(self.spelling.dtype)
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
        self.nodes.append(helper.make_node(operator.name, inputs, outputs, domain=operator.domain, **attributes))
        self.domains.add(operator.domain)
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


class _Written(Program):
    """A rule's program that writes what it calls."""

    writer: _Writer

    def _operand(self, operand: Operand, values: Mapping[str, Tensor]) -> Tensor | None:
        tensor = super()._operand(operand, values)
        if tensor is not None and id(tensor) not in self.writer.names:
            number = self.names[operand] if isinstance(operand, str) else None
            self.writer.name(tensor, self.writer.number(_expression(operand, number, self.names)))
        return tensor

    def _call(self, call: Call, values: Mapping[str, Tensor], outputs: int) -> tuple[Tensor, ...]:
        operator = find(call, self.registry)
        operands = [self._operand(o, values) for o in call.operands]
        arguments = {name: self._argument(value) for name, value in call.arguments}
        if call.bundle is not None:
            ranks = tuple(o.rank for o in operands if o is not None)
            arguments = {**self._bundle(call.bundle, operator, ranks, set(arguments)), **arguments}
        results = operator.apply(operands, arguments, outputs)[:outputs]
        for tensor in results:
            if min(_sizes(tensor), default=0) < 0 or math.prod(_sizes(tensor)) > MOST_ELEMENTS:
                raise Impossible("no size that is fun to run")
        self.writer.call(operator, operands, arguments, list(results))
        return results


def _expression(operand: Operand, number: Any, names: Mapping[str, Any]) -> Any:
    return evaluate(operand.expression, names) if isinstance(operand, Number) else number


def instances(
    rule: Rule,
    registry: Registry,
    opset: int,
    spelling: Spelling = PLAIN,
    *,
    wanted: int = 1,
    seed: int = 0,
    every: bool = True,
) -> Iterator[Instance]:
    """Instances for each number of axes of the rule's blocks, or for one, `wanted` of each where there are so many."""
    all_ranks = block_ranks(rule)
    for ranks in all_ranks if every else [all_ranks[(seed + 1) % len(all_ranks)]]:
        found = 0
        for attempt in range(wanted * TRIES):
            try:
                made = instance(rule, registry, opset, spelling, ranks, [seed, attempt, *ranks.values()])
            except (Impossible, Illegal, NotCovered, NotWritable, ZeroDivisionError):
                continue
            yield made
            found += 1
            if found == wanted:
                break


def instance(
    rule: Rule, registry: Registry, opset: int, spelling: Spelling, ranks: Mapping[str, int], seeds: list[int]
) -> Instance:
    """One draw; raises where the numbers drawn are not legal, or the opset lacks an operator."""
    rng = np.random.default_rng(seeds)
    writer = _Writer(registry, opset, spelling, rng)
    program = _Written(rule, registry, Drawn(rng, spelling.least))
    program.writer = writer
    program.start(ranks)
    positive = bool(rng.random() < 0.5)
    infos: list[onnx.ValueInfoProto] = []
    feeds: dict[str, np.ndarray] = {}
    for given in rule.given:
        if given.kind not in ("tensor", "bool"):
            continue
        tensor = program.inputs[given.name]
        shape = _sizes(tensor)
        dtype = np.dtype("bool" if given.kind == "bool" else spelling.dtype)
        array = values(rng, shape, dtype, positive)
        writer.name(tensor, given.name)
        if feeds and writer.chance(spelling.weights):
            writer.constant(array, given.name)
            continue
        feeds[given.name] = array
        dims = [f"{given.name}_{k}" if writer.chance(spelling.symbolic) else n for k, n in enumerate(shape)]
        infos.append(helper.make_tensor_value_info(given.name, helper.np_dtype_to_tensor_dtype(dtype), dims))
    left = program.run(rule.left)
    program.refuse_unused_conditions()
    model = _model(rule, writer, infos, left)
    shapes = {name: _sizes(tensor) for name, tensor in writer.kept.items()}
    return Instance(rule, model, feeds, opset, writer.newest, shapes)


def _model(
    rule: Rule, writer: _Writer, infos: list[onnx.ValueInfoProto], left: Mapping[str, Tensor]
) -> onnx.ModelProto:
    ranks = {writer.names[id(left[name])]: left[name].rank for name in rule.results}
    code = helper.np_dtype_to_tensor_dtype(np.dtype(writer.spelling.dtype))
    outputs = [helper.make_tensor_value_info(name, code, [None] * rank) for name, rank in ranks.items()]
    graph = helper.make_graph(writer.nodes, rule.name, infos, outputs, writer.initializers)
    domains = {"": writer.opset, **{d: 1 for d in sorted(writer.domains) if d}}
    imports = [helper.make_opsetid(d, v) for d, v in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
