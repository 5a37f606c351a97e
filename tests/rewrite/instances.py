# pyright: basic
"""Models that are a rule's left side at small random sizes: what the rule is about, written as a file would have it.

The rule's own program runs with drawn numbers where a proof has symbols, and every call it makes becomes a node. How
nodes are written follows the opset; a `Spelling` adds what exporters do: defaults written out, axes from the back,
targets with 0 and −1, numbers with axes, operands in the other order, dims without a size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import helper

from superopt.ops.condition import Condition
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.expression import evaluate
from superopt.rewrite.program import Impossible, Program, RealFact, block_ranks, find
from superopt.rewrite.rule import Call, Number, Operand, Rule
from tests.rewrite.writer import PLAIN, NotWritable, Spelling, Writer

IR_VERSION = 8
TRIES = 200
MOST_ELEMENTS = 1 << 14


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


class _Written(Program):
    """A rule's program that writes what it calls."""

    writer: Writer

    def _operands(self, call: Call, values: Mapping[str, Tensor]) -> list[Tensor | None]:
        """Numbers last: they are of the type of what they meet."""
        numbers = [isinstance(o, Number) or (isinstance(o, str) and o not in values) for o in call.operands]
        found = [
            None if is_number else self._operand(o, values) for o, is_number in zip(call.operands, numbers, strict=True)
        ]
        wide = any(map(self.writer.is_wide, found))
        for k, (operand, is_number) in enumerate(zip(call.operands, numbers, strict=True)):
            if is_number:
                found[k] = tensor = self._operand(operand, values)
                assert tensor is not None
                number = self.names[operand] if isinstance(operand, str) else None
                text = self.writer.number(_expression(operand, number, self.names), wide=wide)
                self.writer.name(tensor, text)
        return found

    def _call(self, call: Call, values: Mapping[str, Tensor], outputs: int) -> tuple[Tensor, ...]:
        operator = find(call, self.registry)
        operands = self._operands(call, values)
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
    if any(call.casts("wider") for call in rule.calls):
        spelling = replace(spelling, dtype="float16")
    writer = Writer(registry, opset, spelling, rng)
    program = _Written(rule, registry, Drawn(rng, spelling.least))
    program.writer = writer
    program.start(ranks)
    positive = bool(rng.random() < 0.5)
    infos: list[onnx.ValueInfoProto] = []
    feeds: dict[str, np.ndarray] = {}
    for given in rule.given:
        if not given.is_tensor:
            continue
        tensor = program.inputs[given.name]
        shape = _sizes(tensor)
        dtype = np.dtype("bool" if given.kind == "bool" else spelling.dtype)
        array = values(rng, shape, dtype, positive or given.kind == "positive")
        writer.name(tensor, given.name)
        if given.kind in ("positive", "finite") or (feeds and writer.chance(spelling.weights)):
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


def _model(rule: Rule, writer: Writer, infos: list[onnx.ValueInfoProto], left: Mapping[str, Tensor]) -> onnx.ModelProto:
    ranks = {writer.names[id(left[name])]: left[name].rank for name in rule.results}
    code = helper.np_dtype_to_tensor_dtype(np.dtype(writer.spelling.dtype))
    outputs = [helper.make_tensor_value_info(name, code, [None] * rank) for name, rank in ranks.items()]
    graph = helper.make_graph(writer.nodes, rule.name, infos, outputs, writer.initializers)
    domains = {"": writer.opset, **{d: 1 for d in sorted(writer.domains) if d}}
    imports = [helper.make_opsetid(d, v) for d, v in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
