"""The pairs of a scene in the order in which they are looked at: the smallest first, each as its general law."""

from __future__ import annotations

from collections.abc import Iterable

from superopt.generate.abstract import Abstraction
from superopt.generate.candidate import first_of_its_names
from superopt.generate.recipe import Scene
from superopt.generate.sameness import canonical
from superopt.generate.stage import Stage
from superopt.generate.term import Pair
from superopt.generate.worth import rank

ORIGINALS = 2
"""Pairs kept for each general one, in case that the general one is not true."""


class Offers:
    """What is left to look at; `len` counts it."""

    def __init__(self, pairs: Iterable[Pair], stage: Stage, together: int) -> None:
        self._abstraction = Abstraction(stage)
        self._together = together
        self._given = stage.scene
        self._left = sorted(pairs, key=lambda pair: rank(pair, stage.scene), reverse=True)
        self._originals: dict[Pair, list[Pair]] = {}

    def __len__(self) -> int:
        return len(self._left)

    @property
    def scene(self) -> Scene:
        """With the inputs that general laws have made necessary so far."""
        return self._abstraction.scene

    def take(self) -> list[Pair]:
        """The next general laws; none has been returned before."""
        found: list[Pair] = []
        while self._left and len(found) < self._together:
            pair = self._left.pop()
            if not first_of_its_names(pair, self._given):
                continue
            general = canonical(self._abstraction.general(pair), self.scene)
            known = self._originals.get(general)
            if known is None:
                self._originals[general] = [pair]
                found.append(general)
            elif len(known) < ORIGINALS:
                known.append(pair)
        return found

    def originals(self, general: Pair) -> list[Pair]:
        """Pairs of which it is the general law, and which are not it."""
        return [pair for pair in self._originals.get(general, ()) if pair != general]
