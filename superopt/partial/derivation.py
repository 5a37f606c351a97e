"""A rule that follows from others: each of them, used once at values of the left side, leads to the right side.

What is long, such as a chain of layers on one canvas, is proved a layer at a time: the prover sees one layer, and that
the layers fit together is a matter of form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from superopt.ops.condition import deciding
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.index import Index, Poly, same, symbol
from superopt.ops.registry import Registry
from superopt.partial.terms import Terms
from superopt.rewrite.confirm import Bound
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.expression import Name, evaluate
from superopt.rewrite.program import Program
from superopt.rewrite.reading import Undetermined, strictly
from superopt.rewrite.rule import Block, Rule


@dataclass(frozen=True)
class Use:
    """A rule at these values: its inputs by their names on the left side of what is derived."""

    rule: Rule
    inputs: Mapping[str, str]


class DoesNotFollow(Exception):
    """What is missing, in words."""


def follow(rule: Rule, uses: Iterable[Use], registry: Registry) -> None:
    """Raises `DoesNotFollow` unless the uses, one after the other, turn the rule's left side into its right side.

    Nothing is said of whether the rules that are used are true.
    """
    names: dict[str, Any] = {size: symbol(size) for size in rule.sizes}
    shapes = _shapes(rule, names, registry)
    terms = Terms()
    inputs = {g.name: terms.term(("input", g.name)) for g in rule.given}
    left = terms.run(rule.left, inputs, names)
    found = {name: left[name] for name in rule.results}
    for use in uses:
        _refuse_conditions(use.rule)
        sizes = _sizes(use, shapes, names)
        values = {name: left[value] for name, value in use.inputs.items()}
        before, after = (terms.run(side, values, sizes) for side in (use.rule.left, use.rule.right))
        for result in use.rule.results:
            found = {n: terms.replaced(t, before[result], after[result]) for n, t in found.items()}
    right = terms.run(rule.right, inputs, names)
    for name, term in found.items():
        if term != right[name]:
            raise DoesNotFollow(f"{name} is not what the rules used lead to")


def _refuse_conditions(rule: Rule) -> None:
    if rule.where or rule.blocks or any(g.kind != "tensor" for g in rule.given):
        raise DoesNotFollow(f"{rule.name} has conditions")


def _shapes(rule: Rule, names: Mapping[str, Any], registry: Registry) -> dict[str, tuple[Index, ...]]:
    """Shapes of all values of the left side, in the rule's own sizes."""
    program = Program(rule, registry, Bound(names), names=dict(names))
    try:
        with deciding(strictly):
            program.start({})
            return {name: tensor.shape for name, tensor in program.run(rule.left).items()}
    except (Illegal, NotCovered, Undetermined, Conflict) as why:
        raise DoesNotFollow(f"shapes of the left side: {why}") from None


def _sizes(use: Use, shapes: Mapping[str, tuple[Index, ...]], names: Mapping[str, Any]) -> dict[str, Any]:
    """What the sizes of a rule are where it is used; each is at least 1, as proofs have it.

    A size that no axis alone tells is what has that name where it is used, if that fits.
    """
    found: dict[str, Any] = {}
    open_dims: list[tuple[Any, Index]] = []
    for given in use.rule.given:
        shape = shapes[use.inputs[given.name]]
        if len(shape) != len(given.dims):
            raise DoesNotFollow(f"{given.name} of {use.rule.name} has {len(given.dims)} axes")
        for dim, n in zip(given.dims, shape, strict=True):
            assert not isinstance(dim, Block)
            if isinstance(dim, Name) and dim.name not in found and _positive(n):
                found[dim.name] = n
            open_dims.append((dim, n))
    for dim, n in open_dims:
        try:
            meant = evaluate(dim, {**names, **found})
        except KeyError as unknown:
            raise DoesNotFollow(f"nothing says what {unknown} is in {use.rule.name}") from None
        if not same(meant, n):
            raise DoesNotFollow(f"a size of {use.rule.name} is {n}, expected {dim}")
    return {**names, **found}


def _positive(n: Index) -> bool:
    """Sums and products of sizes are at least 1; differences need not be."""
    return all(c > 0 for c in n.terms.values()) if isinstance(n, Poly) else n >= 1
