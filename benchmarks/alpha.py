# pyright: basic
"""What α buys: the search with several values, priced by prediction alone, on models that rules can improve.

    python benchmarks/alpha.py [--models DIR]… [--only REGEX] [--alphas 1.0,1.05,…] [--candidates N] [--save]

Regions are not timed here: the predictor's price stands for the clock, so that the only thing that differs from column
to column is how far uphill the search may go. Printed for each α: predicted time of the searched regions relative
to the tidied model's, graphs looked at, seconds of search.
"""

from __future__ import annotations

import argparse
import math
import platform
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from superopt.cost.predict import Predictor
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.search.explore import Limits, explore
from superopt.search.regions import Region, cut, graph_of_region
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.version import __version__

RESULTS = Path(__file__).parent / "results"


def searched(path: Path, book: Rulebook, alpha: float, candidates: int) -> tuple[float, int, float]:
    """Predicted cost after over before, graphs seen, seconds; equal regions count once."""
    model = load(path)
    rewriter = Rewriter(book.registry, model.opset, Vocabulary())
    piece = piece_of(normalize(model).graph, rewriter.constants)
    predictor = Predictor({})

    def price(p, region: Region) -> float:
        return predictor.region(graph_of_region(p, tuple(region.outside)))

    before = after = 0.0
    seen, started = 0, time.monotonic()
    for region in cut(piece, lambda n: not n.bodies and not isinstance(rewriter.reader.read(n), str)):
        limits = Limits(alpha, candidates, lambda: False)
        found = explore(region.piece, book.rules, rewriter, lambda p, r=region: price(p, r), limits)
        before += found.candidates[0].cost
        after += min(c.cost for c in found.candidates)
        seen += found.seen
    return after / before if before else 1.0, seen, time.monotonic() - started


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--alphas", default="1.0,1.01,1.05,1.1,1.3")
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    alphas = [float(a) for a in given.alphas.split(",")]
    book = open_rulebook()
    paths = [p for folder in given.models for p in sorted(folder.rglob("*.onnx")) if re.search(given.only, p.name)]
    lines = [f"{'model':32}" + "".join(f"  α={a:<5g} cost  graphs      s" for a in alphas)]
    totals = [[0.0, 0, 0.0] for _ in alphas]
    for path in paths:
        cells = []
        for k, alpha in enumerate(alphas):
            ratio, seen, seconds = searched(path, book, alpha, given.candidates)
            cells.append(f"  {ratio:12.4f} {seen:7} {seconds:6.1f}")
            totals[k] = [totals[k][0] + math.log(ratio), totals[k][1] + seen, totals[k][2] + seconds]
        lines.append(f"{path.stem[:32]:32}" + "".join(cells))
        print(lines[-1], file=sys.stderr, flush=True)
    if paths:
        cells = [f"  {math.exp(log / len(paths)):12.4f} {seen:7} {seconds:6.1f}" for log, seen, seconds in totals]
        lines.append(f"{'geometric mean, sums':32}" + "".join(cells))
    lines.append(f"superopt {__version__}, {platform.machine()}, Python {platform.python_version()}, one process")
    text = "\n".join(lines) + "\n"
    print(text)
    if given.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "alpha.txt").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
