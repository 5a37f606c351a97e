"""Programs run step by step on numbers, and how much that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from superopt.ops.element import Access, Add, Call, Choose, Element, Multiply, Reduce, Select
from superopt.ops.evaluate import Array, Domain, evaluate, sized
from superopt.ops.formula import Tensor
from superopt.ops.index import symbol
from superopt.ops.registry import Registry
from superopt.partial.program import Original, Shape, instance, shape_of, started
from superopt.rewrite.rule import Rule, Step

Draw = Callable[[Shape, str], Array]
"""Numbers for an input, by its shape and name."""


def run_both(
    rule: Rule, sizes: Mapping[str, int], registry: Registry, domain: Domain, draw: Draw
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The results of both sides, step by step, on the same numbers."""
    left, right = run(rule, (rule.left, rule.right), sizes, registry, domain, draw)
    return left, right


def run(
    rule: Rule,
    sides: Iterable[Sequence[Step]],
    sizes: Mapping[str, int],
    registry: Registry,
    domain: Domain,
    draw: Draw,
) -> list[dict[str, Array]]:
    """The results of some sides of a rule."""
    values: dict[str, Any] = {}

    def keep(name: str, tensor: Tensor) -> Tensor:
        key = f"{name}#{len(values)}"
        values[key] = evaluate(tensor, values, domain)
        return sized(values[key].shape, key)

    program = instance(rule, sizes, registry, keep)
    for name, tensor in program.inputs.items():
        values[name] = np.asarray(draw(shape_of(tensor), name))
    made = [program.run(side) for side in sides]
    return [{name: evaluate(side[name], values, domain) for name in rule.results} for side in made]


def work(original: Original, registry: Registry) -> int:
    """How many numbers its inputs have and are read when it is run, padding and all; it is not run to find out."""
    counts: list[int] = []

    def counted(name: str, tensor: Tensor) -> Tensor:
        counts.append(reads(tensor))
        return sized(tensor.shape, name)

    program = started(original, registry, counted)
    program.run(original.steps)
    return sum(counts) + sum(prod(shape_of(tensor)) for tensor in program.inputs.values())


def reads(tensor: Tensor) -> int:
    """How many numbers are read to compute a tensor of known sizes; at least one for each of its elements."""
    return prod(shape_of(tensor)) * max(1, _reads(_element(tensor)))


def sources(tensor: Tensor) -> tuple[str, ...]:
    """What is read to compute a tensor, by name."""
    return tuple(dict.fromkeys(_sources(_element(tensor))))


def _element(tensor: Tensor) -> Element:
    return tensor[tuple(symbol(f"@{k}") for k in range(tensor.rank))]


def _reads(e: Element) -> int:
    """For one element: all branches of it, as all are computed and one is taken."""
    if isinstance(e, Access):
        return 1
    if isinstance(e, Reduce):
        return max(1, _reads(e.body)) * (e.extent if isinstance(e.extent, int) else 1)
    return sum(map(_reads, _parts(e)))


def _sources(e: Element) -> Iterator[str]:
    if isinstance(e, Access):
        yield e.tensor
    for part in _parts(e):
        yield from _sources(part)


def _parts(e: Element) -> tuple[Element, ...]:
    if isinstance(e, Add | Multiply):
        return (e.left, e.right)
    if isinstance(e, Call):
        return e.arguments
    if isinstance(e, Reduce):
        return (e.body,)
    if isinstance(e, Select):
        return (e.then, e.otherwise)
    return (e.which, e.then, e.otherwise) if isinstance(e, Choose) else ()
