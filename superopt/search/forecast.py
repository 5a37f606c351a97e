"""What a search has gained so far, as a speed-up of the whole model: measured ratios of regions over predicted shares.

A region's time is not its time in the model, and its share is predicted. So this is a forecast, to be shown while the
search goes on; what the model gains, whole models say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Forecast:
    weights: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})
    """Predicted time of each graph of the model by its place: its own, and the bodies of its nodes."""
    _left: dict[str, float] = field(default_factory=dict[str, float])
    """Part of a graph's time that is left after the rounds before."""
    _saved: dict[str, float] = field(default_factory=dict[str, float])
    """Part of what is left that this round saves."""

    def begin(self, where: str) -> None:
        """A round over a graph: shares are from now on those of the graph as it has become."""
        self._left[where] = self._of(where)
        self._saved[where] = 0.0

    def gain(self, where: str, share: float, before: float, after: float) -> None:
        """Regions with this share of the graph's time were measured before and after."""
        self._saved[where] = self._saved.get(where, 0.0) + share * (1.0 - after / before)

    @property
    def speedup(self) -> float:
        total = sum(self.weights.values())
        left = sum(weight * self._of(where) for where, weight in self.weights.items())
        return total / left if left > 0.0 else 1.0

    def _of(self, where: str) -> float:
        return self._left.get(where, 1.0) * (1.0 - self._saved.get(where, 0.0))
