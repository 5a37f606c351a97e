"""Which rewrites made which region: by the names that both of them use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from superopt.explain.difference import Difference
from superopt.report import Rewrite


def rewrites_by_region(difference: Difference, rewrites: Iterable[Rewrite]) -> Mapping[int, list[Rewrite]]:
    """Regions as numbered by `superopt diff`. A rewrite between two states that are gone belongs to none."""
    places: dict[str, int] = {}
    values: dict[str, int] = {}
    _collect(difference, "", 0, places, values)
    found: dict[int, list[Rewrite]] = defaultdict(list)
    for rewrite in rewrites:
        hits = [places.get(place) for place in (rewrite.place, *rewrite.nodes)]
        hits += [values.get(name) for name in rewrite.results]
        for number in dict.fromkeys(hit for hit in hits if hit is not None):
            found[number].append(rewrite)
    return found


def _collect(difference: Difference, where: str, offset: int, places: dict[str, int], values: dict[str, int]) -> int:
    for region in difference.regions:
        for view, nodes in ((difference.before, region.before), (difference.after, region.after)):
            for node in nodes:
                places.setdefault(where + view.name(node), region.number + offset)
                for value in node.outputs:
                    values.setdefault(view.own_names.get(value, ""), region.number + offset)
    offset += len(difference.regions)
    for node, name, inside in difference.nested:
        offset = _collect(inside, f"{where}{difference.before.name(node)}/{name}/", offset, places, values)
    return offset
