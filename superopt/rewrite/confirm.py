"""Whether a rule holds where its left side was found: its own program, run on what was bound, must give the shapes that
the graph has and meet every condition, and its proof must cover the sizes, axes and numbers that there are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from superopt.ir.graph import Node, Value
from superopt.ir.types import DType
from superopt.ops.condition import Condition, deciding
from superopt.ops.formula import Tensor
from superopt.ops.index import same
from superopt.ops.registry import Registry
from superopt.rewrite.bind import Bindings
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.found import Match
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.program import Program, RealFact, Source, block_ranks, find
from superopt.rewrite.reading import strictly
from superopt.rewrite.sizes import Sizes, decide, dtype_of


def confirmed(pattern: Pattern, bound: Bindings, registry: Registry, sizes: Sizes) -> Match:
    """It raises what says why not."""
    names = bound.settled(pattern.rule)
    _refuse_unproved_ranks(pattern, names)
    dtype = bound.dtype or _made_of_truths(bound)
    if dtype is None:
        raise Conflict("the element type is not known")
    if not dtype.is_float and any(find(c, registry).elements == "real" for c in pattern.rule.calls):
        raise Conflict(f"the rule holds for real numbers, the elements are {dtype}")
    tensors = _run_left(pattern, bound, names, registry, sizes)
    _refuse_loops(pattern, bound)
    nodes = tuple(bound.nodes[k] for k in range(len(pattern.nodes)))
    return Match(pattern, nodes, dict(bound.inputs), dict(bound.coerced), names, dtype, tensors)


def _made_of_truths(bound: Bindings) -> DType | None:
    """Where no input or number tells: the one type of what the left side makes of truths."""
    made = {dtype_of(value) for node in bound.nodes.values() for value in node.outputs} - {DType.BOOL}
    return made.pop() if len(made) == 1 else None


def _run_left(
    pattern: Pattern, bound: Bindings, names: Mapping[str, Any], registry: Registry, sizes: Sizes
) -> dict[str, Tensor]:
    rule = pattern.rule
    made: list[Tensor] = []

    def keep(_: str, tensor: Tensor) -> Tensor:
        made.append(tensor)
        return tensor

    program = Program(rule, registry, Bound(names), keep, dict(names))
    with deciding(strictly):
        _refuse_unproved_sizes(pattern, names, program.source)
        program.start({block: names[f"|{block}|"] for block in rule.blocks})
        tensors = program.run(rule.left)
        for reference, tensor in zip(pattern.made, made, strict=True):
            _compare(tensor, bound.nodes[reference.node], reference.output, sizes)
        program.refuse_unused_conditions()
    return tensors


def _compare(tensor: Tensor, node: Node, output: int, sizes: Sizes) -> None:
    """Every value on the way must have the shape that the rule gives it, or constants are larger than it says."""
    if output >= len(node.outputs):
        raise Conflict(f"{node.kind} has fewer results here than in the rule")
    shape = sizes.shape(Value(node, output))
    if shape is None or len(shape) != tensor.rank:
        raise Conflict(f"a result of {node.kind} has another rank than the rule gives it")
    for found, expected in zip(shape, tensor.shape, strict=True):
        if isinstance(found, int) and not same(found, expected):
            raise Conflict(f"a result of {node.kind} has another shape than the rule gives it")


def _refuse_loops(pattern: Pattern, bound: Bindings) -> None:
    """With several results, an input may depend on one of them; computing them together would go in circles."""
    if len(pattern.roots) < 2:
        return
    made = {bound.nodes[root] for root in pattern.roots}
    seen: set[Node] = set()
    stack = [v.node for v in bound.inputs.values() if v.node is not None]
    while stack:
        node = stack.pop()
        if node in made:
            raise Conflict("an input depends on one of the results")
        if node in seen:
            continue
        seen.add(node)
        stack += [v.producer for v in node.operands if isinstance(v.producer, Node)]


def _refuse_unproved_sizes(pattern: Pattern, names: Mapping[str, Any], source: Source) -> None:
    """Proofs are about sizes of at least 1, whole numbers of at least 0, and numbers that are finite."""
    rule = pattern.rule
    for size in (*(names.get(s, 1) for s in rule.sizes), *(n for block in rule.blocks for n in names[block])):
        source.assume(size >= 1)
    for given in rule.given:
        value = names.get(given.name, 0)
        if isinstance(value, list):
            raise Conflict(f"{given.name} is {value}, expected one number")
        if given.kind == "int":
            source.assume(value >= 0)
        elif given.kind == "real" and not (isinstance(value, int | Fraction) or math.isfinite(value)):
            raise Conflict(f"{given.name} is {value}")


def _refuse_unproved_ranks(pattern: Pattern, names: Mapping[str, Any]) -> None:
    """Proofs went through blocks of some numbers of axes, and say nothing of others."""
    found = {block: names[f"|{block}|"] for block in pattern.rule.blocks}
    if found and found not in block_ranks(pattern.rule):
        raise Conflict(f"proved for fewer axes than {', '.join(f'{k} {b}' for b, k in found.items())}")


class Bound:
    """Hands out what was bound, where a proof hands out symbols."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def positive(self, name: str) -> Any:
        raise Conflict(f"{name} is not determined by the pattern")

    natural = real = positive

    def choose(self, count: int) -> int:
        raise Conflict("attributes are not determined by the pattern")

    def assume(self, condition: Condition | bool) -> None:
        holds = decide(condition)
        if holds is not True:
            raise Conflict(f"it is not so, or not known, that {condition}")

    def assume_real(self, fact: RealFact) -> None:
        raise Conflict(f"{fact.name} is not determined by the pattern")
