"""One spelling for one law: inputs, sizes and values named in the order in which the rule mentions them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from superopt.rewrite.editing import substituted
from superopt.rewrite.expression import Binary, Expression, Name, Rank
from superopt.rewrite.rule import Block, Call, Given, Number, Operand, Rule, Step, Where

_TENSORS, _SIZES = "xyzvw", "nmkpqhst"


def respelled(rule: Rule) -> Rule:
    """The same rule with the same names as any other one that says the same in the same order."""
    order = _in_order(rule)
    given = sorted(rule.given, key=lambda g: order.index(g.name) if g.name in order else len(order))
    return renamed(replace(rule, given=tuple(given)), _renaming(rule, given))


def renamed(rule: Rule, names: Mapping[str, str]) -> Rule:
    """With other names for inputs, sizes, blocks, values and bundles; those that are not among `names` stay."""
    given = tuple(
        replace(g, name=names.get(g.name, g.name), dims=tuple(_dim(d, names) for d in g.dims)) for g in rule.given
    )
    where = tuple(Where(_renamed(w.left, names), w.comparison, _renamed(w.right, names)) for w in rule.where)
    return replace(
        rule, given=given, where=where, left=renamed_steps(rule.left, names), right=renamed_steps(rule.right, names)
    )


def _in_order(rule: Rule) -> list[str]:
    """Values as the steps read them."""
    found: dict[str, None] = {}
    for step in (*rule.left, *rule.right):
        for name in _read(step.value):
            found.setdefault(name)
    return list(found)


def _read(operand: Operand) -> Iterator[str]:
    if isinstance(operand, str):
        yield operand
    elif isinstance(operand, Call):
        for inner in operand.operands:
            yield from _read(inner)


def _renaming(rule: Rule, given: list[Given]) -> dict[str, str]:
    names: dict[str, str] = {}
    tensors = (f"{c}{k or ''}" for k in range(100) for c in _TENSORS)
    sizes = (f"{c}{k or ''}" for k in range(100) for c in _SIZES)
    blocks = (f"{c}{k or ''}" for k in range(100) for c in "bcd")
    reals, wholes = (f"r{k}" for k in range(1, 100)), (f"i{k}" for k in range(1, 100))
    for g in given:
        names[g.name] = next(reals if g.kind == "real" else wholes if g.kind == "int" else tensors)
    for g in given:
        for dim in g.dims:
            if isinstance(dim, Block):
                if dim.name not in names:
                    names[dim.name] = next(blocks)
            else:
                for name in _sizes_in(dim):
                    if name not in names:
                        names[name] = next(sizes)
    results = set(rule.results)
    lefts, rights = (f"t{k}" for k in range(1, 100)), (f"u{k}" for k in range(1, 100))
    outs = (f"out{k}" for k in range(1, 100))
    for side, inner in ((rule.left, lefts), (rule.right, rights)):
        for step in side:
            for target in step.targets:
                if target != "_" and target not in names:
                    names[target] = ("out" if len(results) == 1 else next(outs)) if target in results else next(inner)
    return names


def _sizes_in(expression: Expression) -> Iterator[str]:
    """In the order in which they are written."""
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Binary):
        yield from _sizes_in(expression.left)
        yield from _sizes_in(expression.right)


def _dim(dim: Expression | Block, names: Mapping[str, str]) -> Expression | Block:
    return Block(names.get(dim.name, dim.name)) if isinstance(dim, Block) else _renamed(dim, names)


def _renamed(e: Expression, names: Mapping[str, str]) -> Expression:
    def one(part: Expression) -> Expression:
        if isinstance(part, Name):
            first, dot, rest = part.name.partition(".")
            return Name(names.get(first, first) + dot + rest)
        return Rank(names.get(part.block, part.block)) if isinstance(part, Rank) else part

    return substituted(e, one)


def renamed_steps(steps: Iterable[Step], names: Mapping[str, str]) -> tuple[Step, ...]:
    return tuple(
        Step(
            tuple(names.get(t, t) for t in s.targets),
            names.get(s.value, s.value) if isinstance(s.value, str) else _call(s.value, names),
        )
        for s in steps
    )


def _call(call: Call, names: Mapping[str, str]) -> Call:
    arguments = tuple((name, _renamed(value, names)) for name, value in call.arguments)
    operands = tuple(_operand(o, names) for o in call.operands)
    bundle = None if call.bundle is None else names.get(call.bundle, call.bundle)
    return replace(call, operands=operands, arguments=arguments, bundle=bundle)


def _operand(operand: Operand, names: Mapping[str, str]) -> Operand:
    if operand is None:
        return None
    if isinstance(operand, str):
        return names.get(operand, operand)
    return Number(_renamed(operand.expression, names)) if isinstance(operand, Number) else _call(operand, names)
