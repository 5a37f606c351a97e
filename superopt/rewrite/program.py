"""Both sides of a rule as tensors: with symbols for a proof, with numbers for a test.

`Source` says what an unknown is: a symbol, or a number drawn at random. Everything else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from superopt.errors import BadInput
from superopt.ops.condition import Condition, negate
from superopt.ops.element import Access, Element
from superopt.ops.formula import Tensor, constant
from superopt.ops.registry import Operator, Registry
from superopt.ops.table import table
from superopt.rewrite.expression import Expression, Name, evaluate, names_in
from superopt.rewrite.rule import Block, Call, Given, Number, Operand, Rule, Step, Where


@dataclass(frozen=True)
class RealFact:
    """What a rule demands of a number variable: `c >= 0`."""

    name: str
    comparison: str
    value: Fraction

    def holds(self, number: float) -> bool:
        value = float(self.value)
        return {
            "==": number == value, "!=": number != value, "<": number < value, "<=": number <= value,
            ">": number > value, ">=": number >= value,
        }[self.comparison]  # fmt: skip


class Source(Protocol):
    """Where unknowns come from."""

    def positive(self, name: str) -> Any: ...
    def natural(self, name: str) -> Any: ...
    def real(self, name: str) -> Any: ...
    def choose(self, count: int) -> int: ...
    def assume(self, condition: Condition | bool) -> None: ...
    def assume_real(self, fact: RealFact) -> None: ...


class Impossible(Exception):
    """The rule's own conditions exclude this choice."""


Keep = Callable[[str, Tensor], Tensor]
"""What becomes of each computed value; a test replaces it by its numbers."""


@dataclass
class Program:
    """One instance of a rule under construction: names of sizes, attributes and tensors."""

    rule: Rule
    registry: Registry
    source: Source
    keep: Keep = lambda _, tensor: tensor
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    _assumed: set[int] = field(default_factory=set[int])

    def start(self, ranks: Mapping[str, int]) -> None:
        """Give every size and input of the rule a value; `ranks` says how many axes each block has.

        A name that has a value already keeps it.
        """
        for block, rank in ranks.items():
            self.names[f"|{block}|"] = rank
            if block not in self.names:
                self.names[block] = [self.source.positive(f"{block}{k}") for k in range(rank)]
        for given in self.rule.given:
            if given.kind == "int":
                self._name(given.name, lambda n=given.name: self.source.natural(n))
            elif given.kind == "real" and given.name not in self.names:
                self.names[given.name] = self.source.real(given.name)
        for size in self.rule.sizes:
            self._name(size, lambda n=size: self.source.positive(n))
        for given in self.rule.given:
            if given.is_tensor:
                self.inputs[given.name] = self._input(given)
        self._assume_ready()

    def _name(self, name: str, make: Callable[[], Any]) -> None:
        """A name's value: what a condition `name == …` says, or an unknown."""
        if name in self.names:
            return
        for k, where in enumerate(self.rule.where):
            for side, other in ((where.left, where.right), (where.right, where.left)):
                known = where.comparison == "==" and side == Name(name) and names_in(other) <= set(self.names)
                if known and k not in self._assumed:
                    self._assumed.add(k)
                    try:
                        self.names[name] = evaluate(other, self.names)
                    except ZeroDivisionError:
                        raise Impossible(str(where)) from None
                    return
        self.names[name] = make()

    def _input(self, given: Given) -> Tensor:
        shape: list[Any] = []
        for dim in given.dims:
            if isinstance(dim, Block):
                shape += self.names[dim.name]
            else:
                shape.append(evaluate(dim, self.names))
        return Tensor(tuple(shape), lambda *i: Access(given.name, i))

    def _assume_ready(self) -> None:
        """Assume the conditions whose names are all known by now."""
        for k, where in enumerate(self.rule.where):
            if k not in self._assumed and names_in(where.left) | names_in(where.right) <= set(self.names):
                self._assumed.add(k)
                self._assume(where)

    def _assume(self, where: Where) -> None:
        try:
            left, right = evaluate(where.left, self.names), evaluate(where.right, self.names)
        except ZeroDivisionError:
            raise Impossible(str(where)) from None
        if isinstance(left, Access) and isinstance(right, int | Fraction):
            self.source.assume_real(RealFact(left.tensor, where.comparison, Fraction(right)))
            return
        if isinstance(left, Element) or isinstance(right, Element):
            raise BadInput(f"{self.rule.name}: `{where}`: a condition on a number compares a variable with a constant")
        holds = _compare(where.comparison, left, right)
        if holds is False:
            raise Impossible(str(where))
        self.source.assume(holds)

    def refuse_unused_conditions(self) -> None:
        """A condition on a name that the pattern never gives a value says nothing: a slip, not a condition."""
        for k, where in enumerate(self.rule.where):
            if k not in self._assumed:
                unknown = (names_in(where.left) | names_in(where.right)) - set(self.names)
                raise BadInput(f"{self.rule.name}: `{where}`: nothing is called {', '.join(sorted(unknown))}")

    def run(self, steps: Iterable[Step]) -> dict[str, Tensor]:
        """The values that the steps define."""
        values = dict(self.inputs)
        for step in steps:
            if isinstance(step.value, str):
                results: tuple[Tensor, ...] = (values[step.value],)
            else:
                results = self._call(step.value, values, len(step.targets))
            for name, result in zip(step.targets, results, strict=False):
                values[name] = self.keep(name, result)
        return values

    def _operand(self, operand: Operand, values: Mapping[str, Tensor]) -> Tensor | None:
        if operand is None:
            return None
        if isinstance(operand, str):
            return values[operand] if operand in values else constant(self.names[operand])
        if isinstance(operand, Number):
            return numbers(operand, self.names)
        return self.keep("", self._call(operand, values, 1)[0])

    def _call(self, call: Call, values: Mapping[str, Tensor], outputs: int) -> tuple[Tensor, ...]:
        operator = find(call, self.registry)
        operands = [self._operand(o, values) for o in call.operands]
        arguments = {name: self._argument(value) for name, value in call.arguments}
        if call.bundle is not None:
            ranks = tuple(o.rank for o in operands if o is not None)
            arguments = {**self._bundle(call.bundle, operator, ranks, set(arguments)), **arguments}
        return self.applied(call, operands, arguments, outputs)

    def applied(
        self, call: Call, operands: list[Tensor | None], arguments: Mapping[str, Any], outputs: int
    ) -> tuple[Tensor, ...]:
        """What a call gives, for what stands in it."""
        operator = find(call, self.registry)
        self._refuse_ill_formed(call, operator, operands, arguments)
        return operator.apply(operands, arguments, outputs)

    def _refuse_ill_formed(
        self, call: Call, operator: Operator, operands: list[Tensor | None], arguments: Mapping[str, Any]
    ) -> None:
        """Operands and attributes that the operator does not have, or cannot do without: a slip in the text."""
        for name in arguments:
            if operator.parameter(name) is None:
                raise BadInput(f"{self.rule.name}: `{call}`: {operator.kind} has no argument {name!r}")
        tensors = [p for p in operator.parameters if p.kind == "tensor" and not p.variadic]
        given = {p.name for p, o in zip(tensors, operands, strict=False) if o is not None} | set(arguments)
        for p in operator.parameters:
            if p.required and not p.variadic and p.name not in given:
                raise BadInput(f"{self.rule.name}: `{call}`: {operator.kind} needs {p.name!r}")

    def _argument(self, value: Expression) -> Any:
        return evaluate(value, self.names)

    def _bundle(self, name: str, operator: Operator, ranks: tuple[int, ...], named: set[str]) -> dict[str, Any]:
        """Attributes that the rule leaves open: made once, at the first call that has the bundle."""
        if name not in self.names:
            if operator.unknown is None:
                raise BadInput(f"{self.rule.name}: {operator.kind} has no attributes that `*{name}` could stand for")
            options = list(operator.unknown(_Prefixed(self.source, f"{name}."), ranks))  # pyright: ignore[reportArgumentType]
            chosen = dict(options[self.source.choose(len(options))]) if len(options) > 1 else dict(options[0])
            self.names[name] = {k: v for k, v in chosen.items() if k not in named}
            for entry, value in self.names[name].items():
                self._name(f"{name}.{entry}", lambda v=value: v)
                self.names[name][entry] = self.names[f"{name}.{entry}"]
            self._assume_ready()
        known = {p.name for p in operator.parameters}
        return {k: v for k, v in self.names[name].items() if k in known}


@dataclass
class _Prefixed:
    source: Source
    prefix: str

    def positive(self, name: str) -> Any:
        return self.source.positive(self.prefix + name)

    def natural(self, name: str) -> Any:
        return self.source.natural(self.prefix + name)

    def real(self, name: str) -> Any:
        return self.source.real(self.prefix + name)


def numbers(operand: Number, names: Mapping[str, Any]) -> Tensor:
    """A number as a tensor without axes, a list of numbers as a tensor of known elements."""
    value = evaluate(operand.expression, names)
    return table(value) if isinstance(value, list) else constant(value)


def find(call: Call, registry: Registry) -> Operator:
    return find_operator(call.op, call.domain, registry)


def find_operator(name: str, domain: str, registry: Registry) -> Operator:
    operator = registry.find(name, domain)
    if operator is None:
        raise BadInput(f"no operator {domain + '::' if domain else ''}{name} is defined in specs/")
    return operator


def _compare(comparison: str, left: Any, right: Any) -> Condition | bool:
    if comparison == "==":
        return left == right
    if comparison == "!=":
        return negate(left == right)
    if comparison in (">", ">="):
        return left > right if comparison == ">" else left >= right
    return left < right if comparison == "<" else left <= right


def block_ranks(rule: Rule) -> list[dict[str, int]]:
    """Numbers of axes that blocks are tried with: the more blocks, the fewer each."""
    most = {0: 0, 1: 4, 2: 3}.get(len(rule.blocks), 2)
    found: list[dict[str, int]] = [{}]
    for block in rule.blocks:
        found = [{**ranks, block: rank} for ranks in found for rank in range(most)]
    return found
