"""The stages of a run, in the order in which they are first reached; whoever shows how far a run is knows no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

StageName = Literal[
    "loading",
    "rewriting",
    "mining",
    "calibrating",
    "mutating",
    "searching",
    "timing regions",
    "checking",
    "looking for the rewrite that changed the outputs",
    "timing",
    "options",
    "drawing",
]
Tell = Callable[[StageName, str], None]
"""Told the stage, and what happens in it."""
