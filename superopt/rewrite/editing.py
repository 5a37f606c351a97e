"""Rules taken apart and put together again: calls one by one, flat steps, fresh names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from superopt.rewrite.expression import Binary, Each, Expression, Function, Listing, Literal, Name, names_in
from superopt.rewrite.rule import Block, Call, Given, Number, Operand, Rule, Step, Where, calls_of

TEMPORARY = "~"
"""Names of values inside nested calls, while the calls are flat; no rule's own name starts so."""


def map_calls(steps: Iterable[Step], change: Callable[[Call], Call]) -> tuple[Step, ...]:
    """Every call changed, operands before what reads them."""

    def visit(call: Call) -> Call:
        operands = tuple(visit(o) if isinstance(o, Call) else o for o in call.operands)
        return change(replace(call, operands=operands))

    return tuple(replace(s, value=visit(s.value)) if isinstance(s.value, Call) else s for s in steps)


def map_rule(rule: Rule, change: Callable[[Call], Call]) -> Rule:
    return replace(rule, left=map_calls(rule.left, change), right=map_calls(rule.right, change), proof=None)


def numbers_of(steps: Iterable[Step]) -> list[Number]:
    return [o for call in calls_of(steps) for o in call.operands if isinstance(o, Number)]


def map_expressions(rule: Rule, change: Callable[[Expression], Expression]) -> Rule:
    """Every expression of shapes, conditions, attributes and numbers changed as a whole."""
    where = tuple(replace(w, left=change(w.left), right=change(w.right)) for w in rule.where)
    left, right = (in_steps(side, change) for side in (rule.left, rule.right))
    return replace(rule, given=in_shapes(rule.given, change), where=where, left=left, right=right, proof=None)


def in_shapes(given: Iterable[Given], change: Callable[[Expression], Expression]) -> tuple[Given, ...]:
    """Inputs with every size changed as a whole."""
    return tuple(replace(g, dims=tuple(d if isinstance(d, Block) else change(d) for d in g.dims)) for g in given)


def in_steps(steps: Iterable[Step], change: Callable[[Expression], Expression]) -> tuple[Step, ...]:
    """Steps with every attribute and number changed as a whole."""

    def in_call(call: Call) -> Call:
        operands = tuple(Number(change(o.expression)) if isinstance(o, Number) else o for o in call.operands)
        return replace(call, operands=operands, arguments=tuple((n, change(v)) for n, v in call.arguments))

    return map_calls(steps, in_call)


def substituted(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """With every part changed, the inner ones first."""
    if isinstance(expression, Binary):
        parts = (substituted(expression.left, change), substituted(expression.right, change))
        return change(replace(expression, left=parts[0], right=parts[1]))
    if isinstance(expression, Listing):
        return change(Listing(tuple(substituted(i, change) for i in expression.items)))
    if isinstance(expression, Each):
        size = substituted(expression.size, change)
        return change(replace(expression, entry=substituted(expression.entry, change), size=size))
    if isinstance(expression, Function):
        return change(replace(expression, arguments=tuple(substituted(a, change) for a in expression.arguments)))
    return change(expression)


def reads(steps: Iterable[Step]) -> set[str]:
    """Values and number variables that the steps read by name, as operands."""
    found = {s.value for s in steps if isinstance(s.value, str)}
    return found | {o for call in calls_of(steps) for o in call.operands if isinstance(o, str)}


def mentions(steps: Iterable[Step]) -> set[str]:
    """Names in the steps' attributes and numbers; blocks as `|b|`."""
    calls = calls_of(steps)
    found = {n for call in calls for _, v in call.arguments for n in names_in(v)}
    return found | {n for call in calls for o in call.operands if isinstance(o, Number) for n in names_in(o.expression)}


def used_names(rule: Rule) -> set[str]:
    """All that a fresh name must differ from."""
    found = {g.name for g in rule.given} | set(rule.sizes) | set(rule.blocks)
    found |= {t for step in (*rule.left, *rule.right) for t in step.targets}
    found |= {c.bundle for c in rule.calls if c.bundle is not None}
    return found | {n for w in rule.where for n in names_in(w.left) | names_in(w.right)} | {"pi", "sqrt", "finite"}


def fresh(wanted: str, used: set[str]) -> str:
    """`wanted`, or it with the first free number; the name counts as used from now on."""
    name, count = wanted, 1
    while name in used or f"|{name}|" in used:
        count += 1
        name = f"{wanted}{count}"
    used.add(name)
    return name


def flat(steps: Iterable[Step]) -> tuple[Step, ...]:
    """One call for each step; values inside nested calls get temporary names."""
    made: list[Step] = []

    def visit(operand: Operand) -> Operand:
        if not isinstance(operand, Call):
            return operand
        call = replace(operand, operands=tuple(map(visit, operand.operands)))
        made.append(Step((f"{TEMPORARY}{len(made)}",), call))
        return made[-1].targets[0]

    for step in steps:
        if isinstance(step.value, Call):
            call = replace(step.value, operands=tuple(map(visit, step.value.operands)))
            made.append(Step(step.targets, call))
        else:
            made.append(step)
    return tuple(made)


def nested(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Temporary values back in their places."""
    inner: dict[str, Call] = {}

    def place(operand: Operand) -> Operand:
        return inner[operand] if isinstance(operand, str) and operand.startswith(TEMPORARY) else operand

    found: list[Step] = []
    for step in steps:
        value = step.value
        if isinstance(value, Call):
            value = replace(value, operands=tuple(map(place, value.operands)))
        if step.targets[0].startswith(TEMPORARY):
            assert isinstance(value, Call)
            inner[step.targets[0]] = value
        else:
            found.append(Step(step.targets, value))
    return tuple(found)


def with_real(rule: Rule, name: str, was: float | Fraction) -> Iterator[Rule]:
    """The rule with a number given by that name, which its steps mention: any; then one above 0, as it `was`."""
    given = replace(rule, given=(*rule.given, Given(name, "real")), proof=None)
    yield given
    if was > 0:
        yield replace(given, where=(*rule.where, Where(Name(name), ">", Literal("0"))))


def integer(expression: Expression) -> int | None:
    """A whole number as text writes it, negative ones included."""
    if isinstance(expression, Literal) and expression.text.isdigit():
        return int(expression.text)
    if isinstance(expression, Binary) and expression.operator == "-" and expression.left == Literal("0"):
        inner = integer(expression.right)
        return None if inner is None else -inner
    return None


def literal(number: int) -> Expression:
    return Literal(str(number)) if number >= 0 else Binary("-", Literal("0"), Literal(str(-number)))


def literal_dims(rule: Rule) -> Iterator[tuple[str, int, int]]:
    """Input, axis and number of each size that is a number."""
    for given in rule.given:
        for axis, dim in enumerate(given.dims):
            if not isinstance(dim, Block) and (number := integer(dim)) is not None:
                yield given.name, axis, number


def named_dim(rule: Rule, name: str, axis: int, size: str) -> Rule:
    """With the size of one axis of one input replaced by a name."""
    given = tuple(
        replace(g, dims=(*g.dims[:axis], Name(size), *g.dims[axis + 1 :])) if g.name == name else g for g in rule.given
    )
    return replace(rule, given=given, proof=None)
