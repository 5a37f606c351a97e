"""Which rewrites made which region: by the names that both of them use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from superopt.explain.difference import Difference
from superopt.report import Rewrite


def rewrites_by_region(difference: Difference, rewrites: Sequence[Rewrite]) -> Mapping[int, list[Rewrite]]:
    """Regions as numbered by `superopt diff`.

    A rewrite whose values are all gone again belongs to the region of those made together with it, if that is one.
    """
    names: dict[str, int] = {}
    _collect(difference, "", 0, names)
    hits = [_hits(rewrite, names) for rewrite in rewrites]
    together: dict[object, set[int]] = defaultdict(set)
    for rewrite, numbers in zip(rewrites, hits, strict=True):
        together[rewrite.region, tuple(rewrite.nodes)] |= set(numbers)
    found: dict[int, list[Rewrite]] = defaultdict(list)
    for rewrite, numbers in zip(rewrites, hits, strict=True):
        around = together[rewrite.region, tuple(rewrite.nodes)] if rewrite.region is not None else set[int]()
        for number in numbers or (around if len(around) == 1 else ()):
            found[number].append(rewrite)
    return found


def _hits(rewrite: Rewrite, names: Mapping[str, int]) -> list[int]:
    """A pass tells the node it was made at, a rule the values it computes anew; both with the way through bodies."""
    where = rewrite.place.removesuffix(rewrite.results[0]) if rewrite.results else ""
    told = (rewrite.place, *(f"{where}{result}" for result in rewrite.results))
    return list(dict.fromkeys(names[name] for name in told if name in names))


def _collect(difference: Difference, where: str, offset: int, names: dict[str, int]) -> int:
    """Names of nodes and of their values, with the region they are in; how many regions there are."""
    for region in difference.regions:
        for view, nodes in ((difference.before, region.before), (difference.after, region.after)):
            for node in nodes:
                own = [view.name(node), *(view.own_names[v] for v in node.outputs if v in view.own_names)]
                for name in own:
                    names.setdefault(where + name, region.number + offset)
    offset += len(difference.regions)
    for node, name, inside in difference.nested:
        offset = _collect(inside, f"{where}{difference.before.name(node)}/{name}/", offset, names)
    return offset
