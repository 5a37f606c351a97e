"""What the original answers: on which input sets, and which of its outputs are random."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from superopt.check.cases import FIRST, Case, Source
from superopt.check.compare import compare, scale_of
from superopt.check.empty import Accepted, Careful, empty_cases, is_large
from superopt.check.ladder import CHECKING
from superopt.check.own import own_inputs
from superopt.check.randomness import DRAWS, Draw, summed_up
from superopt.check.search import Found, Limits, Search, further_cases
from superopt.check.shelf import Shelf
from superopt.check.sizes import Layout, Shape, check_given
from superopt.check.tolerance import Rule, rule_of
from superopt.check.traits import Traits, asks_for_nan, traits_of_outputs
from superopt.errors import BadOption, CannotRun
from superopt.ir.onnx import Model
from superopt.ir.types import DType
from superopt.runtime.careful import Undecided
from superopt.runtime.port import Port
from superopt.runtime.session import Session
from superopt.runtime.values import Value

Progress: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What the caller asked for."""

    seed: int = 0
    inputs: Path | None = None
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    also: tuple[Mapping[str, int], ...] = ()
    """Other sizes that matter to the caller as much as `dims`: each gets an input set of its own."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Run:
    """An input set the original accepted, and the ticket of its outputs on the shelf."""

    case: Case
    ticket: int


@dataclass(frozen=True)
class Reference:
    inputs: tuple[Port, ...]
    overridable: tuple[Port, ...]
    outputs: tuple[Port, ...]
    source: Source
    runs: tuple[Run, ...]
    empty_runs: tuple[Run, ...]
    """With a size of 0."""
    rules: Mapping[str, Rule]
    traits: Mapping[str, Traits]
    draws: Mapping[str, tuple[Draw, ...]]
    """For each random output, several draws on the first input set."""
    never_empty: frozenset[str] | None
    """Names of sizes that are never 0, as far as was tried; None where none may be."""
    notes: tuple[str, ...]


def ask_original(
    model: Model, session: Session, request: Request, shelf: Shelf, progress: Progress, careful: Careful
) -> Reference:
    """Runs the original on everything it accepts; `CannotRun` when it accepts nothing."""
    return _Asking(model, session, request, shelf, progress, careful).reference()


class _Asking:
    def __init__(
        self, model: Model, session: Session, request: Request, shelf: Shelf, progress: Progress, careful: Careful
    ) -> None:
        self.model, self.careful, self.accepted = model, careful, Accepted()
        self.session, self.request, self.shelf, self.progress = session, request, shelf, progress
        self.source = Source(model, session, request.seed)
        self.nonfinite = asks_for_nan(model.graph)
        self.traits = dict(zip(model.graph.output_names, traits_of_outputs(model.graph), strict=True))
        self.runs: list[Run] = []
        self.empty_runs: list[Run] = []
        self.scales: dict[str, float] = {}
        self.notes: list[str] = []
        self.deadline = time.monotonic() + request.limits.seconds

    def reference(self) -> Reference:
        for dims in (self.request.dims, *self.request.also):
            check_given(self.source.declared, dims, self.request.shapes)
        own = self._own_cases()
        for case in own:
            try:
                self._keep(case, self._attempt(case))
            except CannotRun as error:
                raise BadOption(f"{self.request.inputs}: {case.text}: the original refuses it: {error}") from error
        self._made_cases(own)
        rules = {port.name: self._rule(port) for port in self.session.outputs}
        draws = self._draws(rules)
        return Reference(
            self.session.inputs, self.session.overridable, self.session.outputs, self.source,
            tuple(self.runs), tuple(self.empty_runs), rules, self.traits, draws, self.accepted.never, tuple(self.notes),
        )  # fmt: skip

    def _own_cases(self) -> list[Case]:
        if self.request.inputs is None:
            return []
        sets = own_inputs(self.request.inputs, self.session.inputs, self.session.overridable)
        empty = Layout({}, ())
        name = self.request.inputs.name
        return [
            Case(FIRST, empty, (), number=-1 - i, given=arrays, note=f"set {i} of {name}" if len(sets) > 1 else name)
            for i, arrays in enumerate(sets)
        ]

    def _made_cases(self, own: list[Case]) -> None:
        """Input sets of our own making, of the sizes of the user's arrays where there are some."""
        declared = self.source.declared
        sizes = {n: a.shape for n, a in own[0].given.items() if n in declared} if own else {}
        shapes = {**sizes, **self.request.shapes}
        search = Search(self.source, self._attempt, self.request.dims, shapes, CHECKING, self.request.limits)
        try:
            firsts = [search.first()]
        except CannotRun as error:
            if not own:
                raise
            self.notes.append(f"no input set of superopt's making runs: {error}")
            return
        firsts += self._other_turns(search, firsts[0].case)
        for found in (*firsts, *self._other_sizes(shapes)):
            self._keep(found.case, found.outputs)
        self._ask_empty(firsts[0].case)
        for cases in further_cases(self.source, [f.case for f in firsts], nonfinite=self.nonfinite):
            if time.monotonic() > self.deadline:
                self.notes.append(f"further input sets left out: the {self.request.limits.seconds:g} s are over")
                return
            self._keep_first(cases)

    def _other_sizes(self, shapes: Mapping[str, Shape]) -> Iterator[Found]:
        for dims in self.request.also:
            search = Search(self.source, self._attempt, dims, shapes, CHECKING, self.request.limits)
            try:
                yield search.first()
            except CannotRun as error:
                raise CannotRun(f"at {', '.join(f'{n}={size}' for n, size in dims.items())}: {error}") from None

    def _other_turns(self, search: Search, first: Case) -> Iterator[Found]:
        for turn in range(self.source.turns if first.plain is None else 0):
            if turn != first.turn:
                try:
                    yield search.first_of_turn(turn)
                except CannotRun as error:
                    self.notes.append(f"left out, the original refuses other values of what it compares: {error}")

    def _keep_first(self, cases: list[Case]) -> None:
        refused = ""
        for case in cases:
            if case.chooses_sizes and case.layout.elements(case.sizing) > self.request.limits.elements:
                refused = refused or "more elements than the limit"
                continue
            try:
                self._keep(case, self._attempt(case))
            except CannotRun as error:
                refused = refused or str(error)
            else:
                return
        others = f" (and {len(cases) - 1} other sizes)" if len(cases) > 1 else ""
        self.notes.append(f"left out, the original refuses it: {cases[0].text}{others}: {refused}")

    def _ask_empty(self, first: Case) -> None:
        cases = empty_cases(first)
        if cases and is_large(self.model):
            self.notes.append("sizes of 0 left out: the model is too large to be opened twice")
            return
        for name, case in cases:
            if time.monotonic() > self.deadline:
                return
            self.progress(f"original: {case.text}")
            try:
                outputs = self.careful.run(self.model, self.session, self.source.feeds(case))
            except Undecided:
                continue
            except CannotRun:
                self.accepted.refused.add(name)
            else:
                self.accepted.taken.add(name)
                self.empty_runs.append(Run(case, self.shelf.put(outputs)))

    def _attempt(self, case: Case) -> dict[str, Value]:
        return self.session.run(self.source.feeds(case))

    def _keep(self, case: Case, outputs: Mapping[str, Value]) -> None:
        self.progress(f"original: {case.text}")
        for name, value in outputs.items():
            self.scales[name] = max(self.scales.get(name, 0.0), scale_of(value))
        self.runs.append(Run(case, self.shelf.put(outputs)))

    def _rule(self, port: Port) -> Rule:
        return rule_of(element_type(port), self.traits.get(port.name, Traits()), self.scales.get(port.name, 0.0))

    def _draws(self, rules: Mapping[str, Rule]) -> dict[str, tuple[Draw, ...]]:
        """Repeats the first input set in the same session: what differs, or is known to be random, is drawn again."""
        first = self.runs[0]
        before = self.shelf.get(first.ticket)
        again = self._attempt(first.case)
        random = {
            name
            for name, value in before.items()
            if self.traits.get(name, Traits()).random or not compare(value, again[name], rules[name]).within
        }
        if not random:
            return {}
        repeats = [before, again, *self._repeated(first.case, DRAWS - 2)]
        return {name: tuple(summed_up(outputs[name]) for outputs in repeats) for name in before if name in random}

    def _repeated(self, case: Case, times: int) -> Iterator[dict[str, Value]]:
        for _ in range(times):
            yield self._attempt(case)


def element_type(port: Port) -> DType | None:
    """Of a tensor, or of the tensors inside a sequence or an optional."""
    if isinstance(port.dtype, DType):
        return port.dtype
    inner = port.dtype.rpartition("tensor(")[2].split(")")[0]
    name = {"float": "float32", "double": "float64"}.get(inner, inner)
    return DType(name) if name in DType.__members__.values() else None
