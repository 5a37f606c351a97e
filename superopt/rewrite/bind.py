"""What a pattern's names stand for, while a match is put together. Bindings are never changed: trying is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from superopt.ir.graph import Node, Value
from superopt.ir.types import DType
from superopt.ops.element import Access
from superopt.ops.index import Index, Poly, Symbol, divide_terms, same, substitute_condition
from superopt.ops.registry import Operator
from superopt.ops.symbols import Symbols
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.expression import Binary, Expression, Listing, Literal, Name, Rank, evaluate, names_in
from superopt.rewrite.numerals import decimal, number_of, rounds_to
from superopt.rewrite.pattern import PatternNode
from superopt.rewrite.reading import Reading
from superopt.rewrite.rule import Block, Given, Rule
from superopt.rewrite.sizes import decide
from superopt.rewrite.spelling import END, narrowed


@dataclass(frozen=True)
class Demand:
    holds: Callable[[Mapping[str, Any]], bool]
    expression: Expression
    message: str


@dataclass(frozen=True)
class Equation:
    """An expression of the rule that must have a value found in the graph."""

    left: Expression
    right: Any
    message: str


@dataclass(frozen=True)
class Bindings:
    nodes: Mapping[int, Node] = field(default_factory=dict[int, Node])
    inputs: Mapping[str, Value] = field(default_factory=dict[str, Value])
    coerced: Mapping[str, tuple[Index, ...]] = field(default_factory=dict[str, tuple[Index, ...]])
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dtype: DType | None = None
    demands: tuple[Demand, ...] = ()
    equations: tuple[Equation, ...] = ()

    def _with(self, **changes: Any) -> Bindings:
        """`dataclasses.replace`, at a tenth of its price: this is called more often than anything else here."""
        new = object.__new__(Bindings)
        new.__dict__.update(self.__dict__)
        new.__dict__.update(changes)
        return new

    def with_node(self, index: int, node: Node) -> Bindings:
        return self._with(nodes={**self.nodes, index: node})

    def with_input(self, name: str, value: Value, seen: tuple[Index, ...] | None) -> Bindings:
        coerced = self.coerced if seen is None else {**self.coerced, name: seen}
        return self._with(inputs={**self.inputs, name: value}, coerced=coerced)

    def with_dtype(self, dtype: DType) -> Bindings:
        if self.dtype is None:
            return self._with(dtype=dtype)
        if self.dtype is not dtype:
            raise Conflict(f"mixed element types, {self.dtype} and {dtype}")
        return self

    def with_name(self, name: str, value: Any) -> Bindings:
        if name in self.names:
            if not equal(self.names[name], value):
                raise Conflict(f"{name} would be both {_shown(self.names[name])} and {_shown(value)}")
            return self
        return self._with(names={**self.names, name: value})

    def with_demand(self, holds: Callable[[Mapping[str, Any]], bool], on: Expression, message: str) -> Bindings:
        demand = Demand(holds, on, message)
        if names_in(on) <= self.names.keys():
            if not holds(self.names):
                raise Conflict(message)
            return self
        return self._with(demands=(*self.demands, demand))

    def with_shape(self, given: Given, shape: tuple[Index, ...]) -> Iterator[Bindings]:
        """With a tensor's shape; one for each way to share out its axes where two blocks take them."""
        blocks = [d.name for d in given.dims if isinstance(d, Block)]
        fixed = len(given.dims) - len(blocks)
        known = sum(self.names[f"|{b}|"] for b in blocks if f"|{b}|" in self.names)
        open_blocks = list(dict.fromkeys(b for b in blocks if f"|{b}|" not in self.names))
        left = len(shape) - fixed - known
        if left < 0 or (not open_blocks and left) or len(open_blocks) > 2:
            raise Conflict(f"{given.name} has {len(shape)} axes, expected [{', '.join(map(str, given.dims))}]")
        counts = [blocks.count(b) for b in open_blocks]  # a block may stand in several places, of one rank in all
        if len(open_blocks) < 2:
            if counts and left % counts[0]:
                raise Conflict(f"{given.name} has {len(shape)} axes, which {given} does not share out")
            yield self._with_axes(given, shape, left // counts[0] if counts else 0)
            return
        for rank in range(left // counts[0] + 1):
            rest = left - counts[0] * rank
            if rest % counts[1] == 0:
                yield self.with_name(f"|{open_blocks[0]}|", rank)._with_axes(given, shape, rest // counts[1])

    def _with_axes(self, given: Given, shape: tuple[Index, ...], left: int) -> Bindings:
        """`left`: the rank of the block that is still open."""
        bound, position = self, 0
        for dim in given.dims:
            if isinstance(dim, Block):
                rank = bound.names.get(f"|{dim.name}|", left)
                if rank < 0:  # an attribute said so: an axis of -1, where the rule counts from the block's end
                    raise Conflict(f"{given.name} has no block of {rank} axes")
                bound = bound.with_name(f"|{dim.name}|", rank)
                bound = bound.with_name(dim.name, list(shape[position : position + rank]))
                position += rank
            elif position < len(shape):
                message = f"axis {position} of {given.name} is {shape[position]}, expected {dim}"
                bound = bound.unified(dim, shape[position], message)
                position += 1
            else:
                position += 1
        if position != len(shape):  # an axis before a block may say how many axes the block has
            raise Conflict(f"{given.name} has {len(shape)} axes, expected {position}")
        return bound

    def with_written(self, want: PatternNode, reading: Reading) -> Bindings:
        """The node's arguments against those that the rule writes: before operands, whose axes they may count."""
        bound = self
        written = dict(want.call.arguments)
        arguments = narrowed(reading.arguments, written)
        for name, expression in written.items():
            value = arguments.get(name)
            message = f"{name} of {want.call.op} is {_shown(value)}, expected {expression}"
            if value is None:
                raise Conflict(message)
            if isinstance(value, Fraction | float) and not isinstance(expression, Name):
                bound = bound._with_real(expression, float(value), message)
            else:
                if name == "ends":
                    value = _as_written(expression, value, reading)
                bound = bound.unified(_from_front(name, expression, reading), value, message)
        return bound

    def _with_real(self, expression: Expression, found: float, message: str) -> Bindings:
        """With a number of the rule equal to an attribute, which files hold as float32."""

        def holds(names: Mapping[str, Any]) -> bool:
            return rounds_to(found, number_of(evaluate(expression, names)), "float32")

        return self.with_demand(holds, expression, message)

    def with_others(self, want: PatternNode, reading: Reading) -> Bindings:
        """The node's arguments that the rule leaves to a bundle, or leaves out."""
        written = dict(want.call.arguments)
        bound = self
        bundled: dict[str, Any] = {}
        for name, value in reading.arguments.items():
            if name in written:
                continue
            if want.call.bundle is not None:
                bundled[name] = value
            elif not is_default(want.operator, name, value, reading):
                raise Conflict(f"{name} of {want.call.op} is {_shown(value)}, which the rule leaves out")
        if want.call.bundle is not None:
            bound = bound._with_bundle(want, bundled, reading)
        return bound

    def _with_bundle(self, want: PatternNode, found: dict[str, Any], reading: Reading) -> Bindings:
        name = want.call.bundle
        assert name is not None
        kept = covered_bundle(want.operator, found, reading, {n for n, _ in want.call.arguments})
        if name in self.names:
            known = self.names[name]
            for entry in kept.keys() & known.keys():
                if not equal(known[entry], kept[entry]):
                    raise Conflict(f"{entry} differs: {_shown(known[entry])} and {_shown(kept[entry])}")
            return self
        bound = self._with(names={**self.names, name: kept})
        for entry, value in kept.items():
            bound = bound.with_name(f"{name}.{entry}", value)
        return bound

    def unified(self, expression: Expression, value: Any, message: str) -> Bindings:
        """With `expression` equal to `value`, now where that can be told, else when the names are known."""
        if isinstance(expression, Listing):
            if not isinstance(value, list) or len(value) != len(expression.items):
                raise Conflict(message)
            bound = self
            for item, part in zip(expression.items, value, strict=True):
                bound = bound.unified(item, part, message)
            return bound
        unknown = names_in(expression) - self.names.keys()
        if isinstance(expression, Name | Rank) and unknown:
            return self.with_name(next(iter(unknown)), value)
        if not unknown:
            if not equal(evaluate(expression, self.names), value):
                raise Conflict(message)
            return self
        solved = _solved(expression, value, self.names) if len(unknown) == 1 else None
        if solved is not None:
            return self.with_name(*solved)
        return self._with(equations=(*self.equations, Equation(expression, value, message)))

    def settled(self, rule: Rule) -> dict[str, Any]:
        """All names of the rule; raises where one is not determined or something does not fit."""
        bound = self
        while bound.equations:
            waiting = bound.equations
            bound = bound._with(equations=())
            for equation in waiting:
                bound = bound.unified(equation.left, equation.right, equation.message)
            if len(bound.equations) == len(waiting):
                bound = bound._defined(rule)
                if bound is None:
                    raise Conflict(f"not determined: {waiting[0].left}")
        while (further := bound._defined(rule)) is not None:
            bound = further
        for demand in bound.demands:
            if not names_in(demand.expression) <= bound.names.keys():
                raise Conflict(f"not determined: {demand.expression}")
            if not demand.holds(bound.names):
                raise Conflict(demand.message)
        return dict(bound.names)

    def _defined(self, rule: Rule) -> Bindings | None:
        """With one more name that a condition `name == …` defines."""
        for where in rule.where:
            for side, other in ((where.left, where.right), (where.right, where.left)):
                if where.comparison == "==" and names_in(other) <= self.names.keys():
                    unknown = names_in(side) - self.names.keys()
                    solved = _solved(side, evaluate(other, self.names), self.names) if len(unknown) == 1 else None
                    if solved is not None:
                        return self.with_name(*solved)
        return None


def _solved(expression: Expression, value: Any, names: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The one unknown name of a sum or product, and its value."""
    if isinstance(expression, Name | Rank):
        return next(iter(names_in(expression))), value
    if not isinstance(expression, Binary) or not isinstance(value, int | Poly):
        return None
    left_known = names_in(expression.left) <= names.keys()
    if not left_known and not names_in(expression.right) <= names.keys():
        return None  # the name stands on both sides, as in n·n
    known = evaluate(expression.left if left_known else expression.right, names)
    open_side = expression.right if left_known else expression.left
    if not isinstance(known, int | Poly):
        return None
    if expression.operator == "+":
        return _solved(open_side, value - known, names)
    if expression.operator == "-":
        return _solved(open_side, known - value if left_known else value + known, names)
    if expression.operator == "*" and not (isinstance(known, int) and known == 0):
        if isinstance(value, int) and isinstance(known, int):
            whole, rest = divmod(value, known)
        else:
            whole, rest = divide_terms(value, known)
        if isinstance(rest, int) and rest == 0:
            return _solved(open_side, whole, names)
        raise Conflict(f"{value} is no multiple of {known}")
    return None


def equal(a: Any, b: Any) -> bool:
    """Equal for sure; sizes that are equal only for some values of their symbols are not."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Poly) or isinstance(b, Poly):
        return isinstance(a, int | Poly) and isinstance(b, int | Poly) and same(a, b)
    if isinstance(a, list) or isinstance(b, list) or a is None or b is None:
        return a is b
    return bool(a == b)


def is_default(operator: Operator, name: str, value: Any, reading: Reading) -> bool:
    """Whether an argument says what leaving it out says."""
    parameter = operator.parameter(name)
    assert parameter is not None
    default = parameter.default
    if isinstance(default, float):
        default = decimal(default, "float64")
    if isinstance(value, float):
        value = decimal(value, "float64")
    if default is None and isinstance(value, list):
        fillers = {"strides": 1, "dilations": 1, "steps": 1, "pads": 0, "output_padding": 0}
        if name in fillers:
            return all(isinstance(v, int) and v == fillers[name] for v in value)
        return name == "perm" and value == list(reversed(range(len(value))))
    if name == "axis" and isinstance(default, int) and default < 0:
        return isinstance(value, int) and value - default == reading.rank
    return equal(value, default)


def covered_bundle(operator: Operator, found: dict[str, Any], reading: Reading, named: set[str]) -> dict[str, Any]:
    """The entries that a bundle of this operator stands for; raises where a proof did not cover what was found."""
    if operator.unknown is None:
        raise Conflict(f"{operator.kind} has no attributes that a bundle could stand for")
    reason = "its attributes are not covered by proofs"
    symbols = Symbols()
    for option in operator.unknown(symbols, reading.ranks):
        bound: dict[Symbol, Index] | None = {}
        kept: dict[str, Any] = {}
        for name, value in found.items():
            if name in option:
                bound = None if bound is None else _fitted(option[name], value, bound)
                kept[name] = value
            elif not is_default(operator, name, value, reading):
                bound, reason = None, f"{name} of {operator.kind} is {_shown(value)}, which proofs did not cover"
        if bound is None or any(n not in found and n not in named for n in option):
            continue
        facts = [substitute_condition(fact, bound) for fact in symbols.facts]
        relevant = [f for f in facts if decide(f) is not None]
        if all(decide(f) for f in relevant):
            return kept
    raise Conflict(reason)


def _fitted(want: Any, value: Any, bound: dict[Symbol, Index]) -> dict[Symbol, Index] | None:
    """Symbols of a covered argument against a found one."""
    if isinstance(want, list) and isinstance(value, list) and len(want) == len(value):
        current: dict[Symbol, Index] | None = bound
        for a, b in zip(want, value, strict=True):
            current = None if current is None else _fitted(a, b, current)
        return current
    if isinstance(want, Poly):
        [symbol] = want.atoms
        if not isinstance(symbol, Symbol) or not isinstance(value, int | Poly):
            return None
        if symbol in bound:
            return bound if same(bound[symbol], value) else None
        return {**bound, symbol: value}
    if isinstance(want, Access):
        return bound if isinstance(value, int | Fraction) else None
    return bound if equal(want, value) else None


def _from_front(name: str, expression: Expression, reading: Reading) -> Expression:
    """Axes that a rule counts from the back, counted from the front."""
    if name == "axes" and isinstance(expression, Listing):
        rank = reading.rank + (len(expression.items) if reading.operator.name == "Unsqueeze" else 0)
        return Listing(tuple(_positive(item, rank) for item in expression.items))
    return _positive(expression, reading.rank) if name == "axis" else expression


def _as_written(expression: Expression, ends: Any, reading: Reading) -> Any:
    """Ends of a Slice, the end of an axis as the rule writes it, where that is a number beyond all axes."""
    if not isinstance(expression, Listing) or not isinstance(ends, list) or len(ends) != len(expression.items):
        return ends
    sizes = [reading.shape[axis] for axis in reading.arguments["axes"]]
    pairs = zip(expression.items, ends, sizes, strict=True)
    return [item.value if isinstance(item, Literal) and item.value >= END and same(e, n) else e for item, e, n in pairs]


def _positive(expression: Expression, rank: int) -> Expression:
    negative = isinstance(expression, Binary) and expression.operator == "-" and expression.left == Literal("0")
    return Binary("-", Literal(str(rank)), expression.right) if negative else expression  # pyright: ignore[reportAttributeAccessIssue]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{float(value):g}" if hasattr(value, "numerator") and not isinstance(value, int) else str(value)
