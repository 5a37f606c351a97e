# pyright: basic
"""What partially equivalent mutants are worth: of each program of each network the fastest of every family, by the
clock, and what `superopt optimize` makes of the whole network.

    python benchmarks/partial.py [--target cuda] [--rules DIR] [--only REGEX] [--programs N] [--seconds S] [--save]

--rules: a folder of NAME.rules, written by `superopt rules mutate NAME.onnx -o NAME.rules`; without it mutants are
proved here, which needs z3. --prove DIR writes such a folder and stops.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.built_partial import MODELS
from benchmarks.commandline import SUPEROPT, run
from superopt.cost.predict import Predictor
from superopt.cost.timer import RegionTimer
from superopt.ir.onnx import load
from superopt.normalize import normalize
from superopt.partial.lift import places
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.runtime.deployment import Deployment, Target
from superopt.runtime.facts import device_facts, runtime_facts
from superopt.runtime.target import resolve_target
from superopt.search.candidate import Candidate
from superopt.search.learning import Learner
from superopt.search.mutated import candidates_of
from superopt.search.regions import extract
from superopt.search.rulebook import open_rulebook
from superopt.search.scales import Scales
from superopt.version import __version__

RESULTS = Path(__file__).parent / "results"
MOVING = {
    "Pad", "Slice", "Concat", "Split", "Transpose", "Reshape", "DepthToSpace", "SpaceToDepth", "Where", "Expand",
    "Gather", "Squeeze", "Unsqueeze",
}  # fmt: skip
"""Operators that compute nothing."""
PATIENCE = 900.0


def prove(path: Path, rules: Path) -> None:
    done = run((*SUPEROPT, "rules", "mutate", path, "-o", rules, "--seconds", "10"), PATIENCE)
    if done.returncode:
        raise SystemExit(f"{path.name}: {done.problem}")


def by_family(path: Path, rules: Path, target: Target, seconds: float, most: int) -> list[dict]:
    """For the costliest programs of the network: their time, and the fastest mutant of each family."""
    book = open_rulebook([rules])
    model = load(path)
    rewriter = Rewriter(book.registry, model.opset, Vocabulary(cuda=target == "cuda"))
    piece = piece_of(normalize(model).graph, rewriter.constants)
    scales = Scales(model, {}, Learner(Predictor({})), RegionTimer(Deployment(target)))
    patterns = [p for p in book.rules.patterns.values() if p.rule.is_partial and p.roots]
    regions = {scales.structure(r): (r, p) for p in places(piece, rewriter) if (r := extract(piece, p.around))}
    costliest = sorted(regions.values(), key=lambda pair: -scales.price(pair[0].piece, pair[0]))
    found = []
    for region, place in costliest:
        made = candidates_of(region, patterns, rewriter, scales) if len(found) < most else ()
        candidates = [c for c in made if len(c.steps[0].match.nodes) == len(place.nodes)]
        if not candidates:
            continue
        subjects = [scales.subject(p, region) for p in (region.piece, *(c.piece for c in candidates))]
        own, *times = scales.timer.time(subjects, seconds * len(subjects), finish=True)
        best: dict[str, tuple[float, Candidate]] = {}
        for candidate, taken in zip(candidates, times, strict=True):
            family = candidate.steps[0].rule.origin.split()[1]
            if taken is not None and (family not in best or taken < best[family][0]):
                best[family] = (taken, candidate)
        if own is not None:
            program = f"{len(place.nodes)} nodes, {place.nodes[0].op} first"
            mutants = {f: told(c, taken, own, computing(c, scales, seconds)) for f, (taken, c) in best.items()}
            found.append({"program": program, "microseconds": 1e6 * own, "mutants": mutants})
    return found


def computing(candidate: Candidate, scales: Scales, seconds: float) -> float | None:
    """Seconds of the operators that compute, without those that only move data: what one operator that gathers,
    computes and puts back could come near to."""
    nodes = [node for node in candidate.piece.nodes if node.op not in MOVING]
    region = extract(candidate.piece, nodes)
    (taken,) = scales.timer.time([scales.subject(region.piece, region)], 3 * seconds, finish=True)
    return taken


def told(candidate: Candidate, taken: float, own: float, alone: float | None) -> dict:
    return {
        "microseconds": 1e6 * taken, "speedup": own / taken, "doc": candidate.steps[0].rule.doc,
        "without_moving_microseconds": None if alone is None else 1e6 * alone,
        "without_moving_speedup": None if alone is None else own / alone,
    }  # fmt: skip


def optimized(path: Path, rules: Path | None, target: str, budget: float) -> dict:
    """What the whole search makes of it; with rules from a file none are looked for."""
    out, report = path.with_suffix(".out.onnx"), path.with_suffix(".json")
    own = ("--rules", rules, "--no-partial") if rules is not None else ()
    done = run((*SUPEROPT, "optimize", path, "-o", out, "--report", report, "--target", target, "--budget", str(budget),
                "--quiet", *own), PATIENCE)  # fmt: skip
    if done.returncode:
        return {"problem": done.problem}
    told = json.loads(report.read_text())
    used = sorted({r["detail"] for r in told["rewrites"] if r["kind"] == "partial"})
    audit = run((*SUPEROPT, "audit", path, out, report, *own[:2]), PATIENCE)
    return {
        "verdict": told["verdict"], "speedup": told["timing"]["speedup"], "returned": told["returned"],
        "interval": told["timing"]["speedup_interval"], "partial": used, "audit": audit.returncode == 0,
        "mutants_proved": told["search"]["mutants_proved"] if told["search"] else 0,
    }  # fmt: skip


def bound(mutant: dict) -> str:
    alone = mutant.get("without_moving_speedup")
    return "" if alone is None else f" ({alone:.2f}× if moving data were free)"


def lines_of(name: str, row: dict) -> list[str]:
    lines = [name]
    for program in row["programs"]:
        shown = sorted(program["mutants"].items(), key=lambda pair: -pair[1]["speedup"])
        cells = "  ".join(f"{family} {m['speedup']:.2f}×{bound(m)}" for family, m in shown)
        lines.append(f"  {program['microseconds']:9.1f} µs  {program['program']:24}  {cells}")
    whole = row["whole"]
    if not whole:
        return lines
    partial = "; ".join(whole.get("partial", [])) or "no mutant used"
    audit = "" if whole.get("returned") != "optimized" else f", audit {'passed' if whole['audit'] else 'FAILED'}"
    lines.append(f"  whole model: {whole.get('verdict', whole.get('problem'))} ({partial}{audit})")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="auto")
    parser.add_argument("--rules", type=Path)
    parser.add_argument("--prove", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.3, help="on the clock for each graph")
    parser.add_argument("--programs", type=int, default=4, help="of each network, at most: the costliest")
    parser.add_argument("--budget", type=float, default=20.0, help="of optimize; 0 = leave that out")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    target = resolve_target(given.target) if given.prove is None else "cpu"
    rows: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in MODELS.items():
            if not re.search(given.only, name):
                continue
            path = Path(folder) / f"{name}.onnx"
            onnx.save(make(), path)
            rules = (given.rules or given.prove or Path(folder)) / f"{name}.rules"
            if given.rules is None:
                rules.parent.mkdir(parents=True, exist_ok=True)
                prove(path, rules)
            if given.prove is not None:
                print(rules, flush=True)
                continue
            programs = by_family(path, rules, target, given.seconds, given.programs)
            whole = optimized(path, rules if given.rules else None, target, given.budget) if given.budget else {}
            rows[name] = {"programs": programs, "whole": whole}
            print("\n".join(lines_of(name, rows[name])), flush=True)
    if given.save and rows:
        facts = f"superopt {__version__}, onnxruntime {runtime_facts().version}, {device_facts(target, 0).name}"
        text = "\n".join(line for name, row in rows.items() for line in lines_of(name, row))
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"partial-{target}.txt").write_text(f"{text}\n{facts}\n")
        (RESULTS / f"partial-{target}.json").write_text(json.dumps({"facts": facts, "models": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
