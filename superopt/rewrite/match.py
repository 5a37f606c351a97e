"""Where a rule's left side occurs in a graph, and if not, why not.

A match binds the rule's inputs to values, its sizes to numbers or symbols, its attributes to what the nodes say, and is
only returned where it is confirmed (confirm.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from superopt.ir.graph import Node, Value, make_node
from superopt.ir.types import DType
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.index import Index
from superopt.ops.registry import Registry
from superopt.rewrite.bind import Bindings
from superopt.rewrite.confirm import confirmed
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.constants import Constants
from superopt.rewrite.expression import evaluate
from superopt.rewrite.found import Match
from superopt.rewrite.numerals import number_of, rounds_to
from superopt.rewrite.pattern import Climb, Input, Pattern, PatternNode, Result, Scalar
from superopt.rewrite.program import Impossible
from superopt.rewrite.reading import Reader, Reading, Undetermined, exact
from superopt.rewrite.rule import Block, Given
from superopt.rewrite.sizes import Sizes, dtype_of
from superopt.rewrite.synonyms import stands_for


class Surroundings(Protocol):
    """The graph around a node."""

    def reading(self, value: Value) -> list[Node]:
        """The nodes that read a value, in the graph's order."""
        ...

    def turn(self, node: Node) -> tuple[tuple[int, ...], int]:
        """When it comes among others that are like it; no two are equal."""
        ...


@dataclass(frozen=True)
class Mismatch:
    """Why a rule does not fit at a node; `depth` counts what had fitted until then."""

    reason: str
    depth: int = 0
    nodes: tuple[Node, ...] = ()
    """The nodes that it is about: those that had fitted, and the one that did not."""


@dataclass
class Matcher:
    """Looks for patterns among the nodes of one model."""

    registry: Registry
    reader: Reader
    constants: Constants
    sizes: Sizes
    reasons: list[Mismatch] | None = None
    """Filled when somebody wants to know why not."""
    _begun: dict[tuple[str, Node], list[Bindings]] = field(default_factory=dict[tuple[str, Node], list[Bindings]])

    def matches(
        self, pattern: Pattern, node: Node, around: Surroundings, *, any_order: bool = False
    ) -> Iterator[Match]:
        """All matches with the pattern's first root at `node`; those that differ by the order of roots which are alike
        once, or in `any_order`."""
        if not pattern.roots or not stands_for(node, pattern.anchor.call.op, pattern.anchor.call.domain):
            return
        for bound in self.begun(pattern, node):
            for whole in self._further_roots(pattern, 0, bound, around, any_order):
                match = self._verified(pattern, whole)
                if match is not None:
                    yield match

    def begun(self, pattern: Pattern, node: Node) -> Iterable[Bindings]:
        """With the pattern's first root at `node`. A node is hash-consed with all that it reads, so that this never
        changes; what there is of further roots does."""
        alone = len(pattern.roots) == 1
        if alone or self.reasons is not None:
            return self._node(pattern, pattern.roots[0], node, Bindings())
        key = (pattern.rule.name, node)
        found = self._begun.get(key)
        if found is None:
            found = self._begun[key] = list(self._node(pattern, pattern.roots[0], node, Bindings()))
        return found

    def _further_roots(
        self, pattern: Pattern, k: int, bound: Bindings, around: Surroundings, any_order: bool
    ) -> Iterator[Bindings]:
        if k == len(pattern.climbs):
            yield bound
            return
        climb = pattern.climbs[k]
        taken = [bound.nodes[root] for root in pattern.roots[: k + 1]]
        earlier = None if any_order else pattern.twins[k + 1]
        after = None if earlier is None else around.turn(bound.nodes[earlier])
        others = [n for n in self._climbed(pattern, climb, bound, around) if n not in taken]
        if not others:
            self._note(bound, f"no further {pattern.nodes[climb.steps[-1]].call.op} reads the same")
        for candidate in others:
            if after is not None and around.turn(candidate) <= after:
                continue
            for further in self._node(pattern, climb.steps[-1], candidate, bound):
                yield from self._further_roots(pattern, k + 1, further, around, any_order)

    def _climbed(self, pattern: Pattern, climb: Climb, bound: Bindings, around: Surroundings) -> list[Node]:
        if isinstance(climb.start, Input):
            values = [bound.inputs[climb.start.name]]
        else:
            values = [Value(bound.nodes[climb.start.node], climb.start.output)]
        nodes: list[Node] = []
        for step in climb.steps:
            call = pattern.nodes[step].call
            nodes = [n for v in values for n in around.reading(v) if stands_for(n, call.op, call.domain)]
            nodes = list(dict.fromkeys(nodes))
            values = [v for n in nodes for v in n.outputs]
        return nodes

    def _node(self, pattern: Pattern, index: int, node: Node, bound: Bindings) -> Iterator[Bindings]:
        """The pattern's node at a graph node, under what is bound already."""
        if index in bound.nodes:
            if bound.nodes[index] is node:
                yield bound
            return
        want = pattern.nodes[index]
        if not stands_for(node, want.call.op, want.call.domain):
            self._note(bound, f"expected {want.call.op}, found {node.kind}", node)
            return
        reading = self.reader.read(node)
        if isinstance(reading, str):
            self._note(bound, reading, node)
            return
        try:
            bound = bound.with_node(index, node).with_written(want, reading)
        except (Conflict, ZeroDivisionError) as conflict:
            self._note(bound, str(conflict), node)
            return
        for operands in self._orders(want, reading):
            yield from self._operands(pattern, want, reading, operands, 0, bound)

    def _orders(self, want: PatternNode, reading: Reading) -> Iterator[tuple[Value | None, ...]]:
        operands = reading.operands
        if len(operands) > len(want.operands):
            return
        operands = (*operands, *(None for _ in range(len(want.operands) - len(operands))))
        yield operands
        if want.operator.commutative and len(operands) == 2 and operands[0] != operands[1]:
            yield operands[::-1]

    def _operands(
        self,
        pattern: Pattern,
        want: PatternNode,
        reading: Reading,
        operands: tuple[Value | None, ...],
        k: int,
        bound: Bindings,
    ) -> Iterator[Bindings]:
        if k == len(operands):
            try:
                yield bound.with_others(want, reading)
            except Conflict as conflict:
                self._note(bound, str(conflict))
            return
        for further in self._operand(pattern, want, k, operands[k], bound):
            yield from self._operands(pattern, want, reading, operands, k + 1, further)

    def _operand(
        self, pattern: Pattern, want: PatternNode, k: int, value: Value | None, bound: Bindings
    ) -> Iterator[Bindings]:
        reference = want.operands[k]
        if reference is None or value is None:
            if reference is None and value is None:
                yield bound
            else:
                self._note(bound, f"{want.call.op} has {'no' if value is None else 'an'} operand {k}")
            return
        if isinstance(reference, Result):
            node = value.node or self._unfolded(pattern, pattern.nodes[reference.node], value)
            if node is None or value.index != reference.output:
                self._note(
                    bound, f"operand {k} of {want.call.op} comes from no {pattern.nodes[reference.node].call.op}"
                )
                return
            yield from self._node(pattern, reference.node, node, bound)
            return
        try:
            if isinstance(reference, Scalar):
                yield self._number(reference, value, bound, want.is_wide)
            else:
                yield from self._input(pattern.given[reference.name], value, bound)
        except (Conflict, ZeroDivisionError) as conflict:
            self._note(bound, str(conflict))

    def _unfolded(self, pattern: Pattern, want: PatternNode, value: Value) -> Node | None:
        """The Concat of a constant's repeated part, where a rule wants one and folding has left the constant alone."""
        repeated = want.repeats
        if repeated is None:
            return None
        dims = pattern.given[repeated.name].dims
        rank = None if any(isinstance(dim, Block) for dim in dims) else len(dims)
        part = self.constants.repeated(value, len(want.operands), rank)
        shape = None if part is None else self.sizes.shape(part)
        if part is None or not shape:
            return None
        whole = self.sizes.type(dtype_of(value), (*shape[:-1], len(want.operands) * shape[-1]))
        return make_node("Concat", [part] * len(want.operands), {"axis": len(shape) - 1}, [whole])

    def _number(self, reference: Scalar, value: Value, bound: Bindings, is_wide: bool) -> Bindings:
        fill = self.constants.fill(value)
        if fill is None:
            raise Conflict(f"expected the number {reference.number}, found no constant that holds one number")
        dtype = _element_type(value)
        bound = bound if is_wide and dtype.is_float else bound.with_dtype(dtype)
        if isinstance(reference.number, str):
            return bound.with_name(reference.number, exact(fill, value))
        expression = reference.number.expression
        return bound.with_demand(
            lambda names: rounds_to(fill, number_of(evaluate(expression, names)), str(dtype_of(value))),
            expression,
            f"expected the number {expression}, found {fill:g}",
        )

    def _input(self, given: Given, value: Value, bound: Bindings) -> Iterator[Bindings]:
        if given.name in bound.inputs:
            if bound.inputs[given.name] != value:
                raise Conflict(f"{given.name} stands for two different values")
            yield bound
            return
        dtype = dtype_of(value)
        if given.kind == "bool":
            if dtype is not DType.BOOL:
                raise Conflict(f"{given.name} must be boolean, is {dtype}")
        else:
            bound = bound.with_dtype(_element_type(value))
        if given.kind == "positive" and not self.constants.is_positive(value):
            raise Conflict(f"{given.name} is no constant whose elements are all above 0")
        if given.kind == "finite" and not (self.constants.is_weight(value) and self.constants.finite.holds(value)):
            raise Conflict(f"{given.name} is no weight whose elements are all known to be numbers")
        shape = self.sizes.shape(value)
        if shape is None:
            raise Conflict(f"the rank of {given.name} is not known")
        seen = shape
        if self.constants.is_weight(value):
            seen = _coerced(shape, given)
        for shaped in bound.with_shape(given, seen):
            yield shaped.with_input(given.name, value, seen if seen != shape else None)

    def _verified(self, pattern: Pattern, bound: Bindings) -> Match | None:
        """The match, after the rule's own program has agreed with what was bound."""
        try:
            return confirmed(pattern, bound, self.registry, self.sizes)
        except (Conflict, Impossible, Illegal, NotCovered, Undetermined, ZeroDivisionError) as error:
            self._note(bound, str(error) or type(error).__name__)
            return None

    def _note(self, bound: Bindings, reason: str, *further: Node) -> None:
        if self.reasons is not None:
            nodes = (*bound.nodes.values(), *further)
            self.reasons.append(Mismatch(reason, len(bound.nodes) + len(bound.inputs), nodes))


def _element_type(value: Value) -> DType:
    dtype = dtype_of(value)
    if dtype is None or not (dtype.is_float or dtype.is_integer):
        raise Conflict(f"elements of type {dtype or 'unknown'}")
    return dtype


def _coerced(shape: tuple[Index, ...], given: Given) -> tuple[Index, ...]:
    """A constant's shape as the rule writes it, where only leading axes of size 1 differ."""
    if any(isinstance(dim, Block) for dim in given.dims) or len(shape) == len(given.dims):
        return shape
    rank = len(given.dims)
    if len(shape) < rank:
        return (*(1 for _ in range(rank - len(shape))), *shape)
    extra = shape[: len(shape) - rank]
    return shape[len(extra) :] if all(isinstance(n, int) and n == 1 for n in extra) else shape
