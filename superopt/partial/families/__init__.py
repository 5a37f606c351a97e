"""Families of mutants. Each is a function from a program to mutants of it, right or wrong: what is wrong is found,
mended and proved elsewhere. A new family joins the list and needs nothing else."""

from __future__ import annotations

from superopt.partial.families.canvas import canvases
from superopt.partial.families.channels import folded
from superopt.partial.families.dilation import undilated
from superopt.partial.families.enumerated import enumerated
from superopt.partial.families.groups import regrouped
from superopt.partial.families.guided import GUIDED, Family
from superopt.partial.families.merged import merged
from superopt.partial.families.products import products
from superopt.partial.families.rounded import rounded
from superopt.partial.families.shifted import shifted
from superopt.partial.families.stacked import stacked
from superopt.partial.families.tiles import tiles
from superopt.partial.families.transposed import transposed

FAMILIES: tuple[Family, ...] = (*GUIDED, enumerated)

BY_NAME: dict[str, Family] = {family.__module__.rpartition(".")[2]: family for family in FAMILIES}
"""A family is called as its file."""

__all__ = [
    "BY_NAME", "FAMILIES", "Family", "canvases", "enumerated", "folded", "merged", "products", "regrouped", "rounded",
    "shifted", "stacked", "tiles", "transposed", "undilated",
]  # fmt: skip
