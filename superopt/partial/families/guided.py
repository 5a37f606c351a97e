"""Families that know what they are after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.canvas import canvases
from superopt.partial.families.channels import folded
from superopt.partial.families.dilation import undilated
from superopt.partial.families.groups import regrouped
from superopt.partial.families.merged import merged
from superopt.partial.families.products import products
from superopt.partial.families.rounded import rounded
from superopt.partial.families.shifted import shifted
from superopt.partial.families.stacked import stacked
from superopt.partial.families.tiles import tiles
from superopt.partial.families.transposed import transposed
from superopt.partial.program import Mutant, Original, Shape

Family = Callable[[Original, Mapping[str, Shape], Registry], Iterator[Mutant]]
"""From a program, the shapes of its values, and what operators mean."""

GUIDED: tuple[Family, ...] = (
    canvases, tiles, stacked, undilated, rounded, regrouped, merged, shifted, transposed, products, folded,
)  # fmt: skip
