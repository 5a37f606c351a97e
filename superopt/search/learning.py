"""What was predicted against what was measured: the predictor learns from it, and the report says how well it ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.cost.predict import Predictor
from superopt.ir.graph import Graph


class Learner:
    """Refits when told to; earlier predictions are kept as they were made."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self._observations: list[tuple[Graph, float]] = []
        self._pairs: list[tuple[float, float]] = []

    def observe(self, graph: Graph, predicted: float, measured: float) -> None:
        self._pairs.append((predicted, measured))
        self._observations.append((graph, measured))

    def refit(self) -> None:
        self.predictor.refit(self._observations)

    @property
    def rank_correlation(self) -> float | None:
        return spearman([p for p, _ in self._pairs], [m for _, m in self._pairs])


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than three pairs or where all are equal."""
    if len(a) < 3:
        return None
    x, y = _ranks(a), _ranks(b)
    if np.std(x) == 0 or np.std(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Equal values share the mean of their ranks."""
    array = np.asarray(values, np.float64)
    order = np.argsort(array, kind="stable")
    ranks = np.empty(len(array))
    ranks[order] = np.arange(len(array))
    for value in np.unique(array):
        ranks[array == value] = ranks[array == value].mean()
    return ranks
