"""What to draw of a graph: boxes for nodes, pills for values that come from outside or leave, lines between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from superopt.explain.difference import Difference, Status
from superopt.explain.figures import plural
from superopt.explain.layout import Box
from superopt.explain.markup import shorten
from superopt.explain.regions import Region
from superopt.explain.view import View
from superopt.ir.graph import Node, Parameter, Value
from superopt.ir.types import TensorType, Type, format_dim

HEIGHT, PILL, NARROW, WIDE = 36.0, 30.0, 84.0, 190.0
LETTER, SMALL_LETTER, MONO_LETTER = 7.4, 6.1, 6.8
"""Widths of a letter in each font; generous, fonts differ."""

MOST_TITLE = 1200
"""Letters of a line of a tooltip; a Split of a hundred results has more."""

SHORT = 4
"""Unchanged nodes in a row that are drawn one by one in the whole picture."""


@dataclass(frozen=True)
class Shape:
    """What to draw in one place."""

    kind: str
    """Class of the drawing: a status, `value`, `constant` or `block`."""
    head: str
    foot: str
    title: str
    region: int | None = None
    """The changed region that it stands for in a picture of the whole."""

    @property
    def box(self) -> Box:
        head = len(self.head) * (MONO_LETTER if self.is_value else LETTER)
        width = max(head, len(self.foot) * SMALL_LETTER) + 22
        return Box(min(max(width, NARROW), WIDE), PILL if self.is_value else HEIGHT)

    @property
    def is_value(self) -> bool:
        return self.kind in ("value", "constant")


@dataclass(frozen=True)
class Sketch:
    """A picture before anything has its place; each line leads from an earlier shape to a later one."""

    shapes: tuple[Shape, ...]
    lines: tuple[tuple[int, int], ...]
    label: str
    """Says what it shows to who cannot see it."""


def whole(difference: Difference, side: int) -> Sketch:
    """One whole graph, long unchanged stretches folded.

    A run of its order made one box keeps lines leading forward: the picture has no cycle.
    """
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
            shapes.append(_value_shape(view, value))
    for run in _runs(view, statuses):
        lit = statuses[run[0]] != "kept"
        if not lit and len(run) > SHORT:
            add(_block_shape(view, run), run)
            continue
        for node in run:
            add(_node_shape(view, node, statuses[node], region=numbers[node] if lit else None), [node])
    for value in dict.fromkeys(view.graph.outputs):
        if value in index and value.node is not None:
            lines.append((index[value], len(shapes)))
            shapes.append(_value_shape(view, value))
    own = tuple((a, b) for a, b in lines if a != b)
    return Sketch(tuple(shapes), own, f"the graph {('before', 'after')[side]}: {plural(len(view.nodes), 'node')}")


def region_sides(difference: Difference, region: Region, number: int) -> tuple[Sketch, Sketch]:
    """A region as it was and as it is; a side without shapes has nothing to show."""
    why = {c.before: f"changed: {', '.join(c.reasons)}" for c in region.changed}
    why_after = {c.after: f"changed: {', '.join(c.reasons)}" for c in region.changed}
    old, new = difference.statuses
    return (
        some_nodes(difference.before, region.before, old, why, f"region {number} before"),
        some_nodes(
            difference.after, region.after, new, why_after, f"region {number} after", _folded_to(difference, region)
        ),
    )


def some_nodes(
    view: View,
    nodes: Sequence[Node],
    statuses: Mapping[Node, Status],
    reasons: Mapping[Node, str],
    label: str,
    constants: Iterable[Value] = (),
) -> Sketch:
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
    shapes = [_value_shape(view, value) for value in entering]
    index: dict[Value, int] = {value: i for i, value in enumerate(entering)}
    lines: list[tuple[int, int]] = []
    for node in nodes:
        lines += [(index[value], len(shapes)) for value in node.operands if value in index]
        index |= {value: len(shapes) for value in node.outputs}
        shapes.append(_node_shape(view, node, statuses[node], reasons.get(node, "")))
    for value in leaving:
        lines.append((index[value], len(shapes)))
        shapes.append(_value_shape(view, value))
    return Sketch(tuple(shapes), tuple(lines), label)


def _folded_to(difference: Difference, region: Region) -> list[Value]:
    """Constants that have the name of a value which the region computed before."""
    made = {difference.before.own_names.get(value) for node in region.before for value in node.outputs}
    return [Value(constant) for constant, name in difference.after.graph.constants.items() if name in made]


def _runs(view: View, statuses: Mapping[Node, str]) -> Iterator[list[Node]]:
    run: list[Node] = []
    for node in view.nodes:
        if run and (statuses[node] == "kept") != (statuses[run[0]] == "kept"):
            yield run
            run = []
        run.append(node)
    if run:
        yield run


def _node_shape(view: View, node: Node, status: Status, why: str = "", region: int | None = None) -> Shape:
    lines = [view.name(node), view.lines[node], *view.constant_lines([node]), *([why] if why else [])]
    title = "\n".join(shorten(line, MOST_TITLE) for line in lines)
    return Shape(status, shorten(node.kind.rsplit("::", 1)[-1], 24), _short_type(_first_type(node)), title, region)


def _block_shape(view: View, nodes: Collection[Node]) -> Shape:
    """A stretch of unchanged nodes as one box."""
    common = [kind.rsplit("::", 1)[-1] for kind, _ in Counter(node.kind for node in nodes).most_common(3)]
    named = "\n".join(view.name(node) for node in list(nodes)[:12])
    return Shape("block", f"{len(nodes)} unchanged", shorten(", ".join(common), 28), named)


def _value_shape(view: View, value: Value) -> Shape:
    name = view.names[value]
    if value.constant is not None:
        return Shape("constant", shorten(name, 28), _short_type(value.type), view.constant_line(value, value.constant))
    maker = "input of the graph" if isinstance(value.producer, Parameter) else ""
    if isinstance(value.producer, Node):
        maker = f"made by {view.name(value.producer)} ({value.producer.kind})"
    return Shape("value", shorten(name, 28), _short_type(value.type), f"{name}\n{maker}")


def _short_type(type_: Type) -> str:
    """The shape, in few letters; the element type only where it is not float32."""
    if not isinstance(type_, TensorType) or (type_.dtype is None and type_.shape is None):
        return ""
    if type_.shape is None:
        return f"{type_.dtype} of any shape"
    dims = "×".join(map(format_dim, type_.shape))
    dtype = "" if type_.dtype is None or type_.dtype.value == "float32" else f"{type_.dtype.value} "
    return shorten(f"{dtype}{dims or 'scalar'}", 30)


def _first_type(node: Node) -> Type:
    return node.types[0] if node.types else None
