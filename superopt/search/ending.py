"""How a run is asked to end early, with what it has found so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ending:
    """Both sides of it: whether somebody asks for an end, and from when on there is something to end with.

    A run that is asked searches no further. What it has is checked in full, timed in a part of the time, and
    returned under the same rules as ever.
    """

    is_asked: Callable[[], bool] = lambda: False
    is_worthwhile: Callable[[], None] = lambda: None
