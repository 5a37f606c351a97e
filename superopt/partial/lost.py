"""Whether what is no number gets lost: a NaN of an input that one side of a rule passes on and the other does not.

Each input has one in turn. What does not depend on it is not computed again, nor is what was computed of the same
numbers before: of most NaNs everything that follows is soon one, so that of a long program little is left to compute.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from superopt.ops.domains import Reals
from superopt.ops.evaluate import Array, evaluate, sized
from superopt.ops.formula import Tensor
from superopt.ops.registry import Registry
from superopt.partial.program import GivenUp, Original, instance, shape_of
from superopt.partial.running import reads, sources, work
from superopt.rewrite.rule import Rule

MOST_READ, MOST_AT_ONCE = 1 << 30, 1 << 28
"""Numbers that may be read in all runs together, and in the first one."""
MOST_KEPT = 1 << 28
"""Bytes of what is remembered from one NaN to the next."""


def loses_nan(rule: Rule, registry: Registry, *, seed: int = 0) -> bool:
    """Whether a NaN somewhere in an input reaches an element of the left side's results and not the right side's."""
    runs = _Runs(rule, registry, np.random.default_rng(seed))
    return any(runs.lose(given.name) for given in rule.given)


@dataclass(frozen=True)
class _Line:
    """A step of either side."""

    name: str
    tensor: Tensor
    sources: tuple[str, ...]
    reads: int


class _Runs:
    """Both sides of a rule on random numbers, with symbols as 1; then with a NaN here and there."""

    def __init__(self, rule: Rule, registry: Registry, rng: np.random.Generator) -> None:
        self._rng = rng
        self._lines: list[_Line] = []
        self._values: dict[str, Array] = {}
        self._read = self._kept = 0
        self._known: dict[tuple[object, ...], Array] = {}
        sizes = dict.fromkeys(rule.sizes, 1)
        _refuse_large(
            sum(work(Original(rule.given, side, sizes), registry) for side in (rule.left, rule.right)), MOST_AT_ONCE
        )
        program = instance(rule, sizes, registry, self._first)
        for name, tensor in program.inputs.items():
            self._values[name] = rng.standard_normal(shape_of(tensor))
        sides = [program.run(side) for side in (rule.left, rule.right)]
        self._results = [tuple(sources(side[name])[0] for side in sides) for name in rule.results]

    def _first(self, name: str, tensor: Tensor) -> Tensor:
        line = _Line(f"{name}#{len(self._lines)}", tensor, sources(tensor), reads(tensor))
        self._lines.append(line)
        self._values[line.name] = self._computed(line, ChainMap(self._values))
        return sized(tensor.shape, line.name)

    def _computed(self, line: _Line, values: ChainMap[str, Array]) -> Array:
        self._read += line.reads
        _refuse_large(self._read, MOST_READ)
        found = evaluate(line.tensor, values, Reals())
        found[np.isnan(found)] = np.nan  # all of them with the same bits
        return found

    def lose(self, name: str) -> bool:
        """Whether a NaN in this input gets lost."""
        spoiled = self._values[name].copy()
        if not spoiled.size:
            return False
        spoiled.flat[int(self._rng.integers(spoiled.size))] = np.nan
        changed = self._changed(name, spoiled)
        values = ChainMap(changed, self._values)
        return any(np.any(np.isnan(values[left]) & ~np.isnan(values[right])) for left, right in self._results)

    def _changed(self, name: str, spoiled: Array) -> dict[str, Array]:
        """All that is another number when this input is."""
        changed, marks = {name: spoiled}, {name: _mark(spoiled)}
        for line in self._lines:
            key = (line.name, *((source, marks[source]) for source in line.sources if source in marks))
            if len(key) == 1:
                continue
            found = self._known.get(key)
            if found is None:
                found = self._computed(line, ChainMap(changed, self._values))
                self._remember(key, found)
            if not np.array_equal(found, self._values[line.name], equal_nan=True):
                changed[line.name], marks[line.name] = found, _mark(found)
        return changed

    def _remember(self, key: tuple[object, ...], found: Array) -> None:
        self._kept += found.nbytes
        if self._kept > MOST_KEPT:
            self._known, self._kept = {}, found.nbytes
        self._known[key] = found


def _refuse_large(read: int, most: int) -> None:
    if read > most:
        raise GivenUp(f"too large to be run with a NaN: {read:.1e} numbers would be read")


def _mark(values: Array) -> bytes:
    """Equal for equal numbers."""
    return blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()
