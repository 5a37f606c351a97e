"""Numbers and sizes left open: numbers become variables, numbers in shapes sizes, equal sizes different ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from superopt.generate.trial import DRAWS, SEED
from superopt.ops.registry import Registry
from superopt.rewrite.editing import (
    fresh,
    integer,
    literal_dims,
    map_calls,
    map_expressions,
    mentions,
    named_dim,
    numbers_of,
    substituted,
    used_names,
    with_real,
)
from superopt.rewrite.expression import Binary, Expression, Listing, Literal, Name, evaluate, names_in
from superopt.rewrite.rule import Block, Call, Given, Number, Rule, Step, Where
from superopt.verify.instances import instances

MOST_WAYS = 6
"""Ways to write a number of the right side in those of the left that are tried, for each number."""


def _value(number: Number) -> Fraction | None:
    """None for tables, and for what mentions names or roots."""
    if isinstance(number.expression, Listing) or names_in(number.expression):
        return None
    value = evaluate(number.expression, {})
    return Fraction(value) if isinstance(value, int | Fraction) else None


def real_numbers(rule: Rule) -> Iterator[Rule]:
    """With variables for numbers of the left side, all of them or one; the right side's in terms of these.

    Where that is not true of all numbers, perhaps it is of those with the sign they had.
    """
    values = list(dict.fromkeys(v for n in numbers_of(rule.left) if (v := _value(n)) is not None))
    for count in dict.fromkeys((len(values), 1)):
        for chosen in itertools.combinations(values, count) if count else ():
            yield from _with_variables(rule, chosen)


def shared_numbers(rule: Rule) -> Iterator[Rule]:
    """With a variable for a number that an attribute says, wherever else it stands: a normalization's epsilon is an
    operand of a sum where it is spelled out. Where that is not true of all numbers, perhaps it is of those above 0."""
    said = [_value(Number(v)) for call in rule.calls for _, value in call.arguments for v in _items(value)]
    for value in dict.fromkeys(v for v in said if v is not None and v.denominator != 1):
        name = fresh("e", used_names(rule))
        left, right = (
            map_calls(side, lambda c, v=value, n=name: _with_attributes(_renamed(c, {v: Name(n)}), v, n))
            for side in (rule.left, rule.right)
        )
        if name in mentions(left) | _read(left):
            yield from with_real(replace(rule, left=left, right=right), name, value)


def _with_attributes(call: Call, number: Fraction, name: str) -> Call:
    def changed(value: Expression) -> Expression:
        if isinstance(value, Listing):
            return Listing(tuple(map(changed, value.items)))
        return Name(name) if _value(Number(value)) == number else value

    return replace(call, arguments=tuple((n, changed(v)) for n, v in call.arguments))


def _items(value: Expression) -> tuple[Expression, ...]:
    return value.items if isinstance(value, Listing) else (value,)


def _with_variables(rule: Rule, values: tuple[Fraction, ...]) -> Iterator[Rule]:
    used = used_names(rule)
    names = {v: fresh(letter, used) for v, letter in zip(values, "stuv", strict=False)}
    if len(names) < len(values):
        return
    wanted = list(dict.fromkeys(v for n in numbers_of(rule.right) if (v := _value(n)) is not None))
    ways = [list(itertools.islice(_ways(v, names), MOST_WAYS)) for v in wanted]
    given = (*rule.given, *(Given(n, "real") for n in names.values()))
    signs = tuple(Where(Name(n), ">=" if v >= 0 else "<=", Literal("0")) for v, n in names.items() if v)
    left = map_calls(rule.left, lambda call: _renamed(call, {v: Name(n) for v, n in names.items()}))
    for chosen in itertools.islice(itertools.product(*ways), 4 * MOST_WAYS):
        right = map_calls(rule.right, lambda call, c=chosen: _renamed(call, dict(zip(wanted, c, strict=True))))
        if set(names.values()) <= _read(left):
            made = replace(rule, given=given, left=left, right=right, proof=None)
            yield made
            yield replace(made, where=(*rule.where, *signs))


def _read(steps: tuple[Step, ...]) -> set[str]:
    found: set[str] = set()

    def note(call: Call) -> Call:
        found.update(o for o in call.operands if isinstance(o, str))
        return call

    map_calls(steps, note)
    return found


def _renamed(call: Call, by: dict[Fraction, Expression]) -> Call:
    def operand(o: object) -> object:
        value = _value(o) if isinstance(o, Number) else None
        if value is None or value not in by:
            return o
        named = by[value]
        return named.name if isinstance(named, Name) else Number(named)

    return replace(call, operands=tuple(map(operand, call.operands)))  # pyright: ignore[reportArgumentType]


def _ways(value: Fraction, names: dict[Fraction, str]) -> Iterator[Expression]:
    """Expressions in the variables that have this value, the simplest first; last the number itself."""
    if value in names:
        yield Name(names[value])
    for v, n in names.items():
        if value == -v:
            yield Binary("-", Literal("0"), Name(n))
        if v and value == 1 / v:
            yield Binary("/", Literal("1"), Name(n))
        for offset in (1, -1):
            if value == v + offset:
                yield Binary("+" if offset > 0 else "-", Name(n), Literal("1"))
        if value == 1 - v:
            yield Binary("-", Literal("1"), Name(n))
    for (v, n), (w, m) in itertools.product(names.items(), repeat=2):
        if value == v * w and n <= m:
            yield Binary("*", Name(n), Name(m))
        if value == v + w and n <= m:
            yield Binary("+", Name(n), Name(m))
        if n != m and w and value == v / w:
            yield Binary("/", Name(n), Name(m))
        if n != m and value == v - w:
            yield Binary("-", Name(n), Name(m))
    yield Literal(str(value)) if value >= 0 and value.denominator == 1 else _fraction(value)


def _fraction(value: Fraction) -> Expression:
    top: Expression = Literal(str(abs(value.numerator)))
    made = top if value.denominator == 1 else Binary("/", top, Literal(str(value.denominator)))
    return Binary("-", Literal("0"), made) if value < 0 else made


def symbolic_dims(rule: Rule) -> Iterator[Rule]:
    """With names for one number that stands in shapes: a name for each axis, then one for the number wherever it is."""
    places = list(literal_dims(rule))
    for number in sorted({n for _, _, n in places}, reverse=True):
        here = [(name, axis) for name, axis, n in places if n == number]
        used = used_names(rule)
        by_axis: dict[int, str] = {}
        made = rule
        for name, axis in here:
            if axis not in by_axis:
                by_axis[axis] = fresh("rstuv"[min(len(by_axis), 4)], used)
            made = named_dim(made, name, axis, by_axis[axis])
        yield made
        one = fresh("r", used_names(rule))
        if number > 1:
            yield map_expressions(rule, lambda e, o=one, n=number: substituted(e, lambda p: _named(p, n, o)))
        shapes = rule
        for name, axis in here:
            shapes = named_dim(shapes, name, axis, one)
        yield shapes


def _named(part: Expression, number: int, name: str) -> Expression:
    return Name(name) if isinstance(part, Literal) and integer(part) == number else part


def split_sizes(rule: Rule, registry: Registry) -> Iterator[Rule]:
    """With a name of its own for one axis of one input, where the left side does not demand that the sizes be equal.

    Axes that broadcast are such: one of them may be 1 where the other is not.
    """
    said = mentions((*rule.left, *rule.right)) | {n for w in rule.where for n in names_in(w.left) | names_in(w.right)}
    for given in rule.given:
        for axis, dim in enumerate(given.dims):
            if isinstance(dim, Block):
                continue
            one = integer(dim) == 1
            shared = isinstance(dim, Name) and dim.name not in said and _count(rule, dim) > 1
            if not one and not shared:
                continue
            size = fresh(dim.name if isinstance(dim, Name) else "n", used_names(rule))
            made = named_dim(rule, given.name, axis, size)
            if _can_differ(made, size, dim, registry):
                yield made


def _can_differ(rule: Rule, size: str, dim: Expression, registry: Registry) -> bool:
    """Whether the left side is legal where the new size is not what it was."""
    drawn = (i.program.names for i in instances(rule, registry, wanted=DRAWS, seed=SEED))
    return any(evaluate(dim, names) != names[size] for names in drawn)


def _count(rule: Rule, dim: Name) -> int:
    return sum(d == dim for g in rule.given for d in g.dims)
