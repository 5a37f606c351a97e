"""What may be done around a linear operator, whatever the sizes: data moved before and after it, its filters regrouped,
the attributes of its windows scaled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import prod
from typing import Any

from superopt.ops.registry import Registry
from superopt.partial.bilinear import Bilinear, bilinear, result_shape
from superopt.partial.moves import Dims, Fold, Grow, Move, Swap, cut, quotient, through
from superopt.partial.program import Original
from superopt.partial.writing import Writer

WASTE = 1.25
"""How many more elements a result may have than are wanted; the others are cut off."""

Changes = tuple[tuple[str, tuple[int, ...]], ...]
"""Attributes by name."""


@dataclass(frozen=True)
class Plan:
    before: tuple[Move, ...]
    filters: tuple[Move, ...] = ()
    copies: int = 1
    """How often the filters are repeated, each time for a group of its own."""
    windows: Changes = ()
    """Attributes that change."""
    after: tuple[Move, ...] = ()

    @property
    def theme(self) -> tuple[object, ...]:
        """Equal for plans that differ in the order of elements and in windows alone."""
        return (*(m.theme for m in (*self.before, *self.filters)), self.copies)

    @property
    def effort(self) -> tuple[object, ...]:
        """Smaller for simpler plans; what is undone as it was done comes first."""
        undone = tuple(m.inverse for m in reversed(self.before) if m.inverse is not None) == self.after
        return (len(self.before) + len(self.after) + len(self.filters), not undone, self.copies, len(self.windows))

    def __str__(self) -> str:
        parts = [*map(str, self.before), *(f"filters {m}" for m in self.filters)]
        if self.copies > 1:
            parts.append(f"filters for each of {self.copies} groups")
        parts += [f"{name} {list(values)}" for name, values in self.windows]
        return ", ".join([*parts, *map(str, self.after)])


def plans(subject: Bilinear) -> list[Plan]:
    """All that give a result of the right shape, the simplest first; sizes must be numbers."""
    found: dict[Plan, None] = {}
    steps = {n for name in ("strides", "dilations") for n in subject.windows.get(name, ())}
    for factor in sorted({2, *steps} - {1}):
        for before in _chains(subject.dims[0], factor):
            for filters, copies in _regrouped(subject, before, factor):
                for windows in _scaled(subject, before, factor):
                    plan = Plan(before, filters, copies, windows)
                    made = _result(subject, plan)
                    for after in () if made is None else _ways_back(made, subject.wanted, factor):
                        found[replace(plan, after=after)] = None
    return sorted(found, key=lambda plan: plan.effort)


def _chains(dims: Dims, factor: int) -> Iterator[tuple[Move, ...]]:
    """Short chains of moves of a tensor."""
    for source, target in permutations(range(len(dims)), 2):
        for coarse, first in product((True, False), repeat=2):
            fold, grow = Fold(source, target, factor, coarse, first), Grow(source, factor)
            if fold.dims(dims) is not None:
                yield (fold,)
            elif through((grow, fold), dims) is not None:
                yield (grow, fold)
    for one, other in combinations(range(len(dims)), 2):
        yield (Swap(one, other),)


def _regrouped(subject: Bilinear, before: tuple[Move, ...], factor: int) -> Iterator[tuple[tuple[Move, ...], int]]:
    """Filters for an input of another shape: as they are, folded too, or once for each of several groups."""
    if _result(subject, Plan(before)) is not None:
        yield (), 1
        if isinstance(before[0], Swap):
            yield before, 1
        return
    for filters in _chains(subject.dims[1], factor):
        if _result(subject, Plan(before, filters)) is not None:
            yield filters, 1
    if subject.is_one_group:
        yield (), factor


def _scaled(subject: Bilinear, before: tuple[Move, ...], factor: int) -> Iterable[Changes]:
    """Attributes of windows, with those of one axis multiplied or divided, or with axes exchanged."""
    found: dict[Changes, None] = {(): None}
    rank = len(subject.windows.get("strides", ()))
    for move in before if rank else ():
        if isinstance(move, Swap) and move.one >= 2:
            order = list(range(rank))
            order[move.one - 2], order[move.other - 2] = move.other - 2, move.one - 2
            exchanged = {n: [v[half + k] for half in range(0, len(v), rank) for k in order] for n, v in _lists(subject)}
            found[_changes(subject, exchanged)] = None
        for axis in (move.source - 2, move.target - 2) if isinstance(move, Fold) else ():
            for scales in product((1, factor, 1 / factor), repeat=len(subject.windows)) if axis >= 0 else ():
                scaled = dict(_lists(subject))
                for scale, values in zip(scales, scaled.values(), strict=True):
                    values[axis::rank] = [n * scale for n in values[axis::rank]]
                if all(n % 1 == 0 for values in scaled.values() for n in values):
                    found[_changes(subject, scaled)] = None
    return found


def _lists(subject: Bilinear) -> list[tuple[str, list[float]]]:
    return [(name, list(values)) for name, values in subject.windows.items()]


def _changes(subject: Bilinear, windows: dict[str, list[float]]) -> Changes:
    whole = {name: tuple(map(int, values)) for name, values in windows.items()}
    return tuple((name, values) for name, values in whole.items() if values != subject.windows[name])


def _ways_back(dims: Dims, wanted: Dims, factor: int) -> Iterator[tuple[Move, ...]]:
    """To a shape that only has to be cut."""
    if len(dims) != len(wanted) or not _count(wanted) <= _count(dims) <= WASTE * _count(wanted):
        return
    for moves in ((), *_chains(dims, factor)):
        made = through(moves, dims)
        if made is not None and all(a >= b for a, b in zip(made, wanted, strict=True)):
            yield moves


def _count(dims: Dims) -> int:
    return prod(n for n in dims if isinstance(n, int))


def _result(subject: Bilinear, plan: Plan) -> Dims | None:
    """The shape that the operator gives, before anything is moved back."""
    x, k, *rest = subject.dims
    moved, folded = through(plan.before, x), through(plan.filters, k)
    if moved is None or folded is None:
        return None
    operands = [moved, *((dims[0] * plan.copies, *dims[1:]) for dims in (folded, *rest))]
    arguments: dict[str, Any] = {**subject.arguments, **{name: list(values) for name, values in plan.windows}}
    if plan.copies > 1:
        arguments["group"] = plan.copies
    return result_shape(subject.operator, operands, arguments)


def written(subject: Bilinear, plan: Plan) -> list[str] | None:
    """The plan carried out; None where a size does not allow it."""
    dims = _result(subject, plan)
    made = through(plan.after, dims)
    if dims is None or made is None or len(made) != len(subject.wanted):
        return None
    writer = Writer(subject.original.names)
    x = _moved(writer, subject.names[0], subject.dims[0], plan.before)
    weights = [_moved(writer, subject.names[1], subject.dims[1], plan.filters), *subject.names[2:]]
    arguments = {name: str(value) for name, value in subject.call.arguments}
    arguments |= {name: str([*values]) for name, values in plan.windows}
    if plan.copies > 1:
        weights = [writer.joined([name] * plan.copies, 0) for name in weights]
        arguments["group"] = str(plan.copies)
    parts = [x, *weights, *(f"{name}={value}" for name, value in arguments.items())]
    y = _moved(writer, writer.put(f"{subject.operator.kind}({', '.join(parts)})"), dims, plan.after)
    kept = cut(writer, y, made, subject.wanted)
    if kept is None:
        return None
    writer.put(kept, subject.target)
    return writer.lines


def _moved(writer: Writer, x: str, dims: Dims, moves: Iterable[Move]) -> str:
    for move in moves:
        x = move.write(writer, x, dims)
        following = move.dims(dims)
        assert following is not None
        dims = following
    return x


def divided(original: Original, plan: Plan, registry: Registry) -> Bilinear | None:
    """The program with symbols for parts of the axes that the plan cuts; None where they are no multiples."""
    subject = bilinear(original, registry)
    if subject is None:
        return None
    for dims, moves in zip(subject.dims, (plan.before, plan.filters), strict=False):
        for move in moves:
            n = dims[move.source] if isinstance(move, Fold) else 0
            if not isinstance(move, Fold) or isinstance(n, int) or quotient(n, move.factor) is not None:
                continue
            symbols = [str(atom) for monomial in n.terms for atom in monomial]
            if len(symbols) != 1 or original.sizes[symbols[0]] % move.factor:
                return None
            return divided(original.divided(symbols[0], move.factor), plan, registry)
    return subject
