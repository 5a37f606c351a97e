"""Conditions on sizes and indices that symbols keep open.

Used as a guard, a condition stays a condition (`&`, `|`, `~`). Used where Python needs a yes or no, it asks the decider
in force: a prover follows both answers, everybody else has no symbols and never comes here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from superopt.ops.index import Atom, Poly


class Undecided(Exception):
    """A yes or no was needed about symbols, and nobody is there to follow both."""


class Condition(ABC):
    """One of the four kinds below."""

    @property
    @abstractmethod
    def atoms(self) -> frozenset[Atom]:
        """Of the indices in it."""

    def __and__(self, other: Condition | bool) -> Condition | bool:
        return both(self, other)

    def __or__(self, other: Condition | bool) -> Condition | bool:
        return negate(both(negate(self), negate(other)))

    def __invert__(self) -> Condition | bool:
        return negate(self)

    __rand__, __ror__ = __and__, __or__

    def __bool__(self) -> bool:
        return _decider.get()(self)


@dataclass(frozen=True, eq=False)
class AtLeastZero(Condition):
    index: Poly

    @property
    def atoms(self) -> frozenset[Atom]:
        return self.index.atoms

    def __str__(self) -> str:
        return f"{self.index} ≥ 0"


@dataclass(frozen=True, eq=False)
class Zero(Condition):
    index: Poly

    @property
    def atoms(self) -> frozenset[Atom]:
        return self.index.atoms

    def __str__(self) -> str:
        return f"{self.index} = 0"


@dataclass(frozen=True, eq=False)
class Not(Condition):
    of: Condition

    @property
    def atoms(self) -> frozenset[Atom]:
        return self.of.atoms

    def __str__(self) -> str:
        return f"not ({self.of})"


@dataclass(frozen=True, eq=False)
class Both(Condition):
    parts: tuple[Condition, ...]

    @property
    def atoms(self) -> frozenset[Atom]:
        return frozenset["Atom"]().union(*(part.atoms for part in self.parts))

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Both) else str(p) for p in self.parts)


def both(a: Condition | bool, b: Condition | bool) -> Condition | bool:
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return Both((*parts_of(a), *parts_of(b)))


def parts_of(condition: Condition) -> tuple[Condition, ...]:
    """Conditions that hold together exactly where this one does."""
    return condition.parts if isinstance(condition, Both) else (condition,)


def negate(condition: Condition | bool) -> Condition | bool:
    if isinstance(condition, bool):
        return not condition
    return condition.of if isinstance(condition, Not) else Not(condition)


def _nobody(condition: Condition) -> bool:
    raise Undecided(f"cannot decide {condition}")


_decider: ContextVar[Callable[[Condition], bool]] = ContextVar("decider", default=_nobody)


@contextmanager
def deciding(decide: Callable[[Condition], bool]) -> Generator[None]:
    """Let `decide` answer every open question while the block runs."""
    token = _decider.set(decide)
    try:
        yield
    finally:
        _decider.reset(token)
