"""Finds input sets that the original accepts: first one of sensible size, then others around it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from superopt.check.cases import FIRST, MASKED, MIXED, NONFINITE, ONLY_FLOATS, STYLES, Case, Source
from superopt.check.fill import Style
from superopt.check.ladder import Rungs, first_sizes, other_sizes
from superopt.check.sizes import Layout, Shape, layouts
from superopt.errors import CannotRun
from superopt.ir.types import Dim
from superopt.runtime.values import Value

Attempt: TypeAlias = Callable[[Case], "dict[str, Value]"]

_RANKS = (2, 4, 3, 1, 0)
"""Tried in this order for inputs that do not say how many dims they have."""


@dataclass(frozen=True)
class Limits:
    elements: int = 1 << 23
    """Of all inputs of one set together, where sizes are ours to choose."""
    tries: int = 200
    """Input sets offered to the original before giving up."""
    seconds: float = 600.0
    """After this no further input set is started; one is always run."""
    memory_bytes: int = 128 << 20
    """Of the original's outputs; what is more waits in a temporary file."""


@dataclass(frozen=True)
class Found:
    case: Case
    outputs: dict[str, Value]


class Search:
    """For one model, with the sizes its user gave."""

    def __init__(
        self,
        source: Source,
        attempt: Attempt,
        dims: Mapping[str, int],
        shapes: Mapping[str, Shape],
        rungs: Rungs,
        limits: Limits,
    ) -> None:
        self._source, self._attempt, self._limits, self._rungs = source, attempt, limits, rungs
        self._layouts = tuple(_layouts(source.declared, dims, shapes))
        self._deadline = time.monotonic() + limits.seconds

    def first(self) -> Found:
        """The first input set that is accepted; `CannotRun` when none is."""
        return self._first_of(self._candidates(range(self._source.turns)))

    def first_of_turn(self, turn: int) -> Found:
        """The first with the given choice of constants: the other branches of a model that compares."""
        return self._first_of(self._candidates((turn,)))

    def _first_of(self, cases: Iterator[Case]) -> Found:
        refused, tries = "", 0
        for case in cases:
            if case.chooses_sizes and case.layout.elements(case.sizing) > self._limits.elements:
                continue
            try:
                return Found(case, self._attempt(case))
            except CannotRun as error:
                refused, tries = refused or f"{error} ({case.text})", tries + 1
            if tries >= self._limits.tries or time.monotonic() > self._deadline:
                break
        if not tries:
            raise CannotRun(f"no input set of at most {self._limits.elements} elements fits its declared shapes")
        raise CannotRun(f"none of {tries} input sets runs; the first was refused: {refused}")

    def _candidates(self, turns: Iterable[int]) -> Iterator[Case]:
        """Integers as analysis suggests at every size first; then all ones, then all zeros."""
        for plain in (None, 1, 0) if self._source.has_choices else (None,):
            for layout in self._layouts:
                for sizing in first_sizes(layout, self._rungs):
                    for turn in turns if plain is None else (0,):
                        yield Case(_worded(self._source, FIRST), layout, sizing, turn, turn, plain)


def further_cases(source: Source, firsts: Sequence[Case], *, nonfinite: bool) -> Iterator[list[Case]]:
    """Everything else the original should be asked, in a fixed order; of each list the first that it accepts."""
    for number, cases in enumerate(_asked(source, firsts, nonfinite=nonfinite), source.turns):
        yield [replace(case, number=number) for case in cases]


def _asked(source: Source, firsts: Sequence[Case], *, nonfinite: bool) -> Iterator[list[Case]]:
    for style, first in zip(_styles(source, nonfinite=nonfinite), itertools.cycle(firsts), strict=False):
        yield [replace(first, style=style)]
    if source.has_optional:
        yield [replace(firsts[0], absent=True, note="normal values, optional inputs empty")]
    if source.overridable:
        names = ", ".join(p.name for p in source.overridable[:4])
        yield [replace(firsts[0], overridden=True, note=f"normal values, initializers replaced: {names}")]
    masked, mixed = _worded(source, MASKED), _worded(source, MIXED)
    for first in firsts:
        for what, sizings in other_sizes(first.layout, first.sizing).items():
            for style in (masked, mixed) if what == "other" and source.has_floats else (masked,):
                if sizings:
                    yield [replace(first, style=style, sizing=sizing) for sizing in sizings]


def _styles(source: Source, *, nonfinite: bool) -> Iterator[Style]:
    """Those that make a difference to this model's inputs; where only integers count, more random ones instead."""
    if not source.inputs:
        return
    kept = STYLES if source.has_floats else [*(s for s in STYLES if s.reals not in ONLY_FLOATS), MASKED, MASKED]
    for style in (*kept, *(NONFINITE if nonfinite and source.has_floats else ())):
        yield _worded(source, style)


def _worded(source: Source, style: Style) -> Style:
    return style if source.has_choices else replace(style, choices="")


def _layouts(
    declared: Mapping[str, tuple[Dim, ...] | None], dims: Mapping[str, int], shapes: Mapping[str, Shape]
) -> Iterator[Layout]:
    unknown = any(shape is None and name not in shapes for name, shape in declared.items())
    for rank in _RANKS if unknown else (0,):
        yield from layouts({name: _ranked(s, shapes.get(name), rank) for name, s in declared.items()}, dims, shapes)


def _ranked(declared: tuple[Dim, ...] | None, given: Shape | None, rank: int) -> tuple[Dim, ...]:
    if declared is not None:
        return declared
    return (None,) * (len(given) if given is not None else rank)
