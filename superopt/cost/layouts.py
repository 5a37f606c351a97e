"""What moves images where convolutions want their channels last: Transposes that onnxruntime adds, and which it drops.

From one convolution to the next images keep channels last, through everything that treats axes alike. An operator to
which their order matters, a Reshape or a product, gets channels first, by a Transpose; a convolution behind it gets
them last again. Transposes of the model that do the same cancel against those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Literal, TypeAlias

from superopt.cost.kinds import KINDS
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node, Parameter, Value, make_node
from superopt.ir.types import TensorType

Images: TypeAlias = Literal["first", "last", "last inside"]
"""Where channels are: first; last, at the borders too, as in a part of a model that has them so (see channels.py); or
last between operators, and first at the borders, as in such a model itself."""

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_IMAGES = frozenset(
    ("Conv", "ConvTranspose", "AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization",
     "DepthToSpace", "SpaceToDepth")
)  # fmt: skip
"""Operators with kernels for channels last; onnxruntime's own FusedConv has none."""
_ORDERED = frozenset(("view", "product", "einsum", "attention", "recurrent"))
"""Kinds of operators to which the order of axes matters."""
_ORDERED_TOO = frozenset(("LayerNormalization", "Gather", "GatherND", "ScatterND", "Expand", "Tile"))
_PASSING = frozenset(("Identity", "Dropout"))
_SIZES = frozenset(("Shape", "Size"))
"""Views to which it does not; of an image they want to know its sizes alone."""


def movements(nodes: Sequence[Node], outputs: Iterable[Value], images: Images) -> tuple[list[Node], set[Node]]:
    """The Transposes that are added to nodes in order, and which of the nodes are dropped."""
    if images == "first" or not any(_is_of_images(node) for node in nodes):
        return [], set()
    found = _Movements(images == "last")
    for node in nodes:
        found.pass_through(node)
    for value in outputs:
        found.leave(value)
    return list(found.added.values()), found.dropped


class _Movements:
    def __init__(self, at_borders: bool) -> None:
        self._at_borders = at_borders
        self.added: dict[Value, Node] = {}
        self.dropped: set[Node] = set()
        self._last: set[Value] = set()

    def pass_through(self, node: Node) -> None:
        given = [value for value in node.inputs if value is not None and not is_weight(value)]
        if node.op == "Transpose" and not node.domain and given:
            self._turn(node, given[0])
        elif _is_of_images(node):
            if given:
                self._need_last(given[0])
            self._last.update(filter(_is_image, node.outputs))
        elif _is_ordered(node):
            for value in given:
                self._need_first(value)
        elif node.op not in _SIZES and any(map(self._is_last, filter(_is_image, given))):
            for value in given:
                self._need_last(value)
            self._last.update(filter(_is_image, node.outputs))

    def _turn(self, node: Node, given: Value) -> None:
        """One of the model's own: two in a row are one, or none."""
        order = node.attribute("perm")
        if self._is_last(given):
            self.dropped.update([node] if order == TO_LAST else [])
        elif order == TO_FIRST:
            self.dropped.add(node)
            self._last.update(node.outputs)

    def leave(self, value: Value) -> None:
        """At the border."""
        if not self._at_borders:
            self._need_first(value)
        elif value.node is not None:
            self._need_last(value)

    def _need_last(self, value: Value) -> None:
        if _is_image(value) and not self._is_last(value):
            self._add(value)

    def _need_first(self, value: Value) -> None:
        if _is_image(value) and self._is_last(value):
            self._add(value)

    def _add(self, value: Value) -> None:
        type_ = value.tensor_type
        assert type_ is not None
        self.added.setdefault(value, make_node("Transpose", [value], {"perm": TO_LAST}, [turned(type_, TO_LAST)]))

    def _is_last(self, value: Value) -> bool:
        return value in self._last or (self._at_borders and isinstance(value.producer, Parameter) and _is_image(value))


def turned(type_: TensorType, order: tuple[int, ...]) -> TensorType:
    assert type_.shape is not None
    return TensorType(type_.dtype, tuple(type_.shape[axis] for axis in order))


def _is_of_images(node: Node) -> bool:
    return node.op in _IMAGES and not node.domain


def _is_ordered(node: Node) -> bool:
    if node.domain:
        return True
    return node.op in _ORDERED_TOO or (KINDS.get(node.op) in _ORDERED and node.op not in _PASSING | _SIZES)


def _is_image(value: Value) -> bool:
    """Of four axes, whose order matters: more than one channel and more than one pixel."""
    type_ = value.tensor_type
    if type_ is None or type_.rank != 4 or type_.shape is None or type_.dtype is None or not type_.dtype.is_float:
        return False
    channels, *pixels = type_.shape[1:]
    return channels != 1 and (
        not all(isinstance(n, int) for n in pixels) or prod(n for n in pixels if isinstance(n, int)) != 1
    )
