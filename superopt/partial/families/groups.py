"""Grouped convolutions with fewer groups, down to a dense one: filters with zeros for the channels they do not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, product

MOST_GROUPS = 64
WIDEST = 8
"""Groups that are joined into one, at most: of the new filters all but one in so many elements are zero."""


def regrouped(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None:
        return
    # which filters belong to a group is a quotient: the prover wants numbers there
    found = single(original.pinned(name for name in original.sizes if name != found.batch), shapes)
    if found is None or not found.window.group.isdigit():
        return
    groups = int(found.window.group)
    if not 1 < groups <= MOST_GROUPS:
        return
    for joined in range(2, min(groups, WIDEST) + 1):
        if groups % joined == 0:
            doc = f"{groups} groups as {groups // joined}."
            yield found.mutant("groups", _written(found, groups, joined), doc)


def _written(found: Single, groups: int, joined: int) -> list[str]:
    writer, w = Writer(found.original.names), found.window
    each = f"({found.filters})//{groups}" if not found.filters.isdigit() else str(int(found.filters) // groups)
    parts = writer.split(w.k, [each] * groups, 0)
    wide = [_widened(writer, found, k, j % joined, joined) for j, k in enumerate(parts)]
    writer.put(w.call(w.x, writer.joined(wide, 0), group=str(groups // joined)), w.target)
    return writer.lines


def _widened(writer: Writer, found: Single, k: str, place: int, joined: int) -> str:
    """Filters that read the channels of one group, among those of all that are joined."""
    zeros = [0] * found.window.rank
    before, after = (product(n, found.per_group) if n else 0 for n in (place, joined - 1 - place))
    return writer.put(f"Pad({k}, pads={listing([0, before, *zeros, 0, after, *zeros])})")
