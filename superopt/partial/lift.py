"""Programs in a graph that families know what to do with, as text in the language of rules.

Batch, channels and filters become symbols, so that what is found for one layer serves all that differ in them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from superopt.ir.graph import Node, Value
from superopt.ops.index import Index
from superopt.partial.local import element_functions
from superopt.partial.program import Original, Shape, parse_original
from superopt.rewrite.piece import Piece
from superopt.rewrite.reading import Reading
from superopt.rewrite.rewriter import Rewriter

MOST_IMAGES = 8
MOST_BRANCHES = 6


@dataclass(frozen=True)
class Place:
    """A program and the nodes that it is written down from."""

    original: Original
    nodes: tuple[Node, ...]
    around: tuple[Node, ...]
    """With the functions of its results, which a runtime may fuse with them."""


def originals(piece: Piece, rewriter: Rewriter) -> Iterator[Original]:
    """Each program once."""
    yield from {str((p.original.given, p.original.steps)): p.original for p in places(piece, rewriter)}.values()


def places(piece: Piece, rewriter: Rewriter) -> Iterator[Place]:
    """Heads that several images share, branches of one input, and single operators."""
    finder = _Finder(piece, rewriter)
    for group in (*finder.heads(), *finder.branches(), *([n] for n in piece.nodes)):
        found = _Lifted(finder, group).original()
        if found is not None:
            below = finder.below(group) if len(group) == 1 else []
            yield Place(found, tuple(group), (*group, *(node for level in below for node in level)))


class _Finder:
    """Groups of nodes that belong together."""

    def __init__(self, piece: Piece, rewriter: Rewriter) -> None:
        self.piece, self.rewriter = piece, rewriter
        self.functions = element_functions(rewriter.reader.registry)

    def reading(self, node: Node | None) -> Reading | None:
        found = None if node is None else self.rewriter.reader.read(node)
        return found if isinstance(found, Reading) else None

    def shape(self, value: Value) -> tuple[Index, ...] | None:
        return self.rewriter.sizes.shape(value)

    def heads(self) -> Iterator[list[Node]]:
        """Convolutions of different images with the same weights, with the layers before them that are shared too."""
        groups: dict[tuple[object, ...], list[Node]] = {}
        for node in self.piece.nodes:
            key = self._shared(node)
            if node.op == "Conv" and key is not None:
                groups.setdefault(key, []).append(node)
        inside: set[Node] = set()
        for group in reversed(list(groups.values())):
            if 2 <= len(group) <= MOST_IMAGES and inside.isdisjoint(group):
                levels = [*self._above(group), group, *self.below(group)]
                inside.update(node for level in levels for node in level)
                yield [node for level in levels for node in level]

    def branches(self) -> Iterator[list[Node]]:
        """Convolutions of one input that differ in their kernels."""
        for readers in self.piece.users.values():
            found = [n for n in readers if n.op == "Conv" and not n.domain]
            if (
                2 <= len(found) <= MOST_BRANCHES
                and len({str(n.inputs[1] and self.shape(n.inputs[1])) for n in found}) > 1
            ):
                yield found

    def _shared(self, node: Node) -> tuple[object, ...] | None:
        """Equal for nodes that do the same with the same weights to the value that they read first."""
        reading = self.reading(node)
        if reading is None or node.domain or not reading.operands or len(node.types) != 1:
            return None
        if node.op != "Conv" and (node.op not in self.functions or len(reading.operands) != 1):
            return None
        return (node.op, reading.operands[1:], str(sorted(reading.arguments.items(), key=str)))

    def _alone(self, node: Node) -> bool:
        """Whether one node reads its result, and nobody else."""
        value = Value(node)
        return len(self.piece.reading(value)) == 1 and value not in self.piece.results

    def _above(self, group: Sequence[Node]) -> list[list[Node]]:
        """Layers before these, from the first one on; up to a convolution, or functions would be left over."""
        levels: list[list[Node]] = []
        kept = 0
        current = list(group)
        while True:
            sources = [v.node if v is not None else None for v in (n.inputs[0] for n in current)]
            found = [n for n in sources if n is not None and self._alone(n)]
            keys = {self._shared(n) for n in found}
            if len(found) < len(group) or len(set(found)) < len(group) or len(keys) != 1 or None in keys:
                return levels[:kept][::-1]
            levels.append(found)
            current = found
            if found[0].op == "Conv":
                kept = len(levels)

    def below(self, group: Sequence[Node]) -> list[list[Node]]:
        """Functions of the results."""
        levels: list[list[Node]] = []
        current = list(group)
        while all(map(self._alone, current)):
            found = [self.piece.reading(Value(n))[0] for n in current]
            keys = {self._shared(n) for n in found}
            if found[0].op not in self.functions or len(keys) != 1 or None in keys or len(set(found)) < len(group):
                break
            levels.append(found)
            current = found
        return levels


class _Lifted:
    """Nodes written down as a program."""

    def __init__(self, finder: _Finder, nodes: Sequence[Node]) -> None:
        self.finder, self.nodes = finder, nodes
        self.names: dict[Value, str] = {}
        self.dims: dict[str, list[str]] = {}
        self.sizes: dict[str, int] = {}
        self.lines: list[str] = []

    def original(self) -> Original | None:
        """None where an operator is another one, or a size is not known."""
        for node in self.nodes:
            reading = self.finder.reading(node)
            known = reading is not None and not node.domain and len(node.types) == 1
            if reading is None or not known or not self._step(node, reading):
                return None
        inputs = [(name, dims) for name, dims in self.dims.items() if not name.startswith("y")]
        given = "  ".join(f"{name}: [{', '.join(dims)}]" for name, dims in inputs)
        return parse_original(given, "\n".join(self.lines), self.sizes)

    def _step(self, node: Node, reading: Reading) -> bool:
        shapes = [None if v is None else _numbers(self.finder.shape(v)) for v in reading.operands]
        if None in shapes or len(set(reading.operands)) < len(shapes):
            return False
        write = {"Conv": self._convolution, "ConvTranspose": self._spread, "MatMul": self._product}.get(node.op)
        if write is None:
            write = self._function if node.op in self.finder.functions and self.lines else None
        operands = [v for v in reading.operands if v is not None]
        dims = None if write is None else write(operands, [s for s in shapes if s is not None], reading.arguments)
        if dims is None:
            return False
        name = f"y{len(self.lines)}"
        arguments = [f"{key}={_text(value)}" for key, value in reading.arguments.items() if _is_written(key, value)]
        if dims[0] == "group":  # a symbol of its own
            arguments = [a for a in arguments if not a.startswith("group=")] + ["group=g"]
            dims = dims[1:]
        self.lines.append(f"{name} = {node.op}({', '.join([*(self.names[v] for v in operands), *arguments])})")
        self.names[Value(node)], self.dims[name] = name, dims
        return True

    def _convolution(
        self, operands: list[Value], shapes: list[Shape], arguments: Mapping[str, Any]
    ) -> list[str] | None:
        x, k = shapes[0], shapes[1]
        group = arguments.get("group", 1)
        is_new = operands[0] not in self.names
        if group != 1 and (len(self.nodes) > 1 or not is_new):
            return None
        if is_new:
            known = self.names.get(operands[1])
            channels = self.dims[known][1] if known is not None else self._symbol("c", x[1] // group)
            if group != 1:
                self.sizes["g"] = group
            self._input("x", operands[0], [self._batch(x[0]), _times(group, channels), *map(str, x[2:])])
        inner = self.dims[self.names[operands[0]]][1]
        if operands[1] not in self.names:
            filters = _times(group, self._symbol("o", k[0] // group))
            per_group = inner.removeprefix("g*") if group != 1 else inner
            self._input("k", operands[1], [filters, per_group, *map(str, k[2:])])
        filters = self.dims[self.names[operands[1]]][0]
        for bias in operands[2:]:
            if bias not in self.names:
                self._input("b", bias, [filters])
        found = ["n", filters, *[""] * (len(x) - 2)]
        return found if group == 1 else ["group", *found]

    def _spread(self, operands: list[Value], shapes: list[Shape], arguments: Mapping[str, Any]) -> list[str] | None:
        if arguments.get("group", 1) != 1:
            return None
        x, k = shapes[0], shapes[1]
        channels, filters = self._symbol("c", x[1]), self._symbol("o", k[1])
        self._input("x", operands[0], [self._batch(x[0]), channels, *map(str, x[2:])])
        self._input("k", operands[1], [channels, filters, *map(str, k[2:])])
        for bias in operands[2:]:
            self._input("b", bias, [filters])
        return ["n", filters]

    def _product(self, operands: list[Value], shapes: list[Shape], arguments: Mapping[str, Any]) -> list[str] | None:
        a, b = shapes
        if len(b) != 2 or len(a) < 2:
            return None
        inner = self._symbol("i", b[0])
        rows = [self._symbol("m", n) for n in a[:-1]]
        self._input("x", operands[0], [*rows, inner])
        self._input("k", operands[1], [inner, self._symbol("p", b[1])])
        return [*rows, "p"]

    def _function(self, operands: list[Value], shapes: list[Shape], arguments: Mapping[str, Any]) -> list[str] | None:
        known = self.names.get(operands[0])
        return None if known is None or len(operands) > 1 else self.dims[known]

    def _input(self, prefix: str, value: Value, dims: list[str]) -> None:
        self.names[value] = name = f"{prefix}{len(self.names)}"
        self.dims[name] = dims

    def _batch(self, size: int) -> str:
        """One batch for all images."""
        self.sizes.setdefault("n", size)
        return "n" if self.sizes["n"] == size else str(size)

    def _symbol(self, prefix: str, size: int) -> str:
        name = f"{prefix}{len(self.sizes)}"
        self.sizes[name] = size
        return name


def _times(group: int, symbol: str) -> str:
    return symbol if group == 1 else f"g*{symbol}"


def _numbers(shape: tuple[Index, ...] | None) -> Shape | None:
    """Sizes as numbers; a batch that only the run will tell counts as 1."""
    if shape is None:
        return None
    found = [1 if k == 0 and not isinstance(n, int) else n for k, n in enumerate(shape)]
    numbers = tuple(n for n in found if isinstance(n, int))
    return numbers if len(numbers) == len(found) else None


def _is_written(name: str, value: object) -> bool:
    """What the families read; a kernel's shape is that of its filters, groups of one are none."""
    return value is not None and name not in ("kernel_shape", "auto_pad") and not (name == "group" and value == 1)


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else str(value)
