"""Richer operators that parts of models are looked up among, and all ways to put a part's inputs into their places."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

from superopt.ir.lexer import Reader
from superopt.mine.lift import Lifted
from superopt.rewrite.editing import substituted
from superopt.rewrite.expression import Expression, Literal, Name, names_in, parse_expression
from superopt.rewrite.rule import Call, Number, Operand, Step, calls_of
from superopt.rewrite.text import parse_rules

Ranks: TypeAlias = "tuple[tuple[str, ...], frozenset[tuple[int, ...]]]"
"""Places, and the numbers of axes that what stands there may have together."""
Filling: TypeAlias = "str | Expression"
"""What stands in a place: an input by name, or an expression."""

_PLACE = re.compile(r"([$%#@&~]\d?)")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_RESHAPED = re.compile(r"= Reshape\(.*, shape=(\[.*\])\)$")
MOST_NUMBERS = 12
MOST_AXES = 4


@dataclass(frozen=True)
class Target:
    """A call with places: `$` values, `%` weights, `#` numbers, `@` sizes, `&` axes, `~` the shape a part ends with."""

    family: str
    text: str
    outputs: str
    """What its results are called, `1` the part's first and `2` its second."""
    call: Call
    """The places are names."""
    places: Mapping[str, tuple[str, ...]]
    """By their kind, the names of those that may differ."""

    @property
    def results(self) -> int:
        return sum(part in ("1", "2") for part in self.outputs.split())

    @property
    def operator(self) -> str:
        """Its outermost operator, but for a Reshape of what that gives."""
        call = self.call
        if self.places["~"] and call.op == "Reshape" and isinstance(call.operands[0], Call):
            call = call.operands[0]
        return f"{call.domain}::{call.op}"

    @property
    def operators(self) -> list[tuple[str, str]]:
        return [(call.op, call.domain) for call in calls_of((Step(("y",), self.call),))]

    def count(self, kind: str) -> int:
        return len(self.places[kind])


@cache
def targets() -> tuple[Target, ...]:
    """Those of `targets.toml`, which lies beside."""
    table = tomllib.loads(Path(__file__).with_name("targets.toml").read_text(encoding="utf-8"))
    calls = ((family["name"], text) for family in table["family"] for call in family["calls"] for text in spelled(call))
    return tuple(target(name, text) for name, text in calls)


def spelled(call: str) -> list[str]:
    """The call with one of the alternatives in each pair of braces, `{a|b}`."""
    found = _CHOICE.search(call)
    if found is None:
        return [call]
    return [
        text for part in found[1].split("|") for text in spelled(f"{call[: found.start()]}{part}{call[found.end() :]}")
    ]


def target(family: str, text: str) -> Target:
    call, _, outputs = text.partition(" -> ")
    parts = _PLACE.split(call)
    names: dict[str, str] = {}
    for k, part in enumerate(parts):
        if _PLACE.fullmatch(part):  # a place with a digit is the same one wherever it stands
            parts[k] = names.setdefault(part if len(part) > 1 else f"{part}at {k}", f"p{len(names)}")
    kinds = {"$": "[n]", "%": "[n]", "#": "real", "@": "int", "&": "int", "~": "int"}
    given = "  ".join(("x: [n]", *(f"{name}: {kinds[place[0]]}" for place, name in names.items())))
    written = f"given   {given}\n  y = Identity(x)\n  =>\n  y = {''.join(parts)}"
    (rule,) = parse_rules(f"rule target\n  doc     A call.\n  {written}\n")
    made = rule.right[0].value
    assert isinstance(made, Call)
    places = {kind: tuple(name for place, name in names.items() if place[0] == kind) for kind in kinds}
    return Target(family, text, outputs or "1", made, places)


def fits(target: Target, part: Lifted) -> bool:
    """Whether the part has as many inputs as the call has places for."""
    numbers = target.count("#")
    return (
        target.results == len(part.results)
        and target.count("%") == len(part.weights)
        and target.count("$") == len(part.data)
        and (not target.count("~") or last_shape(part) is not None)
        and (not part.reals or numbers > 0)
        and (not numbers or bool(part.reals or part.numbers))
    )


@dataclass(frozen=True)
class Filler:
    """Ways to fill in a call for one part: first what decides whether it is legal, then its numbers."""

    target: Target
    part: Lifted

    def legal(self, ranks: Sequence[Ranks]) -> Iterator[Mapping[str, Filling]]:
        """Inputs, sizes and axes; `ranks` says how many axes inputs in some places may have together."""
        target, part = self.target, self.part
        axes = [Literal(str(k)) for k in range(_rank(part))]
        sizes = list(itertools.product(map(_expression, part.sizes), repeat=target.count("@")))
        told = list(itertools.product(axes, repeat=target.count("&")))
        shape = last_shape(part)
        last = {} if shape is None else dict.fromkeys(target.places["~"], _expression(shape))
        names = [*target.places["$"], *target.places["%"]]
        for values, weights in itertools.product(
            itertools.permutations(part.data), itertools.permutations(part.weights)
        ):
            placed: dict[str, str] = dict(zip(names, (*values, *weights), strict=True))
            if not all(tuple(part.ranks[placed[n]] for n in where) in allowed for where, allowed in ranks):
                continue
            for way in itertools.product(sizes, told):
                further = dict(zip((*target.places["@"], *target.places["&"]), itertools.chain(*way), strict=True))
                yield {**placed, **further, **last}

    def numbers(self) -> list[Mapping[str, Filling]]:
        """Every number of the part that is a variable has to be used."""
        options = [_expression(n) for n in _numbers(self.part)]
        names = self.target.places["#"]
        ways = itertools.product(options, repeat=len(names))
        return [dict(zip(names, way, strict=True)) for way in ways if _mentions_all(self.part.reals, way)]

    def step(self, filling: Mapping[str, Filling]) -> Step:
        named = {"1": self.part.results[0], "2": self.part.results[-1]}
        outputs = tuple(named.get(o, "_") for o in self.target.outputs.split())
        return Step(outputs, _put(self.target.call, filling))


def last_shape(part: Lifted) -> str | None:
    """Where the last thing that a part does is to reshape: to what."""
    found = _RESHAPED.search(part.steps[-1]) if part.steps else None
    return None if found is None else found[1]


def _put(call: Call, filling: Mapping[str, Filling]) -> Call:
    operands = tuple(_operand(o, filling) for o in call.operands)
    return replace(call, operands=operands, arguments=filled_arguments(call, filling))


def filled_arguments(call: Call, filling: Mapping[str, Filling]) -> tuple[tuple[str, Expression], ...]:
    return tuple((name, substituted(e, lambda p: _named(p, filling))) for name, e in call.arguments)


def _operand(operand: Operand, filling: Mapping[str, Filling]) -> Operand:
    if isinstance(operand, Call):
        return _put(operand, filling)
    if not isinstance(operand, str) or operand not in filling:
        return operand
    found = filling[operand]
    return found if isinstance(found, str) else Number(found)


def _named(expression: Expression, filling: Mapping[str, Filling]) -> Expression:
    found = filling.get(expression.name) if isinstance(expression, Name) else None
    return expression if found is None or isinstance(found, str) else found


@lru_cache(4096)
def _expression(text: str) -> Expression:
    return parse_expression(Reader(text))


def _numbers(part: Lifted) -> list[str]:
    """Numbers of the part and simple expressions of them."""
    one = list(part.reals) or [f"({n})" if " " in n else n for n in part.numbers]
    found = [*one]
    found += [f"{a}*{b}" for a, b in itertools.combinations_with_replacement(one, 2)]
    found += [f"1/{a}" if a.isidentifier() else f"1/({a})" for a in one]
    return found[:MOST_NUMBERS]


def _mentions_all(names: Sequence[str], numbers: Sequence[Filling]) -> bool:
    return set[str]().union(*(names_in(n) for n in numbers if not isinstance(n, str))).issuperset(names)


def _rank(part: Lifted) -> int:
    return min(MOST_AXES, max((part.ranks[d] for d in part.data), default=0))
