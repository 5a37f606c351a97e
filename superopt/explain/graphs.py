"""The two graphs side by side: as a whole with unchanged stretches folded, then region by region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from superopt.explain.difference import Difference
from superopt.explain.drawing import draw
from superopt.explain.figures import plural
from superopt.explain.markup import Markup, element, shorten
from superopt.explain.order import Stretch, in_order
from superopt.explain.regions import Region
from superopt.explain.sketches import Sketch, region_sides, some_nodes, whole
from superopt.explain.summary import Numbered, all_regions, region_lines, region_place

Remarks = Mapping[int, Markup]
"""What else is to be said of a region, by its number."""


def graphs_section(difference: Difference, remarks: Remarks) -> Markup:
    regions = list(all_regions(difference))
    if not regions:
        return element("p", "The two graphs have the same structure: nothing to show.", class_="dim")
    return (
        _legend()
        + _whole(difference)
        + element("h3", plural(len(regions), "changed region"), id="regions")
        + _index(regions)
        + element("div", list(_stack(difference, "", 0, remarks)), class_="stack")
    )


def _legend() -> Markup:
    parts = [("removed", "removed"), ("added", "added"), ("changed", "changed"), ("kept", "unchanged")]
    return element("p", [element("span", word, class_=f"key {kind}") for kind, word in parts], class_="legend")


def _index(regions: Sequence[Numbered]) -> Markup:
    """Every region as a number to jump to; those that only repeat another one are paler."""
    return element(
        "nav",
        [
            element("a", str(r.number), href=f"#region-{r.number}", title=r.place, class_="again" if r.like else None)
            for r in regions
        ],
        class_="index",
        aria_label="changed regions",
    )


def _whole(difference: Difference) -> Markup:
    sides = [draw(whole(difference, 0)), draw(whole(difference, 1))]
    return element(
        "div",
        [_view(picture, caption) for picture, caption in zip(sides, ("before", "after"), strict=True)],
        class_="sides whole",
    )


def _view(picture: Markup, caption: str) -> Markup:
    return element("figure", element("figcaption", caption), element("div", picture, class_="view", tabindex=0))


def _stack(difference: Difference, where: str, offset: int, remarks: Remarks) -> Iterator[Markup]:
    for item in in_order(difference):
        if isinstance(item, Stretch):
            yield _stretch(difference, item)
        else:
            yield _region(difference, item, where, offset, remarks)
    offset += len(difference.regions)
    for node, name, inside in difference.nested:
        inner = f"{where}{difference.before.name(node)}/{name}/"
        yield element("h4", "inside ", element("code", inner.rstrip("/")))
        yield from _stack(inside, inner, offset, remarks)
        offset += sum(1 for _ in all_regions(inside))


def _stretch(difference: Difference, stretch: Stretch) -> Markup:
    kinds = Counter(node.kind for node in stretch.nodes).most_common()
    shown = " · ".join(f"{shorten(kind, 40)} {count}" if count > 1 else shorten(kind, 40) for kind, count in kinds[:8])
    more = f" · {len(kinds) - 8} more" if len(kinds) > 8 else ""
    picture = draw(some_nodes(difference.before, stretch.nodes, difference.statuses[0], {}, "unchanged nodes"))
    return element(
        "details",
        element(
            "summary",
            element("b", plural(len(stretch.nodes), "unchanged node")),
            element("span", shown + more, class_="dim"),
        ),
        element("div", picture, class_="view", tabindex=0),
        class_="quiet",
    )


def _region(difference: Difference, region: Region, where: str, offset: int, remarks: Remarks) -> Markup:
    number = region.number + offset
    parts = [(region.removed, "removed"), (region.added, "added"), (len(region.changed), "changed")]
    before, after = region_sides(difference, region, number)
    place = where + region_place(difference, region)
    head = element(
        "summary",
        element("b", f"Region {number}"),
        element("span", ", ".join(f"{count} {word}" for count, word in parts if count)),
        element("code", shorten(place, 80), title=place),
        element("span", f"like region {region.like + offset}", class_="dim") if region.like is not None else "",
    )
    listing = "\n".join(region_lines(difference, region))
    return element(
        "details",
        head,
        remarks.get(number, ""),
        element(
            "div",
            _side(before, "before"),
            _side(after, "after"),
            class_="sides",
        ),
        element("details", element("summary", "as text"), element("pre", _lit(listing)), class_="text"),
        class_="region",
        id=f"region-{number}",
        open=region.like is None,
    )


def _side(sketch: Sketch, caption: str) -> Markup:
    if sketch.shapes:
        return _view(draw(sketch), caption)
    return element("figure", element("figcaption", caption), element("p", "nothing", class_="dim nothing"))


def _lit(listing: str) -> list[str]:
    kinds = {"-": "gone", "+": "new"}
    return [element("span", f"{line}\n", class_=kinds.get(line[:1])) for line in listing.splitlines()]
