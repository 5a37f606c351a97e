"""Both sides of a rule as graphs, at sizes drawn at random: what rewriting may be tried on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from superopt.generate.trial import NOT_A_RULE
from superopt.ir.graph import Constant, Value, make_parameter
from superopt.ir.tensor import Array, ArrayTensor, Tensor
from superopt.ir.types import DType, TensorType
from superopt.ops.condition import Condition
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.found import Match
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.piece import Piece, Tag, new_nodes
from superopt.rewrite.program import Impossible, Program, RealFact, block_ranks
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import Rule

TRIES = 60
LARGE = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Sizes that are different where names differ, so that nothing fits by chance."""


@dataclass(frozen=True)
class Situation:
    start: Piece
    """The left side."""
    goal: tuple[Value, ...]
    """The results of the right side."""


class Unseen(Tensor):
    """A weight of which nothing but the type is known."""

    @property
    def readable(self) -> bool:
        return False

    def chunks(self) -> Iterator[bytes | memoryview]:
        raise TypeError(f"a weight of which only the type is known, {self.type}, has no content")

    def numpy(self) -> Array:
        raise TypeError(f"a weight of which only the type is known, {self.type}, has no value")


@dataclass
class _Drawn:
    rng: Random
    sizes: list[int]

    def positive(self, name: str) -> int:
        """Entries of bundles, such as strides, are small; sizes are different, or small as well."""
        return self.sizes.pop() if self.sizes and "." not in name else self.rng.choice((1, 2, 2, 3, 4))

    def natural(self, name: str) -> int:
        return self.rng.choice((0, 1, 1, 2))

    def real(self, name: str) -> Fraction:
        return Fraction(self.rng.choice((-1, 1, 1, 1)) * self.rng.randrange(3, 60), 16)

    def choose(self, count: int) -> int:
        return self.rng.randrange(count)

    def assume(self, condition: Condition | bool) -> None:
        if not condition:
            raise Impossible("drawn otherwise")

    def assume_real(self, fact: RealFact) -> None:
        raise Impossible("drawn otherwise")


def situations(
    rule: Rule, rewriter: Rewriter, *, wanted: int, seed: int = 0, weights: bool = False
) -> Iterator[Situation]:
    """`wanted` for each number of axes of the rule's blocks, where so many are found. With `weights`, all inputs but
    the first are known before the model runs."""
    for ranks in block_ranks(rule):
        found = 0
        for attempt in range(TRIES):
            rng = Random(f"{seed} {attempt} {sorted(ranks.items())}")
            sizes: list[int] = list(LARGE) if attempt % 2 == 0 else []
            rng.shuffle(sizes)
            made = _situation(rule, rewriter, ranks, _Drawn(rng, sizes), weights)
            if made is None:
                continue
            yield made
            found += 1
            if found == wanted:
                break


def _situation(
    rule: Rule, rewriter: Rewriter, ranks: Mapping[str, int], drawn: _Drawn, weights: bool
) -> Situation | None:
    registry = rewriter.reader.registry
    program = Program(rule, registry, drawn)
    try:
        program.start(ranks)
        program.run(rule.left)
        program.run(rule.right)
        program.refuse_unused_conditions()
        inputs = _inputs(rule, program, weights)
        match = Match(
            compile_pattern(rule, registry), (), inputs, {}, program.names, DType.FLOAT32, dict(program.inputs)
        )
        left, right = (rewriter.emitter.side(steps, match) for steps in (rule.left, rule.right))
    except (Conflict, *NOT_A_RULE):
        return None
    return Situation(_piece(tuple(left[r] for r in rule.results), rewriter), tuple(right[r] for r in rule.results))


def _inputs(rule: Rule, program: Program, weights: bool) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for given in rule.given:
        if not given.is_tensor:
            continue
        shape: tuple[Any, ...] = program.inputs[given.name].shape
        dtype = DType.BOOL if given.kind == "bool" else DType.FLOAT32
        if given.kind in ("positive", "finite"):
            array = np.linspace(1, 2, math.prod(shape), dtype=np.float32).reshape(shape)
            found[given.name] = Value(Constant(ArrayTensor(array)))
        elif weights and found:
            found[given.name] = Value(Constant(Unseen(dtype, shape)))
        else:
            found[given.name] = Value(make_parameter(len(found), TensorType(dtype, shape)))
    return found


def _piece(results: tuple[Value, ...], rewriter: Rewriter) -> Piece:
    bare = Piece(results, {}, {}, rewriter.constants)
    nodes = new_nodes(results, bare)
    names = {node: tuple(f"v{k}.{i}" for i in range(len(node.outputs))) for k, node in enumerate(nodes)}
    tags = {node: Tag(names[node], k) for k, node in enumerate(nodes)}
    called = {name: value for node in nodes for name, value in zip(names[node], node.outputs, strict=True)}
    return Piece(results, tags, called, rewriter.constants)
