"""Times of the sample operators on this device, under every deployment that a cost file tells of, into a new file.

    python benchmarks/sample_times.py DEVICE.costs OUT.costs             those that the file lacks
    python benchmarks/sample_times.py DEVICE.costs OUT.costs --again     all of them, so that they are of one time

`superopt calibrate` times them for one deployment, that of the models it is given.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from superopt.cost.cache import CostCache, RegionEntry
from superopt.cost.calibration import calibrate
from superopt.cost.contents import Contents, machine_of
from superopt.cost.costs import read_costs
from superopt.cost.machine import Machine, machine_here
from superopt.cost.regions import region_key
from superopt.cost.samples import samples
from superopt.cost.shipping import write_costs
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import host
from superopt.runtime.deployment import Deployment, parse_deployment

ENOUGH = 100
"""Times under a deployment; those of fewer are of a single model."""


def without(contents: Contents, machine: Machine, dropped: Container[str]) -> Iterator[RegionEntry]:
    for key, entry in contents.regions.items():
        if machine_of(key) != machine or key.structure not in dropped:
            yield entry


def timed(contents: Contents, machine: Machine, again: bool, seconds: float) -> Contents:
    counts = contents.deployments(machine)
    deployments = [parse_deployment(text) for text, count in counts.items() if count >= ENOUGH]
    keys = {region_key(host(), graph, {}) for target in {d.target for d in deployments} for graph in samples(target)}
    kept = without(contents, machine, keys) if again else contents.regions.values()
    with tempfile.TemporaryDirectory() as folder, CostCache(Path(folder) / "times.sqlite") as cache:
        cache.add_all(kept, contents.comparisons.values())
        for deployment in sorted(deployments, key=lambda d: d.text):
            told(deployment, cache, len(keys), seconds)
        return Contents.of(cache.region_entries(), cache.entries())


def these(contents: Contents, machine: Machine) -> set[Machine]:
    """What this machine is, for each device that the other's deployments are for."""
    deployments = {d.target: d for d in map(parse_deployment, contents.deployments(machine))}
    return {machine_here(deployment) for deployment in deployments.values()}


def told(deployment: Deployment, cache: CostCache, wanted: int, seconds: float) -> None:
    before, started = cache.count_regions(), time.monotonic()
    calibrate(RegionTimer(deployment, cache), seconds)
    took = time.monotonic() - started
    print(f"{deployment.text}: {cache.count_regions() - before} of {wanted} timed, {took:.0f} s", flush=True)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("costs", type=Path, metavar="DEVICE.costs")
    parser.add_argument("out", type=Path, metavar="OUT.costs")
    parser.add_argument("--again", action="store_true", help="also those whose times are known")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each deployment, beside opening")
    given = parser.parse_args(words)
    contents = read_costs(given.costs)
    here = [machine for machine in contents.machines if machine in these(contents, machine)]
    if not here:
        print(f"{given.costs}: tells of no machine like this one", file=sys.stderr)
        return 2
    for machine in here:
        contents = timed(contents, machine, given.again, given.seconds)
    write_costs(contents, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
