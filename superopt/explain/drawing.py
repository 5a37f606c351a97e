"""Sketches as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.explain.layout import Box, Placed, lay_out
from superopt.explain.markup import Markup, element
from superopt.explain.sketches import Shape, Sketch

MARGIN = 8.0


def draw(sketch: Sketch) -> Markup:
    boxes = [shape.box for shape in sketch.shapes]
    placed = lay_out(boxes, sketch.lines)
    width, height = round(placed.width + 2 * MARGIN), round(placed.height + 2 * MARGIN)
    drawn = [_box(shape, boxes[i], placed.centres[i]) for i, shape in enumerate(sketch.shapes)]
    return element(
        "svg",
        element("g", _lines(sketch.shapes, boxes, placed), class_="lines"),
        drawn,
        viewBox=f"{-MARGIN:g} {-MARGIN:g} {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=sketch.label,
    )


def line_path(boxes: Sequence[Box], line: tuple[int, int], points: Sequence[tuple[float, float]]) -> str:
    """The way of a line from the foot of one box to the head of another, in the words of SVG."""
    (x, y), (end, bottom) = points[0], points[-1]
    first, last = (x, y + boxes[line[0]].height / 2), (end, bottom - boxes[line[1]].height / 2 - 3)
    return _curve([first, *points[1:-1], last])


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
    return drawn if shape.region is None else element("a", drawn, href=f"#region-{shape.region}")


def _lines(shapes: Sequence[Shape], boxes: Sequence[Box], placed: Placed) -> Iterable[Markup]:
    for (a, b), points in placed.lines.items():
        if not points:
            yield from (_stub(placed, boxes, a, 1, shapes[b].title), _stub(placed, boxes, b, -1, shapes[a].title))
            continue
        yield element("path", d=line_path(boxes, (a, b), points))


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
