"""Operators of any number of operands that broadcast together."""

from __future__ import annotations

from typing import Any

from superopt.ops.draws import broadcasting, size
from superopt.ops.registry import Draw


def draw(rng: Any) -> Draw:
    return broadcasting(size(rng, 1, 4))(rng)
