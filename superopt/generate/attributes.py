"""Attributes left open: a bundle `*a` where both sides have them alike, whole numbers where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any, TypeVar

from superopt.generate.trial import NOT_A_RULE, find_shapes
from superopt.ops.element import Access
from superopt.ops.index import Poly
from superopt.ops.registry import Operator, Registry
from superopt.ops.symbols import Symbols
from superopt.rewrite.editing import flat, fresh, integer, literal, map_rule, nested, used_names, with_real
from superopt.rewrite.expression import Binary, Expression, Listing, Literal, Name, evaluate, names_in
from superopt.rewrite.program import find
from superopt.rewrite.rule import Call, Given, Rule, Step, Where, calls_of

Attributes = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Kind:
    """Calls of one operator that have their attributes alike."""

    op: tuple[str, str]
    attributes: Attributes


def _kind(call: Call) -> Kind:
    return Kind((call.domain, call.op), tuple(sorted(call.arguments)))


def kinds(rule: Rule, registry: Registry) -> list[Kind]:
    """The kinds of calls on the left whose operator can leave its attributes open."""
    found = [_kind(c) for c in calls_of(rule.left) if c.bundle is None and find(c, registry).unknown is not None]
    return list(dict.fromkeys(found))


def bundled(rule: Rule, registry: Registry, conditions: tuple[bool, ...] = (False, True)) -> Iterator[Rule]:
    """With bundles: for all kinds of calls, then for one at a time; each without conditions and with a single group."""
    every = kinds(rule, registry)
    choices = [every, *([k] for k in every if len(every) > 1)] if every else []
    for chosen in choices:
        for single in conditions:
            made = _bundled(rule, chosen, registry, single=single)
            if made is not None:
                yield made


def _bundled(rule: Rule, chosen: list[Kind], registry: Registry, *, single: bool) -> Rule | None:
    used = used_names(rule)
    names = {kind: fresh("a", used) for kind in chosen}
    conditions: dict[str, Where] = {}
    left_only = {_kind(c) for c in calls_of(rule.left)}

    def demand(kind: Kind, name: str, operator: Operator) -> bool:
        """That the bundle's entry is what the kind has; only numbers can be compared."""
        value = dict(kind.attributes).get(name)
        parameter = operator.parameter(name)
        if value is None and parameter is not None and isinstance(parameter.default, int):
            value = literal(parameter.default)
        if value is None or integer(value) is None:
            return False
        where = Where(Name(f"{names[kind]}.{name}"), "==", value)
        conditions[str(where)] = where
        return True

    def change(call: Call) -> Call:
        operator = find(call, registry)
        kind = _kind(call)
        if kind in names:
            if single and operator.parameter("group") is not None and not demand(kind, "group", operator):
                raise ValueError("groups are no number")
            return replace(call, arguments=(), bundle=names[kind])
        alike = next((k for k in chosen if k.op == kind.op), None)
        if alike is None:
            alike = next((k for k in chosen if _holds_all_of(operator, k, registry)), None)
        if alike is None or call.bundle is not None or kind in left_only:
            return call
        mine, theirs = dict(kind.attributes), dict(alike.attributes)
        differing = {n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n)}
        shared = {n for n in differing if _operator(alike, registry).parameter(n) is not None}
        if not differing <= mine.keys() or not all(demand(alike, n, operator) for n in shared):
            return call
        return replace(call, arguments=tuple((n, mine[n]) for n in sorted(differing)), bundle=names[alike])

    try:
        new = map_rule(rule, change)
    except ValueError:
        return None
    if single and not conditions:
        return None
    return replace(new, where=(*new.where, *conditions.values()))


def _operator(kind: Kind, registry: Registry) -> Operator:
    domain, name = kind.op
    found = registry.find(name, domain)
    assert found is not None
    return found


def _holds_all_of(operator: Operator, kind: Kind, registry: Registry) -> bool:
    """Whether it has every attribute of the other, as FusedConv has those of Conv: their bundle may be its own."""
    theirs = {p.name for p in _operator(kind, registry).parameters if p.kind == "attribute"}
    mine = {p.name for p in operator.parameters if p.kind == "attribute"}
    return bool(theirs) and theirs < mine


def spelled(rule: Rule, registry: Registry) -> Iterator[tuple[str, Iterator[Rule]]]:
    """For each attribute of windows that all calls of an operator have alike: the rule with variables for it, for any
    numbers first.

    The attributes are those that a bundle of the operator would hold, under names of their own.
    """
    shapes = find_shapes(rule, registry)
    if shapes is None:
        return
    done: set[tuple[str, str, str]] = set()
    try:
        sides = [(flat(side), shapes.of(flat(side))) for side in (rule.left, rule.right)]
    except NOT_A_RULE:
        return
    for steps, known in sides[:1]:
        for step in steps:
            if not isinstance(step.value, Call) or step.value.bundle is not None:
                continue
            call, operator = step.value, find(step.value, registry)
            if operator.unknown is None:
                continue
            ranks = tuple(len(known[o]) for o in call.operands if isinstance(o, str) and o in known)
            option = next(iter(operator.unknown(Symbols(), ranks)))
            for name, example in option.items():
                if (call.domain, call.op, name) not in done:
                    done.add((call.domain, call.op, name))
                    yield name, _spelled(rule, sides[0][0], sides[1][0], call, name, example)


def _spelled(
    rule: Rule, left: tuple[Step, ...], right: tuple[Step, ...], like: Call, name: str, example: Any
) -> Iterator[Rule]:
    """With one attribute of the calls like this one as variables."""
    entries = example if isinstance(example, list) else [example]
    if not all(isinstance(e, Poly) for e in entries):
        if len(entries) == 1 and isinstance(entries[0], Access):
            yield from _real_attribute(rule, like, name)
        return
    used = used_names(rule)
    value = dict(like.arguments).get(name)
    variables = [Name(fresh(f"{name[0]}{k}" if len(entries) > 1 else name[0], used)) for k in range(len(entries))]
    positive = name not in ("pads", "output_padding")
    spelling: Expression = Listing(tuple(variables)) if isinstance(example, list) else variables[0]

    def change(call: Call) -> Call:
        if (call.op, call.domain) != (like.op, like.domain) or dict(call.arguments).get(name) != value:
            return call
        others = tuple((n, v) for n, v in call.arguments if n != name)
        return replace(call, arguments=(*others, (name, spelling)))

    steps = [
        tuple(replace(s, value=change(s.value)) if isinstance(s.value, Call) else s for s in x) for x in (left, right)
    ]
    where = tuple(Where(v, ">=", Literal("1")) for v in variables) if positive else ()
    given = (*rule.given, *(Given(v.name, "int") for v in variables))
    yield replace(
        rule, given=given, where=(*rule.where, *where), left=nested(steps[0]), right=nested(steps[1]), proof=None
    )


def _real_attribute(rule: Rule, like: Call, name: str) -> Iterator[Rule]:
    """A number such as `alpha`, where the calls say it."""
    value = dict(like.arguments).get(name)
    if value is None or names_in(value):
        return
    variable = fresh(name, used_names(rule))

    def change(call: Call) -> Call:
        if call.op != like.op or dict(call.arguments).get(name) != value:
            return call
        return replace(call, arguments=tuple((n, Name(variable) if n == name else v) for n, v in call.arguments))

    yield from with_real(map_rule(rule, change), variable, evaluate(value, {}))


MOST_VARIABLES, MOST_WAYS = 3, 12
FREE_NUMBERS = ("pads", "starts", "ends", "kernel_shape", "strides", "dilations", "blocksize", "split")
"""Attributes and known inputs whose whole numbers mean lengths, and so may be any."""


def lengths(rule: Rule) -> Iterator[Rule]:
    """With a variable for one whole number of each call on the left, and the right side's in terms of these; then with
    one for a number wherever it stands. Only attributes that hold lengths take part."""
    left = flat(rule.left)
    own = [sorted({n for n in _lengths(s.value) if n > 0}, reverse=True)[:1] for s in left]
    places = [(k, numbers[0]) for k, numbers in enumerate(own) if numbers]
    if 1 < len(places) <= MOST_VARIABLES:
        used = used_names(rule)
        names = {k: fresh("p", used) for k, _ in places}
        steps = [
            replace(s, value=_with_lengths(s.value, {dict(places)[k]: Name(names[k])})) if k in names else s
            for k, s in enumerate(left)
        ]
        numbers = sorted({n for s in flat(rule.right) for n in _lengths(s.value) if n > 0})
        ways = [list(_sums(n, [(v, names[k]) for k, v in places])) for n in numbers]
        given = (*rule.given, *(Given(n, "int") for n in names.values()))
        for chosen in islice(product(*ways), MOST_WAYS):
            by = dict(zip(numbers, chosen, strict=True))
            right = [replace(s, value=_with_lengths(s.value, by)) for s in flat(rule.right)]
            yield from _at_least_one(replace(rule, given=given, left=nested(steps), right=nested(right), proof=None))
    for name in FREE_NUMBERS:
        for number in sorted({n for s in left for n in _lengths(s.value, (name,)) if n > 0}, reverse=True):
            variable = fresh("p", used_names(rule))
            new = map_rule(rule, lambda c, n=number, v=variable, a=name: _with_lengths(c, {n: Name(v)}, (a,)))
            yield from _at_least_one(replace(new, given=(*rule.given, Given(variable, "int"))))


def _at_least_one(rule: Rule) -> Iterator[Rule]:
    """As it is, then with its last variable at least 1."""
    yield rule
    yield replace(rule, where=(*rule.where, Where(Name(rule.given[-1].name), ">=", Literal("1"))))


def _lengths(value: Call | str, attributes: tuple[str, ...] = FREE_NUMBERS) -> list[int]:
    if isinstance(value, str):
        return []
    listed = [v.items if isinstance(v, Listing) else (v,) for n, v in value.arguments if n in attributes]
    return [number for items in listed for i in items if (number := integer(i)) is not None]


C = TypeVar("C", bound=Call | str)


def _with_lengths(value: C, by: Mapping[int, Expression], attributes: tuple[str, ...] = FREE_NUMBERS) -> C:
    if isinstance(value, str):
        return value

    def one(item: Expression) -> Expression:
        return by.get(integer(item) or 0, item)

    def change(v: Expression) -> Expression:
        return Listing(tuple(map(one, v.items))) if isinstance(v, Listing) else one(v)

    return replace(value, arguments=tuple((n, change(v) if n in attributes else v) for n, v in value.arguments))


def _sums(number: int, variables: list[tuple[int, str]]) -> Iterator[Expression]:
    """Ways to say a number in variables: a sum of two, one of them, itself."""
    for (v, n), (w, m) in combinations(variables, 2):
        if v + w == number:
            yield Binary("+", Name(n), Name(m))
    yield from (Name(n) for v, n in variables if v == number)
    yield literal(number)
