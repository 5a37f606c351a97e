"""Graphs as SVG: boxes for nodes, pills for values that come from outside or leave, lines between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from superopt.explain.difference import Status
from superopt.explain.layout import Box, Placed, lay_out
from superopt.explain.markup import Markup, element, shorten
from superopt.explain.view import View
from superopt.ir.graph import Node, Parameter, Value
from superopt.ir.types import TensorType, Type, format_dim

HEIGHT, PILL, NARROW, WIDE = 36.0, 30.0, 84.0, 190.0
LETTER, SMALL_LETTER, MONO_LETTER = 7.4, 6.1, 6.8
"""Widths of a letter in each font; generous, fonts differ."""

MARGIN = 8.0
MOST_TITLE = 1200
"""Letters of a tooltip; a Split of a hundred results has more."""


@dataclass(frozen=True)
class Shape:
    """What to draw in one place."""

    kind: str
    """Class of the drawing: a status, `value`, `constant` or `block`."""
    head: str
    foot: str
    title: str
    target: str | None = None
    """Where a click leads."""

    @property
    def box(self) -> Box:
        head = len(self.head) * (MONO_LETTER if self.is_value else LETTER)
        width = max(head, len(self.foot) * SMALL_LETTER) + 22
        return Box(min(max(width, NARROW), WIDE), PILL if self.is_value else HEIGHT)

    @property
    def is_value(self) -> bool:
        return self.kind in ("value", "constant")


def draw(shapes: Sequence[Shape], lines: Iterable[tuple[int, int]], label: str) -> Markup:
    """One picture; `label` says what it shows to who cannot see it."""
    boxes = [shape.box for shape in shapes]
    placed = lay_out(boxes, list(lines))
    width, height = round(placed.width + 2 * MARGIN), round(placed.height + 2 * MARGIN)
    drawn = [_box(shape, boxes[i], placed.centres[i]) for i, shape in enumerate(shapes)]
    return element(
        "svg",
        element("g", _lines(shapes, boxes, placed), class_="lines"),
        drawn,
        viewBox=f"{-MARGIN:g} {-MARGIN:g} {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
    )


def node_shape(view: View, node: Node, status: Status, why: str = "", target: str | None = None) -> Shape:
    lines = [view.name(node), view.lines[node], *view.constant_lines([node]), *([why] if why else [])]
    title = "\n".join(shorten(line, MOST_TITLE) for line in lines)
    return Shape(status, shorten(node.kind.rsplit("::", 1)[-1], 24), short_type(_first_type(node)), title, target)


def draw_nodes(
    view: View,
    nodes: Sequence[Node],
    statuses: Mapping[Node, Status],
    reasons: Mapping[Node, str],
    label: str,
    constants: Iterable[Value] = (),
) -> Markup:
    """Some nodes of a graph, in its order, with the values that lead into them and out of them.

    Constants are left out, but for those named.
    """
    inside = set(nodes)
    results = set(view.graph.outputs)
    entering = dict.fromkeys(constants)
    entering |= dict.fromkeys(
        value for node in nodes for value in node.operands if value.constant is None and value.node not in inside
    )
    leaving = [
        value
        for node in nodes
        for value in node.outputs
        if value in results or any(reader not in inside for reader, _ in view.readers.get(value, ()))
    ]
    shapes = [value_shape(view, value) for value in entering]
    index: dict[Value, int] = {value: i for i, value in enumerate(entering)}
    lines: list[tuple[int, int]] = []
    for node in nodes:
        lines += [(index[value], len(shapes)) for value in node.operands if value in index]
        index |= {value: len(shapes) for value in node.outputs}
        shapes.append(node_shape(view, node, statuses[node], reasons.get(node, "")))
    for value in leaving:
        lines.append((index[value], len(shapes)))
        shapes.append(value_shape(view, value))
    return draw(shapes, lines, label)


def block_shape(view: View, nodes: Collection[Node]) -> Shape:
    """A stretch of unchanged nodes as one box."""
    common = [kind.rsplit("::", 1)[-1] for kind, _ in Counter(node.kind for node in nodes).most_common(3)]
    named = "\n".join(view.name(node) for node in list(nodes)[:12])
    return Shape("block", f"{len(nodes)} unchanged", shorten(", ".join(common), 28), named)


def short_type(type_: Type) -> str:
    """The shape, in few letters; the element type only where it is not float32."""
    if not isinstance(type_, TensorType) or (type_.dtype is None and type_.shape is None):
        return ""
    if type_.shape is None:
        return f"{type_.dtype} of any shape"
    dims = "×".join(map(format_dim, type_.shape))
    dtype = "" if type_.dtype is None or type_.dtype.value == "float32" else f"{type_.dtype.value} "
    return shorten(f"{dtype}{dims or 'scalar'}", 30)


def value_shape(view: View, value: Value) -> Shape:
    name = view.names[value]
    if value.constant is not None:
        return Shape("constant", shorten(name, 28), short_type(value.type), view.constant_line(value, value.constant))
    maker = "input of the graph" if isinstance(value.producer, Parameter) else ""
    if isinstance(value.producer, Node):
        maker = f"made by {view.name(value.producer)} ({value.producer.kind})"
    return Shape("value", shorten(name, 28), short_type(value.type), f"{name}\n{maker}")


def _first_type(node: Node) -> Type:
    return node.types[0] if node.types else None


def _box(shape: Shape, box: Box, centre: tuple[float, float]) -> Markup:
    x, y = centre
    radius = box.height / 2 if shape.is_value else 7
    top, left = y - box.height / 2, x - box.width / 2
    content = [
        element("title", shape.title),
        element(
            "rect", x=round(left), y=round(top), width=round(box.width), height=round(box.height), rx=round(radius)
        ),
        element("text", shape.head, x=round(x), y=round(y - 2 if shape.foot else y + 4), class_="h"),
    ]
    if shape.foot:
        content.append(element("text", shape.foot, x=round(x), y=round(y + 11), class_="f"))
    drawn = element("g", content, class_=f"n {shape.kind}")
    return drawn if shape.target is None else element("a", drawn, href=shape.target)


def _lines(shapes: Sequence[Shape], boxes: Sequence[Box], placed: Placed) -> Iterable[Markup]:
    for (a, b), points in placed.lines.items():
        if not points:
            yield from (_stub(placed, boxes, a, 1, shapes[b].title), _stub(placed, boxes, b, -1, shapes[a].title))
            continue
        (x, y), (end, bottom) = points[0], points[-1]
        first, last = (x, y + boxes[a].height / 2), (end, bottom - boxes[b].height / 2 - 3)
        yield element("path", d=_curve([first, *points[1:-1], last]))


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through the points, vertical at both ends and where it leaves the others from its source."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    if all(x == points[0][0] for x, _ in points):
        return f"{path}V{points[-1][1]:.0f}"
    slopes = [(0.0, points[1][1] - points[0][1])]
    slopes += [((c - a) / 2, (d - b) / 2) for (a, b), (c, d) in zip(points, points[2:], strict=False)]
    if len(points) > 2:
        slopes[-1] = (0.0, slopes[-1][1])
    slopes.append((0.0, points[-1][1] - points[-2][1]))
    for (x, y), (dx, dy), (nx, ny), (ex, ey) in zip(points, slopes, points[1:], slopes[1:], strict=False):
        third = 2 if len(points) == 2 else 3
        path += (
            f"C{x + dx / third:.0f} {y + dy / third:.0f} {nx - ex / third:.0f} {ny - ey / third:.0f} {nx:.0f} {ny:.0f}"
        )
    return path


def _stub(placed: Placed, boxes: Sequence[Box], at: int, direction: int, other: str) -> Markup:
    """The end of a line too long to draw; a tooltip says where it leads."""
    x, y = placed.centres[at]
    y += direction * (boxes[at].height / 2 + (0 if direction > 0 else 3))
    where = "goes to" if direction > 0 else "comes from"
    start, end = (y, y + 12) if direction > 0 else (y - 12, y)
    return element(
        "g",
        element("title", f"{where} {other.splitlines()[0]}"),
        element("path", d=f"M{x:g} {start:g}V{end:g}"),
        class_="far",
    )
