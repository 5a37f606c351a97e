"""Shapes without an axis that a block of axes stands for as well: [n, ...b] says no more than [...b], but for one axis.

Recipes name an axis where a scene needs one; laws about elements do not.
"""

from __future__ import annotations

from dataclasses import replace

from superopt.generate.editing import mentions
from superopt.generate.trial import survives
from superopt.ops.registry import Registry
from superopt.rewrite.expression import Name, names_in
from superopt.rewrite.rule import Block, Given, Rule


def absorbed(rule: Rule, registry: Registry) -> Rule:
    """The rule for any number of axes, where all its operators work element by element and numbers agree."""
    if any(call.arguments or call.bundle is not None for call in rule.calls):
        return rule
    for block in rule.blocks:
        wider = _without_axis(rule, block)
        if wider is not None and survives(wider, registry):
            rule = wider
    return rule


def _without_axis(rule: Rule, block: str) -> Rule | None:
    """Without the size that stands before the block wherever either of them does; None if there is no such size."""
    before = {_before(given, block) for given in rule.given if Block(block) in given.dims}
    if len(before) != 1 or not isinstance(name := before.pop(), str):
        return None
    said = mentions(rule.left) | mentions(rule.right) | {n for w in rule.where for n in names_in(w.left)}
    said |= {n for w in rule.where for n in names_in(w.right)}
    said |= {n for g in rule.given if Block(block) not in g.dims for d in g.dims if not isinstance(d, Block)
             for n in names_in(d)}  # fmt: skip
    if name in said or f"|{block}|" in said:
        return None
    return replace(rule, given=tuple(_shorter(given, name, block) for given in rule.given))


def _before(given: Given, block: str) -> str | None:
    at = given.dims.index(Block(block))
    dim = given.dims[at - 1] if at else None
    alone = isinstance(dim, Name) and sum(_names(d, dim.name) for d in given.dims) == 1
    return dim.name if isinstance(dim, Name) and alone else None


def _names(dim: object, name: str) -> bool:
    return not isinstance(dim, Block) and name in names_in(dim)  # pyright: ignore[reportArgumentType]


def _shorter(given: Given, name: str, block: str) -> Given:
    if Block(block) not in given.dims:
        return given
    return replace(given, dims=tuple(d for d in given.dims if d != Name(name)))
