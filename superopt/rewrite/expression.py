"""Arithmetic in rules: sizes and attributes (`2*p + 1`, `|b|`), and numbers (`1/sqrt(2)`, `0.044715`).

One grammar serves both; what a name stands for decides whether the value is a size or a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from superopt.ir.lexer import Reader
from superopt.ops.element import PI, Element, call, lift
from superopt.ops.index import Poly
from superopt.ops.series import Series


@dataclass(frozen=True)
class Literal:
    """A number; its text is kept, so that 1e-5 prints as it was written."""

    text: str

    @property
    def value(self) -> int | Fraction:
        return int(self.text) if self.text.isdigit() else Fraction(self.text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name:
    """A size, an attribute variable, an entry of a bundle (`a.group`) or a number variable."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Rank:
    """How many axes a block of dims has."""

    block: str

    def __str__(self) -> str:
        return f"|{self.block}|"


@dataclass(frozen=True)
class Function:
    """sqrt(…), or pi."""

    name: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        left = f"({self.left})" if _binds(self.left) < _PRECEDENCE[self.operator] else str(self.left)
        right = f"({self.right})" if _binds(self.right) <= _PRECEDENCE[self.operator] else str(self.right)
        return f"{left} {self.operator} {right}" if self.operator in "+-" else f"{left}{self.operator}{right}"


@dataclass(frozen=True)
class Text:
    """A string attribute."""

    value: str

    def __str__(self) -> str:
        return f'"{self.value}"'


@dataclass(frozen=True)
class Listing:
    items: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class Each:
    """A list by a formula, one entry for each place: `[(p + s) % n for p < n]`."""

    entry: Expression
    place: str
    size: Expression

    def __str__(self) -> str:
        return f"[{self.entry} for {self.place} < {self.size}]"


Expression: TypeAlias = Literal | Name | Rank | Function | Binary | Text | Listing | Each

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}
_FUNCTIONS = ("sqrt", "pi")


def _binds(expression: Expression) -> int:
    return _PRECEDENCE[expression.operator] if isinstance(expression, Binary) else 3


def parse_expression(r: Reader) -> Expression:
    """A sum of products."""
    left = _parse_product(r)
    while True:
        if r.at("+") or r.at("-"):
            operator = r.next().text
            left = Binary(operator, left, _parse_product(r))
        elif r.peek.kind == "number" and r.peek.text[0] in "+-":
            operator = r.peek.text[0]
            left = Binary(operator, left, _continue_product(r, Literal(r.next().text[1:])))
        else:
            return left


def _parse_product(r: Reader) -> Expression:
    return _continue_product(r, _parse_atom(r))


def _continue_product(r: Reader, left: Expression) -> Expression:
    while r.at("*") or r.at("/") or r.at("//") or r.at("%"):
        operator = r.next().text
        left = Binary(operator, left, _parse_atom(r))
    return left


def _parse_atom(r: Reader) -> Expression:
    token = r.peek
    if token.kind == "number":
        r.next()
        if token.text[0] in "+-":
            return Binary(token.text[0], Literal("0"), Literal(token.text[1:]))
        return Literal(token.text)
    if token.kind == "string":
        return Text(r.string())
    if r.take("-"):
        return Binary("-", Literal("0"), _parse_atom(r))
    if r.take("("):
        inner = parse_expression(r)
        r.expect(")")
        return inner
    if r.take("|"):
        block = r.expect_kind("name", "the name of a block of dims").text
        r.expect("|")
        return Rank(block)
    if r.take("["):
        items: list[Expression] = []
        while not r.take("]"):
            if items:
                r.expect(",")
            items.append(parse_expression(r))
            if len(items) == 1 and r.take("for"):
                return _parse_places(r, items[0])
        return Listing(tuple(items))
    name = r.expect_kind("name", "a number, a name or a list").text
    if name == "pi":
        return Function("pi", ())
    if name == "sqrt":
        r.expect("(")
        inner = parse_expression(r)
        r.expect(")")
        return Function("sqrt", (inner,))
    return Name(name)


def _parse_places(r: Reader, entry: Expression) -> Each:
    place = r.expect_kind("name", "the name of a place in the list").text
    r.expect("<")
    size = parse_expression(r)
    r.expect("]")
    return Each(entry, place, size)


def evaluate(expression: Expression, names: Mapping[str, Any]) -> Any:
    """The value: an int or polynomial where only sizes take part, an element where numbers do, a list, a series, a
    string."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Text):
        return expression.value
    if isinstance(expression, Listing):
        return [evaluate(item, names) for item in expression.items]
    if isinstance(expression, Each):
        each = expression
        return Series(evaluate(each.size, names), lambda at: evaluate(each.entry, {**names, each.place: at}))
    if isinstance(expression, Name):
        return names[expression.name]
    if isinstance(expression, Rank):
        return names[f"|{expression.block}|"]
    if isinstance(expression, Function):
        return PI if expression.name == "pi" else call("sqrt", evaluate(expression.arguments[0], names))
    return _arithmetic(expression.operator, evaluate(expression.left, names), evaluate(expression.right, names))


def _arithmetic(operator: str, a: Any, b: Any) -> Any:
    if operator == "/":
        return lift(a) / lift(b) if isinstance(a, Element | Poly) or isinstance(b, Element | Poly) else Fraction(a) / b
    if isinstance(a, Element) or isinstance(b, Element):
        a, b = lift(a), lift(b)
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    return a // b if operator == "//" else a % b


def names_in(expression: Expression) -> set[str]:
    """Names it mentions; blocks as `|b|`."""
    if isinstance(expression, Name):
        return {expression.name}
    if isinstance(expression, Rank):
        return {f"|{expression.block}|"}
    if isinstance(expression, Binary):
        return names_in(expression.left) | names_in(expression.right)
    if isinstance(expression, Each):
        return names_in(expression.size) | (names_in(expression.entry) - {expression.place})
    parts = expression.items if isinstance(expression, Listing) else ()
    parts = expression.arguments if isinstance(expression, Function) else parts
    return set[str]().union(*map(names_in, parts))
