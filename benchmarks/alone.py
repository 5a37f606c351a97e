"""The rules that a machine found, alone, against what people wrote and against all: one search under fixed prices.

    python benchmarks/alone.py [--models DIR]… [--every DIR]… [--only REGEX] [--target cpu|cuda]… [--save]

Regions are not timed here: fixed prices stand for the clock, so that the columns differ by their rules alone and come
out the same wherever this is run. Prices of `cuda` are those learned on an H200, prices of `cpu` the predictor's
own. A search looks at so many graphs of a region, however long that takes. Mutants, which need a clock, are not made.

Printed for each model: predicted ms as tidied, with all that people wrote (shipped, or shipped before the machine found
it), with what the machine found alone, and with all that ships; the machine's over each of the others (above 1,
people's rules gain something); and people's rules in the graph with all. Then the machine's rules in its own graphs
that do not follow, in so many steps, from all that people have written down: shipped, formerly shipped, or gathered
from the literature.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import built_variants, sample, subjects
from benchmarks.predictor import sized
from benchmarks.subjects import Subject
from benchmarks.texts import aligned
from superopt.cost.coefficients import Coefficients, priors
from superopt.cost.predict import Predictor
from superopt.cost.timer import RegionTimer
from superopt.cost.trained import start_of
from superopt.errors import SuperoptError
from superopt.generate.known import Known, derivation
from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.normalize import normalize
from superopt.options import Options
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules
from superopt.rewrite.whole import piece_of
from superopt.runtime.deployment import Deployment, Target
from superopt.search.bodies import graphs
from superopt.search.ending import Ending
from superopt.search.growth import allowed_growth
from superopt.search.hunt import Hunter
from superopt.search.hunted import Budget
from superopt.search.judge import Judge, Look
from superopt.search.learning import Learner
from superopt.search.regions import graph_of_region
from superopt.search.rulebook import Rulebook, open_rulebook
from superopt.search.scales import Scales
from superopt.version import __version__

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WRITTEN = HERE.parent / "tests" / "generate"
"""What people wrote before the generator found it, and laws from the literature."""
FORMER = ("handwritten.rules", "replaced.rules")
DEVICES: dict[Target, str] = {"cpu": "", "cuda": "NVIDIA H200"}
RECORDED = Deployment("cuda", threads=1, provider_options=(("enable_cuda_graph", "1"),))
STEPS = 3
WORTH = 0.999
"""Predicted cost, over the region's own, from which on a graph is used."""
WORSE = 1.01
COLUMNS = (
    "model",
    "tidied ms",
    "people's ms",
    "machine's ms",
    "all ms",
    "machine's/people's",
    "machine's/all",
    "people's rules in the result with all",
)


class Priced(Judge):
    """Prices instead of a clock: the cheapest graph is used, and of equal ones the one with the fewest steps."""

    def time(self, look: Look) -> None:
        look.times = {c: self._price(c.piece, look.region) for c in look.candidates}

    def decided(self, look: Look) -> tuple[Taken, ...]:
        if not look.candidates:
            return ()
        prices = {c: t for c, t in look.times.items() if t is not None}
        own = prices[look.candidates[0]]
        for chosen in sorted(prices, key=lambda c: (round(prices[c] / own, 6), len(c.steps))):
            change = self._change(look, chosen)
            if prices[chosen] > WORTH * own:
                return ()
            if change is not None:
                self.growth.take(change)
                self._keep(look, chosen, (own, prices[chosen]), True, timed=False)
                return chosen.steps
        return ()


@dataclass(frozen=True)
class Searched:
    """Predicted seconds before and after, and how often each rule was used."""

    before: float
    after: float
    used: Counter[str]


def search(model: Model, graph: Graph, book: Rulebook, target: Target, candidates: int) -> Searched:
    """What the rules make of a tidied model."""
    prices: Coefficients = start_of(RECORDED, DEVICES[target]) if DEVICES[target] else priors(target)
    predictor = Predictor({}, prices)
    rewriter = Rewriter(
        book.registry, model.opset, Vocabulary(cuda=target == "cuda", for_cuda=target == "cuda"), model.functions
    )
    scales = Scales(model, {}, Learner(predictor), RegionTimer(Deployment("cpu", threads=1)))
    growth = allowed_growth(model, Options())
    budget = Budget(math.inf, math.inf, candidates, Options().alpha, growth)
    hunter = Hunter(book, rewriter, scales, budget, lambda stage, what: None, Ending(), judging=Priced)
    before = after = 0.0
    for each, where in graphs(graph):
        piece = piece_of(each, rewriter.constants)
        before += predictor.region(graph_of_region(piece, ()))
        after += predictor.region(graph_of_region(hunter.run(piece, where), ()))
    return Searched(before, after, Counter(step.rule for record in hunter.found.trace for step in record.steps))


@dataclass(frozen=True)
class Compared:
    name: str
    full: Searched
    alone: Searched
    by_hand: Searched

    @property
    def to_people(self) -> float:
        return self.alone.after / self.by_hand.after if self.by_hand.after else 1.0

    @property
    def to_all(self) -> float:
        return self.alone.after / self.full.after if self.full.after else 1.0


@dataclass(frozen=True)
class Books:
    """All that ships, what a machine found of it, and what people wrote, shipped or formerly shipped."""

    full: Rulebook
    alone: Rulebook
    by_hand: Rulebook


@cache
def books() -> Books:
    full, former = open_rulebook(), open_rulebook([WRITTEN / name for name in FORMER])
    alone = [rule for rule in rules_of(full) if not is_by_hand(rule)]
    by_hand = [rule for rule in rules_of(former) if is_by_hand(rule)]
    return Books(full, only(full, alone), only(former, by_hand))


def only(book: Rulebook, rules: Sequence[Rule]) -> Rulebook:
    return Rulebook(book.registry, Rules(rules, book.registry), book.digests, book.proofs, book.unusable, book.notes)


def rules_of(book: Rulebook) -> list[Rule]:
    return [pattern.rule for pattern in book.rules.patterns.values()]


def is_by_hand(rule: Rule) -> bool:
    return not rule.origin.startswith(("generated ", "mined "))


def new_laws(used: Iterable[str], of: Books) -> list[Rule]:
    """Of the machine's rules, those that do not follow from what people have written down."""
    literature = load_rules([WRITTEN / "literature.rules"])
    known = Known(of.full.registry, [*rules_of(of.by_hand), *literature])
    wanted = [of.alone.rules.patterns[name].rule for name in sorted(used)]
    return [rule for rule in wanted if derivation(rule, known, STEPS) is None]


def chosen(models: Sequence[Path], every: Sequence[Path], folder: Path, pattern: str) -> Iterator[Subject]:
    own = {"sample": sample.build, "nasrnn": built_variants.nasrnn}
    for name, build in own.items():
        onnx.save(build(), folder / f"{name}.onnx")
    found = [Subject(name, folder / f"{name}.onnx") for name in own]
    found += [*subjects.networks_built(folder, pattern), *subjects.fetched(), *subjects.exported(models)]
    found += [subject for place in every for subject in subjects.in_folder(place)]
    yield from (subject for subject in found if re.search(pattern, subject.name))


def row(compared: Compared, book: Rulebook) -> tuple[str, ...]:
    hand = Counter({n: k for n, k in compared.full.used.items() if is_by_hand(book.rules.patterns[n].rule)})
    told = ", ".join(f"{name} {count}" for name, count in hand.most_common())
    seconds = (compared.full.before, compared.by_hand.after, compared.alone.after, compared.full.after)
    ratios = (f"{compared.to_people:.4f}", f"{compared.to_all:.4f}")
    return (compared.name, *(f"{1e3 * s:.3f}" for s in seconds), *ratios, told or "-")


def summary(found: Sequence[Compared]) -> str:
    return "\n".join(
        (
            f"{len(found)} models",
            _standing("what people wrote", {c.name: c.to_people for c in found}),
            _standing("all that ships", {c.name: c.to_all for c in found}),
        )
    )


def _standing(against: str, ratios: Mapping[str, float]) -> str:
    worse = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio > WORSE]
    better = [f"{name} {ratio:.3f}" for name, ratio in ratios.items() if ratio < 1 / WORSE]
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return "\n".join(
        (
            f"the machine's alone over {against}: geometric mean {mean:.4f}",
            f"  worse by more than 1 %: {', '.join(worse) or 'none'}",
            f"  better by more than 1 %: {', '.join(better) or 'none'}",
        )
    )


def told(rules: Sequence[Rule], uses: Counter[str], models: Counter[str]) -> str:
    rows = [(r.name, f"{uses[r.name]} times in {models[r.name]} models", r.doc) for r in rules]
    rows.sort(key=lambda cells: -models[cells[0]])
    heading = f"used alone, and following from nothing that people wrote down in {STEPS} steps: {len(rules)} rules"
    return f"{heading}\n{aligned(rows)}" if rows else heading


def compare(subject: Subject, target: Target, candidates: int) -> Compared | str:
    """What the three sets of rules make of a model; or why nothing."""
    of = books()
    try:
        model = sized(subject)
        tidied = normalize(model).graph
        found = [search(model, tidied, book, target, candidates) for book in (of.full, of.alone, of.by_hand)]
    except SuperoptError as error:
        return f"{subject.name}: {error}"
    return Compared(subject.name, *found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", action="append", type=Path, default=[], metavar="DIR", help="exported networks")
    parser.add_argument("--every", action="append", type=Path, default=[], metavar="DIR", help="also every .onnx here")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose name matches")
    parser.add_argument("--target", action="append", choices=tuple(DEVICES), help="default: both")
    parser.add_argument("--candidates", type=int, default=Options().candidates, metavar="N", help="graphs of a region")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="models side by side")
    parser.add_argument("--save", action="store_true", help="write results/rules-alone.txt")
    given = parser.parse_args(arguments)
    of = books()
    counts = f"{len(of.full.rules)} rules in use, {len(of.alone.rules)} of them found by machine"
    parts = [f"superopt {__version__}: {counts}; people wrote {len(of.by_hand.rules)}, shipped or formerly shipped"]
    uses, models = Counter[str](), Counter[str]()
    spawned = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(given.workers, spawned) as workers:
        wanted = list(chosen(given.models, given.every, Path(folder), given.only))
        for target in given.target or DEVICES:
            found: list[Compared] = []
            rows: list[tuple[str, ...]] = [COLUMNS]
            work = partial(compare, target=target, candidates=given.candidates)
            for compared in workers.map(work, wanted):
                if isinstance(compared, str):
                    print(compared, file=sys.stderr)
                    continue
                found.append(compared)
                rows.append(row(found[-1], of.full))
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
                uses += found[-1].alone.used
                models.update(found[-1].alone.used.keys())
            if found:
                parts.append(f"{target}\n{aligned(rows)}\n{summary(found)}")
    parts.append(told(new_laws(uses, of), uses, models))
    text = "\n\n".join(parts) + "\n"
    print(text, end="")
    if given.save:
        (RESULTS / "rules-alone.txt").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
