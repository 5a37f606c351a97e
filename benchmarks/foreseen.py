"""Session options that are foreseen from recorded costs, beside those that were measured to be best.

    python benchmarks/foreseen.py DEVICE.costs MODELS [--measured results/gpu.json] [--save]

MODELS is a folder of networks named as in gpu.py's results (resnet50-fp16-b16.onnx). Each is priced as
`optimize --costs` prices it; what the original ran best with is looked up among the measurements. Nothing is timed
here. Networks without convolutions are left out: for those nothing is foreseen.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_cells import BEST, read
from benchmarks.texts import aligned, without_folders
from superopt.cost.costs import Costs
from superopt.cost.recorded import RecordedTimer
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.runtime.deployment import Deployment, parse_deployment
from superopt.search.choices import FUSED_BIAS, NHWC, contents_of, convolves
from superopt.search.foreseen_options import Foreseen, alternatives, foresee

HERE = Path(__file__).parent
RESULT = HERE / "results" / "foreseen-h200.txt"
OF_INTEREST = (NHWC[0], FUSED_BIAS[0])
COLUMNS = ("network", "measured as best", "usual", "foreseen", "predicted speed-up over the usual")


@dataclass(frozen=True)
class Line:
    network: str
    measured: tuple[str, ...]
    usual: tuple[str, ...]
    foreseen: tuple[str, ...]
    speedups: tuple[float, ...]

    @property
    def row(self) -> tuple[str, ...]:
        told = (" ".join(options) or "-" for options in (self.measured, self.usual, self.foreseen))
        return (self.network, *told, ", ".join(f"{speedup:.2f}" for speedup in self.speedups))


def lines(costs: Costs, models: Sequence[Path], measured: Mapping[str, tuple[str, ...]]) -> Iterator[Line]:
    contents = costs.contents()
    (machine,) = contents.machines
    counts = contents.deployments(machine)
    deployments = [parse_deployment(text) for text in counts]
    usual = parse_deployment(max(counts, key=lambda text: counts[text]))
    with costs.opened() as cache:
        for path in models:
            model = load(path)
            if path.stem not in measured or not convolves(contents_of(model)):
                continue
            found = foresee(
                normalize(model, for_cuda=usual.target == "cuda").graph, {}, usual, alternatives(usual, deployments),
                lambda deployment: RecordedTimer(deployment, cache, machine),
            )  # fmt: skip
            yield line(path.stem, measured[path.stem], found)


def line(network: str, measured: tuple[str, ...], found: Foreseen) -> Line:
    speedups = tuple(speedup for _, speedup in found.others)
    return Line(network, measured, asked(found.usual), asked(found.best), speedups)


def asked(deployment: Deployment) -> tuple[str, ...]:
    return tuple(name for name in OF_INTEREST if dict(deployment.provider_options).get(name) == "1")


def best_options(file: Path) -> dict[str, tuple[str, ...]]:
    """Of the originals, by network, type and batch size."""
    found: dict[str, tuple[str, ...]] = {}
    for cell in read(file).cells:
        if cell.method == BEST and cell.status == "ok":
            options = tuple(name for name in OF_INTEREST if cell.options.get(f"cuda.{name}") == "1")
            found[f"{cell.model}-{cell.dtype}-b{cell.batch}"] = options
    return found


def summary(told: Sequence[Line]) -> str:
    def same(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
        return (NHWC[0] in mine) == (NHWC[0] in theirs)

    layouts = sum(same(one.foreseen, one.measured) for one in told)
    usual = sum(same(one.usual, one.measured) for one in told)
    exact = sum(one.foreseen == one.measured for one in told)
    wrongly = sum(NHWC[0] in one.foreseen and NHWC[0] not in one.measured for one in told)
    return (
        f"the layout measured as best: foreseen for {layouts} of {len(told)}, usual for {usual}; "
        f"both options: {exact}; channels last foreseen where they are not best: {wrongly}"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("costs", type=Path, metavar="DEVICE.costs")
    parser.add_argument("models", type=Path, metavar="MODELS")
    parser.add_argument("--measured", type=Path, default=HERE / "results" / "gpu.json", metavar="FILE")
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.name}")
    given = parser.parse_args(words)
    models = sorted(given.models.glob("*.onnx"))
    told = list(lines(Costs(given.costs), models, best_options(given.measured)))
    if not told:
        print(f"{given.models}: no network with convolutions that {given.measured.name} tells of", file=sys.stderr)
        return 2
    text = f"{aligned([COLUMNS, *(one.row for one in told)])}\n\n{summary(told)}\n"
    print(text)
    if given.save:
        command = without_folders(shlex.join(["python", "benchmarks/foreseen.py", *(words or sys.argv[1:])]))
        RESULT.write_text(f"{command}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
