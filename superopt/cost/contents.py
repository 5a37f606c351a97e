"""Everything that a cost file holds, apart from how it is kept: to be listed, picked from and put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from superopt.cost.cache import CostKey, Entry, RegionEntry, RegionKey
from superopt.cost.machine import Machine
from superopt.cost.measure import METHOD_VERSION
from superopt.cost.regions import REGION_METHOD
from superopt.errors import BadOption
from superopt.runtime.deployment import Target


@dataclass
class Contents:
    regions: dict[RegionKey, RegionEntry] = field(default_factory=dict[RegionKey, RegionEntry])
    comparisons: dict[CostKey, Entry] = field(default_factory=dict[CostKey, Entry])

    @classmethod
    def of(cls, regions: Iterable[RegionEntry], comparisons: Iterable[Entry]) -> Contents:
        return cls({e.key: e for e in regions}, {e.key: e for e in comparisons})

    @property
    def machines(self) -> list[Machine]:
        keys: Iterable[RegionKey | CostKey] = (*self.regions, *self.comparisons)
        return sorted({machine_of(key) for key in keys})

    def of_machines(self, machines: Iterable[Machine]) -> Contents:
        wanted = set(machines)
        return Contents(
            {k: e for k, e in self.regions.items() if machine_of(k) in wanted},
            {k: e for k, e in self.comparisons.items() if machine_of(k) in wanted},
        )

    def deployments(self, machine: Machine) -> dict[str, int]:
        """How many times of regions there are with each, by its text: those that this version can use."""
        found: dict[str, int] = {}
        for key, entry in self.regions.items():
            if machine_of(key) == machine and key.method == REGION_METHOD and entry.time.seconds is not None:
                found[key.deployment] = found.get(key.deployment, 0) + 1
        return found

    def outdated(self, machine: Machine) -> int:
        """Entries that were measured by another method than this version's, and that nothing here asks for."""
        regions = sum(machine_of(k) == machine and k.method != REGION_METHOD for k in self.regions)
        return regions + sum(machine_of(k) == machine and k.method != METHOD_VERSION for k in self.comparisons)


def machine_of(key: RegionKey | CostKey) -> Machine:
    text = key.deployment if isinstance(key, RegionKey) else (key.deployments[0] if key.deployments else "")
    return Machine(_target(text), key.device, key.driver, key.runtime)


def _target(deployment: str) -> Target:
    word = deployment.partition(" ")[0]
    if word == "cpu":
        return "cpu"
    if word == "cuda":
        return "cuda"
    raise BadOption(f"a deployment begins with cpu or cuda, found {deployment[:80]!r}")


@dataclass(frozen=True)
class Merged:
    contents: Contents
    conflicts: int = 0
    """Answers of later files that were not taken, because an earlier file answers otherwise."""
    farthest: float = 1.0
    """The most by which two times of one region differ, as a factor."""


def merged(parts: Sequence[Contents]) -> Merged:
    """All of them; where two answer the same question, the first does: what was answered once stays the answer, and
    whoever merges says by the order which file that is."""
    whole, conflicts, farthest = Contents(), 0, 1.0
    for part in parts:
        for key, entry in part.regions.items():
            known = whole.regions.setdefault(key, entry)
            if known.time != entry.time:
                conflicts += 1
                a, b = known.time.seconds, entry.time.seconds
                farthest = max(farthest, a / b, b / a) if a and b else farthest
        for key, entry in part.comparisons.items():
            conflicts += whole.comparisons.setdefault(key, entry).comparison != entry.comparison
    return Merged(whole, conflicts, farthest)
