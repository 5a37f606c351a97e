"""How a run is asked to end early, with what it has found so far; and what that is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Basis = Literal["predicted", "measured"]
"""Where a speed-up comes from: regions, timed, and their predicted shares of the model; or whole models, timed."""


@dataclass(frozen=True)
class Ending:
    """Both sides of it: whether somebody asks for an end, and from when on there is something to end with.

    A run that is asked searches no further. What it has is checked in full, timed in a part of the time, and
    returned under the same rules as ever.
    """

    is_asked: Callable[[], bool] = lambda: False
    is_worthwhile: Callable[[], None] = lambda: None
    is_worth: Callable[[float, Basis], None] = lambda speedup, basis: None
    """Told the best speed-up so far, each time that it is known better; under 1 the original is the best."""
