"""An Einsum is a product of matrices, many where labels are shared by all, and what lays its operands out for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from superopt.cost.columns import Amounts, Column
from superopt.cost.measures import Measures, moved, operand, typed
from superopt.cost.products import SHARED, ragged
from superopt.cost.turning import turned
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node


def einsum(node: Node, op: str, measures: Measures) -> Amounts:
    given, result = _labels(str(node.attribute("equation", "")).replace(" ", ""))
    sizes: dict[str, int] = {}
    for labels, value in zip(given, node.inputs, strict=False):
        for label, size in zip(reversed(labels), reversed(measures.shape(value)), strict=False):
            sizes[label] = max(size, sizes.get(label, 1))
    right = operand(node, 1)
    style = "weights" if right is not None and is_weight(right) else "data"
    operations, touched = 2.0 * math.prod(sizes.values()), moved(node, measures)
    shared = [label for label in result if all(label in labels for labels in given)] if len(given) > 1 else []
    matrices = math.prod(sizes.get(label, 1) for label in shared)
    return (
        (Column("product", "operation", typed(node, style)), operations),
        *ragged(node, operations, measures),
        (Column("product", "byte", style), touched),
        (Column("product", "run"), float(operations >= SHARED)),
        *(((Column("product", "run", "matrix"), float(matrices)),) if style == "data" else ()),
        (Column("movement", "byte", typed(node, op)), touched),
        (Column("launch", "run", op), 1.0),
        *_laid_out(given, result, shared, sizes),
    )


def _labels(equation: str) -> tuple[list[str], str]:
    """Of the operands and of the result, which are those that stand once where it is not said."""
    left, arrow, result = equation.partition("->")
    once = sorted(label for label in left if label.isalpha() and left.count(label) == 1)
    return left.split(","), result if arrow else "".join(once)


def _laid_out(
    given: Sequence[str], result: str, shared: Sequence[str], sizes: dict[str, int]
) -> Iterator[tuple[Column, float]]:
    """Each operand as matrices, what is shared before rows and columns, and the result back from those."""
    if len(given) != 2 or "." in sizes:
        return
    summed = [label for label in sizes if label not in result]
    own = [[label for label in result if label in labels and label not in shared] for labels in given]
    for labels, rows in zip(given, own, strict=True):
        yield from _turned(labels, [*shared, *rows, *summed], sizes)
    yield from _turned("".join((*shared, *own[0], *own[1])), result, sizes)


def _turned(labels: str, order: Sequence[str], sizes: dict[str, int]) -> Amounts:
    kept = [label for label in order if label in labels]
    return turned([sizes.get(label, 1) for label in labels], [labels.index(label) for label in kept])
