"""Seconds per unit of work: what the predictor multiplies amounts by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from superopt.cost.columns import Amounts, Column


@dataclass(frozen=True)
class Coefficients:
    """By column; one that is missing is priced like its general column, and that one like nothing known: 0."""

    seconds: Mapping[Column, float] = field(default_factory=dict[Column, float])
    spared: float = 0.0
    """Seconds of a launch among others. No measured time contains it: the empty model, whose time is subtracted, has a
    launch of its own."""

    def of(self, column: Column) -> float:
        found = self.seconds.get(column)
        return self.seconds.get(column.general, 0.0) if found is None else found

    def price(self, amounts: Amounts) -> float:
        return sum(self.of(column) * amount for column, amount in amounts)


# Orders of magnitude, for a device on which nothing has been measured: first a few CPU cores, then a large GPU that
# launches recorded kernels. Both are where fits of measured times start from, and they do not go far.
PRIORS = Coefficients(
    {
        Column("launch", "run"): 7e-7,
        Column("launch", "run", "view"): 2e-7,
        Column("launch", "run", "bias"): 1e-12,
        Column("launch", "run", "weights widened"): 1e-12,
        Column("absorbed", "byte"): 2e-11,
        Column("element-wise", "byte"): 3e-11,
        Column("element-wise", "element", "broadcast"): 1e-15,
        Column("element-wise", "run", "row"): 1e-15,
        Column("channel-wise", "element"): 1e-15,
        Column("function", "element"): 2e-9,
        Column("movement", "byte"): 3e-11,
        Column("movement", "element"): 5e-10,
        Column("movement", "element", "turned any way"): 1e-15,
        Column("piece", "run"): 1e-8,
        Column("piece", "run", "words of Concat"): 1e-15,
        Column("piece", "run", "words of Split"): 1e-15,
        Column("piece", "run", "blocks turned"): 1e-15,
        Column("reduction", "element"): 3e-10,
        Column("reduction", "run", "row"): 1e-15,
        Column("pool", "element"): 3e-10,
        Column("convolution", "operation"): 3e-11,
        Column("convolution", "operation", "depthwise"): 3e-10,
        Column("convolution", "operation", "depthwise 9"): 8e-11,
        Column("convolution", "operation", "thin"): 1e-13,
        Column("convolution", "operation", "thin float16"): 1e-13,
        Column("convolution", "operation", "ragged float16"): 1e-15,
        Column("convolution", "operation", "ragged bfloat16"): 1e-15,
        Column("convolution", "element"): 5e-10,
        Column("convolution", "element", "bias"): 1e-15,
        Column("convolution", "byte"): 5e-11,
        Column("convolution", "run"): 2e-7,
        Column("product", "operation"): 3e-11,
        Column("product", "operation", "ragged"): 1e-15,
        Column("product", "operation", "ragged float16"): 1e-15,
        Column("product", "operation", "ragged bfloat16"): 1e-15,
        Column("product", "byte"): 2e-11,
        Column("product", "element", "bias"): 1e-15,
        Column("product", "run"): 5e-6,
        Column("product", "run", "matrix"): 1e-12,
        Column("product", "run", "by addresses"): 1e-12,
        Column("attention", "operation"): 4e-11,
        Column("attention", "element", "biased"): 1e-15,
        Column("attention", "element", "biased on the way"): 1e-15,
        Column("recurrent", "operation"): 3e-11,
        Column("recurrent", "run"): 3e-6,
    }
)

ON_CUDA = Coefficients(
    {
        Column("launch", "run"): 2e-6,
        Column("launch", "run", "view"): 1e-7,
        Column("launch", "run", "bias"): 1.5e-6,
        Column("launch", "run", "weights widened"): 5e-6,
        Column("absorbed", "byte"): 1e-13,
        Column("element-wise", "byte"): 4e-13,
        Column("element-wise", "element", "broadcast"): 2e-12,
        Column("element-wise", "run", "row"): 6e-10,
        Column("channel-wise", "element"): 2.5e-12,
        Column("function", "element"): 1e-12,
        Column("movement", "byte"): 5e-13,
        Column("movement", "element"): 2e-12,
        Column("movement", "element", "turned any way"): 1.5e-12,
        Column("piece", "run"): 1e-13,
        Column("piece", "run", "words of Concat"): 1e-12,
        Column("piece", "run", "words of Split"): 4e-12,
        Column("piece", "run", "blocks turned"): 4e-10,
        Column("reduction", "element"): 2e-12,
        Column("reduction", "run", "row"): 4e-10,
        Column("pool", "element"): 1e-12,
        Column("convolution", "operation"): 2e-14,
        Column("convolution", "operation", "depthwise"): 3e-13,
        Column("convolution", "operation", "depthwise 9"): 3e-13,
        Column("convolution", "operation", "thin"): 5e-14,
        Column("convolution", "operation", "thin float16"): 2e-13,
        Column("convolution", "operation", "ragged float16"): 1e-14,
        Column("convolution", "operation", "ragged bfloat16"): 1e-14,
        Column("convolution", "element"): 1e-15,
        Column("convolution", "element", "bias"): 2e-12,
        Column("convolution", "byte"): 5e-13,
        Column("convolution", "run"): 1e-8,
        Column("product", "operation"): 1e-14,
        Column("product", "operation", "ragged"): 1e-15,
        Column("product", "operation", "ragged float16"): 6e-15,
        Column("product", "operation", "ragged bfloat16"): 6e-15,
        Column("product", "byte"): 5e-13,
        Column("product", "element", "bias"): 4e-12,
        Column("product", "run"): 1e-6,
        Column("product", "run", "matrix"): 4e-9,
        Column("product", "run", "by addresses"): 5e-6,
        Column("attention", "operation"): 2e-14,
        Column("attention", "element", "biased"): 1.5e-11,
        Column("attention", "element", "biased on the way"): 2e-12,
        Column("recurrent", "operation"): 1e-13,
        Column("recurrent", "run"): 1e-5,
    }
)


def priors(target: str) -> Coefficients:
    return ON_CUDA if target == "cuda" else PRIORS
