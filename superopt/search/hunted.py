"""What a search of a graph may take, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from superopt.rewrite.rule import Rule
from superopt.search.trace import Traced

FUSED, STAYING = "everything fused", "everything fused that moves no more"
FORESEEN, SPREAD = "everything that is predicted to pay", "all rewrites, wherever they fit"
"""Guesses: what whole models are made of without asking the clock of single regions."""
ONCE, FORETOLD = 1 / 2, 1 / 3
"""Parts of a gain that are counted on where it was timed once, and where prices alone foretell it: they have foretold
three times of what came true."""


@dataclass(frozen=True)
class Budget:
    """Seconds for thinking and for timing, and graphs to look at in each region."""

    search: float
    measure: float
    candidates: int
    alpha: float
    growth: int
    partial: float = 0.0
    """Seconds for finding mutants of the graph's programs; 0 where none are wanted."""


@dataclass(frozen=True)
class Gain:
    """What a kind of region costs before and after, in seconds."""

    kind: int
    count: int
    predicted: tuple[float, float]
    measured: tuple[float, float]
    rules: tuple[str, ...]
    sure: bool = True
    """False where the clock only says that it is no slower."""
    timed: bool = True
    """False where `measured` is a prediction: nobody has timed the region on the device."""
    confirmed: bool = True
    """False where nobody has timed it there a second time."""

    @property
    def seconds(self) -> float:
        return self.count * (self.measured[0] - self.measured[1])

    @property
    def cautious(self) -> float:
        """The same, as far as it is counted on."""
        if not self.timed:
            return FORETOLD * self.seconds
        return self.seconds if self.confirmed else ONCE * self.seconds


@dataclass
class Mutated:
    """What became of the mutants."""

    programs: int = 0
    mutants: int = 0
    timed: int = 0
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])
    """Those that were proved, by name."""
    seconds: float = 0.0


@dataclass
class Hunted:
    """What was found: steps region by region, and what they are worth."""

    trace: list[Traced] = field(default_factory=list[Traced])
    gains: list[Gain] = field(default_factory=list[Gain])
    costs: dict[tuple[int, int], tuple[float, float]] = field(
        default_factory=dict[tuple[int, int], tuple[float, float]]
    )
    """Predicted seconds of the region before and after a step, by kind and number of the step."""
    regions: int = 0
    distinct: int = 0
    candidates: int = 0
    measured: int = 0
    thinking: float = 0.0
    measuring: float = 0.0
    exhausted: bool = True
    mutated: Mutated = field(default_factory=Mutated)
    guesses: dict[str, list[Traced]] = field(default_factory=dict[str, list[Traced]])
    """Other traces, of which no region was timed, by what they are called."""
    notes: list[str] = field(default_factory=list[str])

    @property
    def numbered(self) -> int:
        """The highest number that any region has."""
        traces = (self.trace, *self.guesses.values())
        return max((0, *(g.kind for g in self.gains), *(r.kind for trace in traces for r in trace)))

    def saving(self, trace: Sequence[Traced]) -> float:
        """Seconds that a run of the model should take less with this part of the trace, as regions were timed."""
        return sum(gain.seconds for gain in self.made(trace))

    def made(self, trace: Sequence[Traced]) -> list[Gain]:
        """What this part of the trace is worth, kind by kind."""
        kinds = {record.kind for record in trace}
        return [gain for gain in self.gains if gain.kind in kinds]
