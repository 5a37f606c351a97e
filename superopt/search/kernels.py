"""Operators that the device has no kernel for, as far as candidates tell that could not run.

onnxruntime's documentation does not say which activation or type a fused operator knows on which device; its sessions
do. What failed has some operator that nothing which ran has. Whoever has all of those is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from superopt.ir.graph import Node
from superopt.search.candidate import Candidate

Use: TypeAlias = tuple[str, tuple[tuple[str, str], ...], str]
"""An operator with what its attributes say in words (such as an activation), and the type of its first result."""


class Kernels:
    def __init__(self) -> None:
        self._running: set[Use] = set()
        self._failed: list[frozenset[Use]] = []

    def learn(self, ran: Iterable[Candidate], failed: Iterable[Candidate]) -> None:
        for candidate in ran:
            self._running |= uses(candidate)
        self._failed += map(uses, failed)

    def runs(self, candidate: Candidate) -> bool:
        """False where it has everything that may have made another fail."""
        own = uses(candidate)
        suspected = (failed - self._running for failed in self._failed)
        return not any(suspects and suspects <= own for suspects in suspected)


def uses(candidate: Candidate) -> frozenset[Use]:
    return frozenset(map(_use, candidate.piece.members))


def _use(node: Node) -> Use:
    words = tuple((name, value) for name, value in node.attributes if isinstance(value, str))
    return node.kind, words, str(getattr(node.types[0], "dtype", "")) if node.types else ""
