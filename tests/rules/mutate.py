"""Rules altered in one place: an attribute, an axis, two operands swapped, an operator replaced by a neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from superopt.rewrite.expression import Binary, Expression, Listing, Literal
from superopt.rewrite.rule import Call, Number, Operand, Rule, Step

NEIGHBOURS = {
    "Add": ("Sub", "Mul", "Max"),
    "Sub": ("Add", "Mul"),
    "Mul": ("Add", "Div", "Max"),
    "Div": ("Mul", "Sub"),
    "Max": ("Min", "Add"),
    "Min": ("Max",),
    "Relu": ("Abs", "Neg", "Identity"),
    "Sigmoid": ("Tanh", "Relu"),
    "Tanh": ("Sigmoid", "Identity"),
    "Exp": ("Sigmoid", "Neg"),
    "Erf": ("Tanh",),
    "Sqrt": ("Abs", "Identity"),
    "ReduceSum": ("ReduceMean", "ReduceMax"),
    "ReduceMean": ("ReduceSum", "ReduceMax"),
    "ReduceMax": ("ReduceMin", "ReduceSum"),
    "MaxPool": ("AveragePool",),
    "AveragePool": ("MaxPool",),
    "Softmax": ("LogSoftmax",),
    "GlobalAveragePool": ("GlobalMaxPool",),
}


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """What was changed, and the rule with it changed."""
    for side in ("left", "right"):
        steps: tuple[Step, ...] = getattr(rule, side)
        for k, step in enumerate(steps):
            if not isinstance(step.value, Call):
                continue
            for what, call in _altered_calls(step.value):
                altered = (*steps[:k], replace(step, value=call), *steps[k + 1 :])
                yield f"{side}: {what}", replace(rule, **{side: altered}, proof=None)


def _altered_calls(call: Call) -> Iterator[tuple[str, Call]]:
    for name in NEIGHBOURS.get(call.op, ()):
        yield f"{call.op} → {name}", replace(call, op=name)
    for k in range(len(call.operands) - 1):
        a, b = call.operands[k], call.operands[k + 1]
        if str(a) != str(b) and a is not None and b is not None:
            swapped = (*call.operands[:k], b, a, *call.operands[k + 2 :])
            yield f"{call.op}: operands {k} and {k + 1} swapped", replace(call, operands=swapped)
    for k, (name, value) in enumerate(call.arguments):
        for altered in _altered_values(value):
            arguments = (*call.arguments[:k], (name, altered), *call.arguments[k + 1 :])
            yield f"{call.op}: {name}={value} → {altered}", replace(call, arguments=arguments)
    for k, operand in enumerate(call.operands):
        for what, altered in _altered_operands(operand):
            yield what, replace(call, operands=(*call.operands[:k], altered, *call.operands[k + 1 :]))


def _altered_operands(operand: Operand) -> Iterator[tuple[str, Operand]]:
    if isinstance(operand, Call):
        yield from _altered_calls(operand)
    elif isinstance(operand, Number) and isinstance(operand.expression, Listing):
        for table in _altered_tables(operand.expression):
            yield f"{operand} → {table}", Number(table)
    elif isinstance(operand, Number):
        yield f"{operand} → {operand} + 1", Number(Binary("+", operand.expression, Literal("1")))


def _altered_tables(table: Listing) -> Iterator[Listing]:
    """One entry with the other sign, or a zero made 1."""
    for k, item in enumerate(table.items):
        if isinstance(item, Listing):
            others: Iterator[Expression] = _altered_tables(item)
        else:
            others = iter((Literal("1") if str(item) == "0" else Binary("-", Literal("0"), item),))
        for other in others:
            yield Listing((*table.items[:k], other, *table.items[k + 1 :]))


def _altered_values(value: Expression) -> Iterator[Expression]:
    if isinstance(value, Literal) and value.text.isdigit():
        yield Literal(str(int(value.text) + 1))
        if int(value.text):
            yield Literal(str(int(value.text) - 1))
    elif isinstance(value, Listing):
        for k, item in enumerate(value.items):
            for altered in _altered_values(item):
                yield Listing((*value.items[:k], altered, *value.items[k + 1 :]))
        if len(value.items) > 1 and str(value.items[0]) != str(value.items[1]):
            yield Listing((value.items[1], value.items[0], *value.items[2:]))
