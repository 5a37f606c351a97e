# pyright: basic
"""Prices of devices from cost files, and how well such prices rank what they have not seen.

    superopt calibrate MODEL… --costs FILE; superopt costs export FILE -o DEVICE.costs     (on the device)
    python benchmarks/train.py DEVICE.costs… [--models MODEL…] [--save]

For each device and deployment: sample operators by cross-validation (prices from four fifths, asked for the rest), then
the regions of the models given, with prices from the samples alone. Spearman's correlation and the typical error as a
factor. --save writes superopt/cost/trained.json, from samples and regions, and results/predictor-trained.txt.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.predictor import rank_correlation, typical_error
from benchmarks.texts import aligned, without_folders
from superopt.cost.calibration import spared
from superopt.cost.coefficients import Coefficients, priors
from superopt.cost.contents import Contents, machine_of, merged
from superopt.cost.costs import read_costs
from superopt.cost.fit import OF_REGIONS, OF_SAMPLES, Observation, fit
from superopt.cost.machine import Machine
from superopt.cost.manner import in_a_model, in_a_region
from superopt.cost.predict import Predictor
from superopt.cost.regions import REGION_METHOD, region_key
from superopt.cost.samples import launches, samples
from superopt.cost.timer import RegionTimer
from superopt.cost.trained import FILE, Trained, written
from superopt.cost.workloads import host
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.search.learning import Learner
from superopt.search.rulebook import open_rulebook
from superopt.search.scales import Scales
from superopt.search.signatures import signed
from superopt.search.workshop import Workshop

RESULT = Path(__file__).parent / "results" / "predictor-trained.txt"
FOLDS = 5
ENOUGH = 100
"""Samples under one deployment."""
COLUMNS = ("device", "deployment", "what", "how many", "rank correlation", "typical error")


def of_samples(times: Mapping[str, float], deployment: Deployment) -> Iterator[Observation]:
    predictor = Predictor(manner=in_a_model(deployment))
    for graph in samples(deployment.target):
        seconds = times.get(region_key(host(), graph, {}))
        if seconds is not None:
            yield Observation(predictor.amounts(graph), seconds)


def of_regions(times: Mapping[str, float], models: Sequence[Path], deployment: Deployment) -> Iterator[Observation]:
    """Of models with fixed sizes."""
    book = open_rulebook()
    for path in models:
        model = load(path)
        workshop = Workshop(model, normalize(model).graph, book, Vocabulary(contrib=True))
        predictor = Predictor(manner=in_a_region(deployment))
        for signature in signed(workshop, Scales(model, {}, Learner(predictor), RegionTimer(deployment))).signatures:
            seconds = times.get(signature.key)
            if seconds is not None:
                graph = signature.scales.graph(signature.region.piece, signature.region)
                yield Observation(predictor.amounts(graph), seconds)


def held_out(observations: Sequence[Observation], start: Coefficients) -> list[tuple[float, float]]:
    """Predicted and measured, each predicted from the other folds."""
    found: list[tuple[float, float]] = []
    for fold in range(FOLDS):
        prices = fit([o for k, o in enumerate(observations) if k % FOLDS != fold], start, OF_SAMPLES)
        found += [(prices.price(o.amounts), o.seconds + start.spared) for o in observations[fold::FOLDS]]
    return found


def row(machine: Machine, deployment: str, what: str, pairs: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    correlation = rank_correlation([p for p, _ in pairs], [t for _, t in pairs])
    return machine.text, deployment, what, str(len(pairs)), f"{correlation:.3f}", typical_error(pairs)


def train(
    contents: Contents, machine: Machine, models: Sequence[Path]
) -> Iterator[tuple[Trained, list[tuple[str, ...]]]]:
    """From each deployment that enough is known of, that which most is known of first."""
    counts = contents.deployments(machine)
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        times = {
            key.structure: entry.time.seconds
            for key, entry in contents.regions.items()
            if (machine_of(key), key.deployment, key.method) == (machine, text, REGION_METHOD)
            and entry.time.seconds is not None
        }
        deployment = parse_deployment(text)
        single, chain = list(of_samples(times, deployment)), times.get(region_key(host(), launches(), {}))
        if len(single) >= ENOUGH and chain is not None:
            regions = list(of_regions(times, models, deployment))
            yield trained(machine, text, chain, single, regions)


def trained(
    machine: Machine, text: str, chain: float, single: Sequence[Observation], regions: Sequence[Observation]
) -> tuple[Trained, list[tuple[str, ...]]]:
    start = replace(priors(machine.target), spared=spared(chain))
    first = fit(single, start, OF_SAMPLES)
    rows = [row(machine, text, "sample operators, held out", held_out(single, start))]
    if regions:
        pairs = [(first.price(o.amounts), o.seconds + start.spared) for o in regions]
        rows.append(row(machine, text, "regions of models, not seen", pairs))
    prices = fit(regions, first, OF_REGIONS)
    shown = {column.text: float(f"{seconds:.4g}") for column, seconds in sorted(prices.seconds.items())}
    return Trained(
        target=machine.target, device=machine.device, driver=machine.driver, runtime=machine.runtime,
        deployment=text, observations=len(single) + len(regions), seconds=shown,
        spared=float(f"{start.spared:.4g}"),
    ), rows  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", type=Path, nargs="+")
    parser.add_argument("--models", type=Path, nargs="*", default=[])
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(words)
    contents = merged([read_costs(file) for file in given.costs]).contents
    found = [each for machine in contents.machines for each in train(contents, machine, given.models)]
    command = without_folders(f"python benchmarks/train.py {' '.join(words)}")
    text = f"{command}\n\n{aligned([COLUMNS, *(r for _, rows in found for r in rows)])}\n"
    print(text, end="")
    if given.save:
        FILE.write_text(written([learned for learned, _ in found]))
        RESULT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
