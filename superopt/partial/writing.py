"""New steps as text, under names that nothing has yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
BOOL = 9
"""ONNX's number of the type."""
Ranges = tuple["tuple[int, int] | None", ...]
"""A part of a tensor: a range of each axis, None for all of it."""


class Writer:
    """Collects lines of a program; each call gets a name of its own unless one is given."""

    def __init__(self, taken: Collection[str]) -> None:
        self.taken = set(taken)
        self.lines: list[str] = []
        self._count = 0
        self._cuts: dict[str, tuple[str, Ranges]] = {}

    def put(self, call: str, name: str | None = None) -> str:
        name = name or self.fresh()
        self.lines.append(f"{name} = {call}")
        return name

    def fresh(self) -> str:
        while True:
            self._count += 1
            name = f"t{self._count}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def padded(self, x: str, before: Sequence[int], after: Sequence[int], *, first: int = 2) -> str:
        """`x` with zeros around the axes from `first` on; itself where there are none."""
        if not any(before) and not any(after):
            return x
        lead = [0] * first
        return self.put(f"Pad({x}, pads={[*lead, *before, *lead, *after]})")

    def cut(self, x: str, ranges: Ranges, name: str | None = None) -> str:
        """Elements `start` up to `stop` of each axis; None takes all of one. A part of a part is cut at once."""
        if x in self._cuts:
            x, outer = self._cuts[x]
            ranges = tuple(_within(a, b) for a, b in zip(outer, ranges, strict=True))
        chosen = [(k, r) for k, r in enumerate(ranges) if r is not None]
        if not chosen:
            return x if name is None else self.put(x, name)
        starts, ends = [r[0] for _, r in chosen], [r[1] for _, r in chosen]
        made = self.put(f"Slice({x}, starts={starts}, ends={ends}, axes={[k for k, _ in chosen]})", name)
        self._cuts[made] = (x, ranges)
        return made

    def known_cut(self, name: str, x: str, ranges: Ranges) -> None:
        """A value that is there already and is a part of another."""
        self._cuts[name] = (x, ranges)

    def moved(self, x: str, starts: Sequence[int], lengths: Sequence[int], sizes: Sequence[int]) -> str | None:
        """`x` seen through a frame on its axes after the first two, with zeros where the frame lies beyond it; None
        where it sees nothing else."""
        ranges: list[tuple[int, int] | None] = []
        before: list[int] = []
        after: list[int] = []
        for start, length, n in zip(starts, lengths, sizes, strict=True):
            low, high = max(start, 0), min(start + length, n)
            if low >= high:
                return None
            ranges.append(None if (low, high) == (0, n) else (low, high))
            before.append(low - start)
            after.append(start + length - high)
        return self.padded(self.cut(x, (None, None, *ranges)), before, after)

    def total(self, parts: Sequence[str], name: str | None = None) -> str:
        """The sum of the parts."""
        found = parts[0]
        for part in parts[1:-1]:
            found = self.put(f"Add({found}, {part})")
        return self.put(f"Add({found}, {parts[-1]})" if len(parts) > 1 else found, name)

    def split(self, x: str, counts: Sequence[object], axis: int) -> list[str]:
        if len(counts) == 1:
            return [x]
        names = [self.fresh() for _ in counts]
        self.lines.append(f"{', '.join(names)} = Split({x}, split={listing(counts)}, axis={axis})")
        return names

    def joined(self, parts: Sequence[str], axis: int, name: str | None = None) -> str:
        if len(parts) == 1:
            return parts[0] if name is None else self.put(parts[0], name)
        return self.put(f"Concat({', '.join(parts)}, axis={axis})", name)


def _within(outer: tuple[int, int] | None, inner: tuple[int, int] | None) -> tuple[int, int] | None:
    if outer is None or inner is None:
        return outer or inner
    return outer[0] + inner[0], outer[0] + inner[1]


def product(*factors: object) -> str:
    """Sizes multiplied, as text."""
    kept = [str(f) for f in factors if str(f) != "1"]
    return "*".join(f"({f})" if " " in f else f for f in kept) or "1"


def listing(parts: Iterable[object]) -> str:
    return f"[{', '.join(map(str, parts))}]"


def replaced(values: Sequence[T], axis: int, value: T) -> tuple[T, ...]:
    """The same values with another one at `axis`."""
    return (*values[:axis], value, *values[axis + 1 :])
