"""What an operator cannot do without: the functions and sums in its formula, whatever its attributes are.

A part of a model can only be what an operator computes where both have the same of these: no exponential is spelled
without one. That spares most comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from superopt.ops.element import Call as Function
from superopt.ops.element import Element, Reduce
from superopt.ops.evaluate import sized
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.rule import Call

DRAWS = 8
RANK_DRAWS = 300
KINDS = {"exp": "exp", "tanh": "exp", "erf": "erf", "log": "log", "sin": "wave", "cos": "wave"}


@dataclass(frozen=True)
class Essence:
    must: frozenset[str]
    """In every formula that was drawn."""
    may: frozenset[str]
    """In some of them."""

    def __or__(self, other: Essence) -> Essence:
        return Essence(self.must | other.must, self.may | other.may)

    def can_be(self, other: Essence) -> bool:
        return self.must <= other.may and other.must <= self.may


NONE = Essence(frozenset(), frozenset())


class Essences:
    """Of operators, each found out once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._known: dict[tuple[str, str], Essence] = {}
        self._drawn: dict[tuple[str, str], list[dict[int, int]]] = {}

    def ranks(self, call: Call) -> tuple[tuple[str, ...], frozenset[tuple[int, ...]]] | None:
        """Operands that are inputs, by name, and how many axes they may have together, from what the operator's own
        tests draw; None where nothing is known."""
        operator = self.registry.find(call.op, call.domain)
        if operator is None or operator.draw is None or any(p.variadic for p in operator.parameters):
            return None
        places: list[tuple[str, int]] = []
        for k, operand in enumerate(call.operands):
            inner = operand.operands if isinstance(operand, Call) and operand.op == "Concat" else (operand,)
            places += [(name, k) for name in inner if isinstance(name, str)]
        seen = self._ranks(operator)
        tuples = {tuple(ranks[k] for _, k in places) for ranks in seen if all(k in ranks for _, k in places)}
        return (tuple(name for name, _ in places), frozenset(tuples)) if tuples else None

    def _ranks(self, operator: Operator) -> list[dict[int, int]]:
        """By operand, for each draw."""
        key = operator.name, operator.domain
        if key not in self._drawn:
            assert operator.draw is not None
            draws = [operator.draw(np.random.default_rng(seed)).shapes for seed in range(RANK_DRAWS)]
            self._drawn[key] = [{k: len(s) for k, s in enumerate(shapes) if s is not None} for shapes in draws]
        return self._drawn[key]

    def of(self, op: str, domain: str) -> Essence:
        key = op, domain
        if key not in self._known:
            operator = self.registry.find(op, domain)
            self._known[key] = NONE if operator is None else _drawn(operator)
        return self._known[key]


def _drawn(operator: Operator) -> Essence:
    found: list[frozenset[str]] = []
    for seed in range(DRAWS if operator.draw is not None else 0):
        assert operator.draw is not None
        draw = operator.draw(np.random.default_rng(seed))
        tensors = [None if s is None else sized(s, f"x{k}") for k, s in enumerate(draw.shapes)]
        try:
            result = operator.apply(tensors, dict(draw.arguments), draw.outputs)[0]
        except (Illegal, NotCovered):
            continue
        if 0 in result.shape:
            continue
        kinds: set[str] = set()
        _collect(result[tuple(0 for _ in result.shape)], kinds, set())
        found.append(frozenset(kinds))
    if not found:
        return Essence(frozenset(), frozenset((*KINDS.values(), "sum")))
    return Essence(frozenset.intersection(*found), frozenset.union(*found))


def _collect(element: Element, kinds: set[str], seen: set[int]) -> None:
    if id(element) in seen:
        return
    seen.add(id(element))
    if isinstance(element, Function) and element.function in KINDS:
        kinds.add(KINDS[element.function])
    if isinstance(element, Reduce):
        kinds.add("sum")
    for part in _parts(element):
        _collect(part, kinds, seen)


def _parts(element: Any) -> list[Element]:
    if not is_dataclass(element):
        return []
    values = [getattr(element, f.name) for f in fields(element)]
    flat = [x for v in values for x in (v if isinstance(v, tuple) else (v,))]  # pyright: ignore[reportUnknownVariableType]
    return [x for x in flat if isinstance(x, Element)]
