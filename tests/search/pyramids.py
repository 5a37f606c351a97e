# pyright: basic
"""Pyramids whose levels share a head, searched once for all tests."""

from __future__ import annotations

from functools import cache, partial

import onnx
import pytest

from superopt.partial.corrected import mutants
from superopt.partial.families import canvases
from superopt.search.hunted import Hunted
from superopt.search.workshop import Workshop
from tests.search.heads import LEVELS, head, hunted


@cache
def pyramid(layers: int) -> tuple[onnx.ModelProto, Workshop, Hunted]:
    """Two levels where there are several layers."""
    proto = head(LEVELS if layers == 1 else LEVELS[:2], layers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))
        return (proto, *hunted(proto))
