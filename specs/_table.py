"""Constant tables of integers, looked up by index: affine in the index where they are, else in affine pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from superopt.ops.element import ZERO, Element, select
from superopt.ops.formula import covered
from superopt.ops.index import Index, Poly, same

Nested: TypeAlias = "Index | Sequence[Nested]"
MOST_PIECES = 64


def table_shape(table: Nested) -> tuple[int, ...]:
    if isinstance(table, int | Poly):
        return ()
    return (len(table), *(table_shape(table[0]) if len(table) else ()))


def entries(table: Nested) -> list[Index]:
    """In row-major order."""
    if isinstance(table, int | Poly):
        return [table]
    return [entry for row in table for entry in entries(row)]


def look_up(
    shape: tuple[int, ...], flat: Sequence[Index], indices: tuple[Index, ...], use: Callable[[Index], Element]
) -> Element:
    """`use` of the entry at `indices`, of a table given by its shape and entries."""
    if not flat:
        return ZERO  # an empty table has no index
    steps = _steps(shape, flat)
    if steps is not None:
        return use(flat[0] + _dot(steps, indices))
    linear = _dot(_row_major(shape), indices)
    pieces = _pieces(flat)
    covered(len(pieces) <= MOST_PIECES, f"a table of more than {MOST_PIECES} affine pieces")
    *earlier, (start, step) = pieces
    value = use(flat[start] + (linear - start) * step)
    end = start
    for start, step in reversed(earlier):
        value = select(linear < end, use(flat[start] + (linear - start) * step), value)
        end = start
    return value


def _row_major(shape: tuple[int, ...]) -> list[int]:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.insert(0, steps[0] * n)
    return steps[: len(shape)]


def _dot(steps: Sequence[Index], indices: tuple[Index, ...]) -> Index:
    total: Index = 0
    for step, index in zip(steps, indices, strict=True):
        total = total + step * index
    return total


def _steps(shape: tuple[int, ...], flat: Sequence[Index]) -> list[Index] | None:
    """One step for each axis, where entries grow evenly along all of them."""
    strides = _row_major(shape)
    steps: list[Index] = [flat[s] - flat[0] if n > 1 else 0 for n, s in zip(shape, strides, strict=True)]
    for position, entry in enumerate(flat):
        place: tuple[Index, ...] = tuple(position // s % n for n, s in zip(shape, strides, strict=True))
        if not same(entry, flat[0] + _dot(steps, place)):
            return None
    return steps


def _pieces(flat: Sequence[Index]) -> list[tuple[int, Index]]:
    """Runs with even steps: (first position, step)."""
    pieces: list[tuple[int, Index]] = []
    start = 0
    while start < len(flat):
        step: Index = flat[start + 1] - flat[start] if start + 1 < len(flat) else 0
        end = start + 1
        while end < len(flat) and same(flat[end], flat[start] + step * (end - start)):
            end += 1
        pieces.append((start, step))
        start = end
    return pieces
