"""An Einsum is a product of matrices, many where labels are shared by all, and what lays its operands out for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from specs.einsum import parsed
from superopt.cost.columns import Amounts, Column
from superopt.cost.measures import Measures, moved, operand, typed
from superopt.cost.products import SHARED, ragged
from superopt.cost.turning import turned
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node
from superopt.ops.formula import Illegal


def einsum(node: Node, op: str, measures: Measures) -> Amounts:
    right, touched = operand(node, 1), moved(node, measures)
    style = "weights" if right is not None and is_weight(right) else "data"
    common: Amounts = (
        (Column("product", "byte", style), touched),
        (Column("movement", "byte", typed(node, op)), touched),
        (Column("launch", "run", op), 1.0),
    )
    shapes = [measures.shape(value) for value in node.inputs]
    try:
        given, result = parsed(str(node.attribute("equation", "")), [len(shape) for shape in shapes])
    except Illegal:  # shapes that are not known, or no equation: the runtime says so
        return common
    sizes: dict[str, int] = {}
    for labels, shape in zip(given, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    operations = 2.0 * math.prod(sizes.values())
    shared = [label for label in result if all(label in labels for labels in given)] if len(given) > 1 else []
    matrices = math.prod(sizes[label] for label in shared)
    return (
        *common,
        (Column("product", "operation", typed(node, style)), operations),
        *ragged(node, operations, measures),
        (Column("product", "run"), float(operations >= SHARED)),
        *(((Column("product", "run", "matrix"), float(matrices)),) if style == "data" else ()),
        *_laid_out(given, result, shared, sizes),
    )


def _laid_out(
    given: Sequence[Sequence[str]], result: Sequence[str], shared: Sequence[str], sizes: dict[str, int]
) -> Iterator[tuple[Column, float]]:
    """Each operand as matrices, what is shared before rows and columns, and the result back from those."""
    if len(given) != 2:
        return
    summed = [label for label in sizes if label not in result]
    own = [[label for label in result if label in labels and label not in shared] for labels in given]
    for labels, rows in zip(given, own, strict=True):
        yield from _turned(labels, [*shared, *rows, *summed], sizes)
    yield from _turned([*shared, *own[0], *own[1]], result, sizes)


def _turned(labels: Sequence[str], order: Sequence[str], sizes: dict[str, int]) -> Amounts:
    places = [labels.index(label) for label in order if label in labels]
    return turned([sizes[label] for label in labels], places)
