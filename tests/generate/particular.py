"""General rules made particular, as enumeration finds them, and whether one rule covers another's instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from superopt.ops.registry import Registry
from superopt.rewrite.editing import flat, integer, literal, map_expressions, map_rule, substituted
from superopt.rewrite.expression import Binary, Expression, Listing, Literal, Name, Rank, evaluate, names_in
from superopt.rewrite.program import block_ranks
from superopt.rewrite.rule import Block, Call, Given, Rule, calls_of
from superopt.rewrite.text import parse_call
from superopt.verify.instances import instances


def particular(
    rule: Rule,
    ranks: Mapping[str, int] | None = None,
    numbers: Mapping[str, int] | None = None,
    bundle: str = "",
    sizes: Mapping[str, int] | None = None,
) -> Rule:
    """With so many axes for each block, these whole numbers, and these attributes for the bundle."""
    ranks, known = ranks or {}, {**(numbers or {}), **(sizes or {})}

    def part(e: Expression) -> Expression:
        if isinstance(e, Rank):
            return literal(ranks.get(e.block, 0))
        if isinstance(e, Name) and e.name in known:
            return literal(known[e.name])
        if isinstance(e, Binary) and integer(e.left) is not None and integer(e.right) is not None:
            return literal(evaluate(e, {})) if e.operator in "+-*" else e
        return e

    def given(g: Given) -> Given:
        dims: list[Any] = []
        for d in g.dims:
            dims += [Name(f"{d.name}{k}") for k in range(ranks.get(d.name, 0))] if isinstance(d, Block) else [d]
        return replace(g, dims=tuple(dims))

    attributes = parse_call(f"Op({bundle})").arguments

    def call(c: Call) -> Call:
        named = {n for n, _ in c.arguments}
        return replace(
            c, bundle=None, arguments=(*c.arguments, *(a for a in attributes if c.bundle and a[0] not in named))
        )

    rule = replace(rule, given=tuple(given(g) for g in rule.given if g.name not in (numbers or {})), proof=None)
    rule = map_rule(map_expressions(rule, lambda e: substituted(e, part)), call)
    kept = tuple(w for w in rule.where if not all(integer(s) is not None or "." in str(s) for s in (w.left, w.right)))
    return replace(rule, where=kept)


def coverage(general: Rule, rule: Rule, registry: Registry, wanted: int = 10) -> float:
    """The part of a rule's drawn instances, of up to four axes, that another rule has as instances too."""
    found = [
        _covers(general, i.program.names, rule, i.program)
        for i in instances(rule, registry, wanted=wanted)
        if all(t.rank <= 4 for t in i.program.inputs.values())
    ]
    return sum(found) / len(found)


def _covers(general: Rule, names: dict[str, Any], rule: Rule, program: Any) -> bool:
    shapes = {n: [int(s) for s in t.shape] for n, t in program.inputs.items()}
    return any(
        _fits(general, ranks, shapes, names, rule) for ranks in (block_ranks(general) if general.blocks else [{}])
    )


def _fits(
    general: Rule, ranks: dict[str, int], shapes: dict[str, list[int]], names: dict[str, Any], rule: Rule
) -> bool:
    bound: dict[str, Any] = {f"|{b}|": r for b, r in ranks.items()}
    later: list[tuple[Expression, int]] = []
    for given in general.given:
        if given.kind not in ("tensor", "bool"):
            continue
        left = list(shapes[given.name])
        for dim in given.dims:
            if isinstance(dim, Block):
                taken, left = left[: ranks[dim.name]], left[ranks[dim.name] :]
                if len(taken) < ranks[dim.name] or bound.setdefault(dim.name, taken) != taken:
                    return False
            elif not left:
                return False
            else:
                later.append((dim, left.pop(0)))
        if left:
            return False
    ours, theirs = (calls_of(flat(r.left)) for r in (general, rule))
    for mine, other in zip(ours, theirs, strict=True):
        told = {**names[other.bundle]} if other.bundle else {}
        told |= {n: evaluate(v, names) for n, v in other.arguments}
        for name, value in mine.arguments:
            if name in told and not _listed(value, told[name], later):
                return False
        if mine.bundle is None:
            for name in told.keys() - {n for n, _ in mine.arguments}:
                plain = told[name] if isinstance(told[name], list) else [told[name]]
                if name in ("strides", "dilations", "group") and any(v != 1 for v in plain):
                    return False
                if name == "pads" and any(plain):
                    return False
                if name == "auto_pad" and told[name] not in ("NOTSET", "VALID"):
                    return False
        elif f"{mine.bundle}.group == 1" in map(str, general.where) and told.get("group", 1) != 1:
            return False
    return _agree(later, bound)


def _listed(value: Expression, told: Any, later: list[tuple[Expression, int]]) -> bool:
    if isinstance(value, Listing):
        later += zip(value.items, told, strict=False)
        return isinstance(told, list) and len(told) == len(value.items)
    if isinstance(told, int) and (integer(value) or 0) >= 0:
        later.append((value, told))
    return True


def _agree(later: list[tuple[Expression, int]], bound: dict[str, Any]) -> bool:
    for _ in range(3):
        for expression, number in later:
            unknown = names_in(expression) - bound.keys()
            if isinstance(expression, Name) and unknown:
                bound[expression.name] = number
            elif not unknown and evaluate(expression, bound) != number and not _negative(expression):
                return False
    return all(names_in(e) <= bound.keys() for e, _ in later)


def _negative(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.left == Literal("0")
