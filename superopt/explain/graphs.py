"""The two graphs side by side: as a whole with unchanged stretches folded, then region by region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from superopt.explain.difference import Difference
from superopt.explain.drawing import Shape, block_shape, draw, draw_nodes, node_shape, value_shape
from superopt.explain.figures import plural
from superopt.explain.markup import Markup, element, shorten
from superopt.explain.order import Stretch, in_order
from superopt.explain.regions import Region
from superopt.explain.summary import region_lines, region_place
from superopt.explain.view import View
from superopt.ir.graph import Node, Value

SHORT = 4
"""Unchanged nodes in a row that are drawn one by one in the whole picture."""

Remarks = Mapping[int, Markup]
"""What else is to be said of a region, by its number."""


def graphs_section(difference: Difference, remarks: Remarks) -> Markup:
    regions = list(_all_regions(difference))
    if not regions:
        return element("p", "The two graphs have the same structure: nothing to show.", class_="dim")
    return (
        _legend()
        + _whole(difference)
        + element("h3", plural(len(regions), "changed region"), id="regions")
        + _index(regions)
        + element("div", list(_stack(difference, "", 0, remarks)), class_="stack")
    )


def _all_regions(difference: Difference, where: str = "", offset: int = 0) -> Iterator[tuple[int, str, int | None]]:
    """Number, place and model of every region, bodies included, numbered as in `superopt diff`."""
    for region in difference.regions:
        like = None if region.like is None else region.like + offset
        yield region.number + offset, where + region_place(difference, region), like
    offset += len(difference.regions)
    for node, name, inside in difference.nested:
        for found in _all_regions(inside, f"{where}{difference.before.name(node)}/{name}/", offset):
            offset = found[0]
            yield found


def _legend() -> Markup:
    parts = [("removed", "removed"), ("added", "added"), ("changed", "changed"), ("kept", "unchanged")]
    return element("p", [element("span", word, class_=f"key {kind}") for kind, word in parts], class_="legend")


def _index(regions: Sequence[tuple[int, str, int | None]]) -> Markup:
    """Every region as a number to jump to; those that only repeat another one are paler."""
    return element(
        "nav",
        [
            element("a", str(number), href=f"#region-{number}", title=place, class_="again" if like else None)
            for number, place, like in regions
        ],
        class_="index",
        aria_label="changed regions",
    )


def _whole(difference: Difference) -> Markup:
    sides = [_folded(difference, 0), _folded(difference, 1)]
    return element(
        "div",
        [_view(picture, caption) for picture, caption in zip(sides, ("before", "after"), strict=True)],
        class_="sides whole",
    )


def _view(picture: Markup, caption: str) -> Markup:
    return element("figure", element("figcaption", caption), element("div", picture, class_="view", tabindex=0))


def _folded(difference: Difference, side: int) -> Markup:
    """One whole graph. A run of its order made one box keeps lines leading forward: the picture has no cycle."""
    view, statuses = (difference.before, difference.after)[side], difference.statuses[side]
    numbers = difference.region_of[side]
    shapes: list[Shape] = []
    index: dict[Value, int] = {}
    lines: list[tuple[int, int]] = []

    def add(shape: Shape, nodes: Sequence[Node]) -> None:
        lines.extend((index[v], len(shapes)) for n in nodes for v in n.operands if v in index)
        index.update({value: len(shapes) for node in nodes for value in node.outputs})
        shapes.append(shape)

    read = {value for node in view.nodes for value in node.operands}
    for value in (Value(parameter) for parameter in view.graph.inputs):
        if value in read:
            index[value] = len(shapes)
            shapes.append(value_shape(view, value))
    for run in _runs(view, statuses):
        lit = statuses[run[0]] != "kept"
        if not lit and len(run) > SHORT:
            add(block_shape(view, run), run)
            continue
        for node in run:
            target = f"#region-{numbers[node]}" if lit else None
            add(node_shape(view, node, statuses[node], target=target), [node])
    for value in dict.fromkeys(view.graph.outputs):
        if value in index and value.node is not None:
            lines.append((index[value], len(shapes)))
            shapes.append(value_shape(view, value))
    own = [(a, b) for a, b in lines if a != b]
    return draw(shapes, own, f"the graph {('before', 'after')[side]}: {plural(len(view.nodes), 'node')}")


def _runs(view: View, statuses: Mapping[Node, str]) -> Iterator[list[Node]]:
    run: list[Node] = []
    for node in view.nodes:
        if run and (statuses[node] == "kept") != (statuses[run[0]] == "kept"):
            yield run
            run = []
        run.append(node)
    if run:
        yield run


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
        offset += sum(1 for _ in _all_regions(inside))


def _stretch(difference: Difference, stretch: Stretch) -> Markup:
    kinds = Counter(node.kind for node in stretch.nodes).most_common()
    shown = " · ".join(f"{shorten(kind, 40)} {count}" if count > 1 else shorten(kind, 40) for kind, count in kinds[:8])
    more = f" · {len(kinds) - 8} more" if len(kinds) > 8 else ""
    picture = draw_nodes(difference.before, stretch.nodes, difference.statuses[0], {}, "unchanged nodes")
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
    why = {c.before: f"changed: {', '.join(c.reasons)}" for c in region.changed}
    why_after = {c.after: f"changed: {', '.join(c.reasons)}" for c in region.changed}
    before = draw_nodes(difference.before, region.before, difference.statuses[0], why, f"region {number} before")
    folded = _folded_to(difference, region)
    after = draw_nodes(
        difference.after, region.after, difference.statuses[1], why_after, f"region {number} after", folded
    )
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
            _side(before, region.before, "before"),
            _side(after, (*region.after, *folded), "after"),
            class_="sides",
        ),
        element("details", element("summary", "as text"), element("pre", _lit(listing)), class_="text"),
        class_="region",
        id=f"region-{number}",
        open=region.like is None,
    )


def _folded_to(difference: Difference, region: Region) -> list[Value]:
    """Constants that have the name of a value which the region computed before."""
    made = {difference.before.own_names.get(value) for node in region.before for value in node.outputs}
    return [Value(constant) for constant, name in difference.after.graph.constants.items() if name in made]


def _side(picture: Markup, drawn: Sequence[Node | Value], caption: str) -> Markup:
    if drawn:
        return _view(picture, caption)
    return element("figure", element("figcaption", caption), element("p", "nothing", class_="dim nothing"))


def _lit(listing: str) -> list[str]:
    kinds = {"-": "gone", "+": "new"}
    return [element("span", f"{line}\n", class_=kinds.get(line[:1])) for line in listing.splitlines()]
