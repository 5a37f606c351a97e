"""Input sets with nothing in one of their sizes: what the original takes, the result has to take, too.

Kernels divide by such sizes, which ends the process: both models run on them in another one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from superopt.check.cases import Case
from superopt.check.compare import compare, is_finite
from superopt.check.tolerance import Rule
from superopt.ir.onnx import Model
from superopt.ir.onnx.stats import total_bytes
from superopt.runtime.careful import Elsewhere, Opening
from superopt.runtime.session import Session
from superopt.runtime.values import Value

MOST = 3
"""Sizes that are tried."""
LARGEST = 1 << 30
"""Bytes of a model, from which on it is not opened a second time for that."""
GROSS = 0.05
"""Of an answer's size, from which on it differs: who asks for a mean of nothing does not ask for its last digit."""
PATIENCE = 60.0
"""Seconds for one of them: a loop over nothing may never end."""


def empty_cases(first: Case) -> list[tuple[str, Case]]:
    """One for each size, with its name."""
    names = [variable.name for variable in first.layout.variables[:MOST]]
    sizings = [(*first.sizing[:k], 0, *first.sizing[k + 1 :]) for k in range(len(names))]
    return [(n, replace(first, sizing=s, note=f"nothing in {n}")) for n, s in zip(names, sizings, strict=True)]


@dataclass
class Careful:
    """Runs models on what may end the process in another one first."""

    _elsewhere: Elsewhere = field(default_factory=lambda: Elsewhere(PATIENCE))

    def run(self, model: Model | Path, session: Session, feeds: Mapping[str, Value]) -> dict[str, Value]:
        """Raises `Undecided` where that says nothing of the model."""
        source = model if isinstance(model, Path) else model.path if model.path is not None else model.data
        self._elsewhere.run(Opening(source, session.deployment, None, {}), feeds)
        return session.run(feeds)

    def close(self) -> None:
        self._elsewhere.close()


def is_large(model: Model) -> bool:
    return total_bytes(model) > LARGEST


def differs(expected: Value, found: Value, rule: Rule) -> str:
    """What is wrong with an answer to nothing; nothing is, where the original has no number there either."""
    gap = compare(expected, found, rule)
    if gap.structure or gap.within:
        return gap.structure
    if not is_finite(expected):
        return ""
    if gap.wrong:
        return f"{gap.wrong_count} values differ where they must be equal"
    return f"off by {gap.absolute:.3g}" if gap.coarse > GROSS else ""


@dataclass
class Accepted:
    """What the original said of sizes of 0."""

    taken: set[str] = field(default_factory=set[str])
    refused: set[str] = field(default_factory=set[str])

    @property
    def never(self) -> frozenset[str] | None:
        """Names of sizes that are never 0, as far as was tried; None where none may be."""
        return frozenset(self.refused - self.taken) if self.taken else None
