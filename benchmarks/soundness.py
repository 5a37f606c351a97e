# pyright: basic
"""Every rule evaluated by numpy at random legal sizes, attributes and values, other ones than its prover saw.

    python benchmarks/soundness.py [FILE …] [--only REGEX] [--instances N] [--seed N] [--workers N] [--save]

Proofs say that rules are true of formulas; this says that formulas, rules and evaluation agree in numbers. Rules are
also run by onnxruntime, in the tests.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import specs
from superopt.rewrite.program import block_ranks
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.verify.counterexample import compared
from superopt.version import __version__

RESULTS = Path(__file__).parent / "results"
LEAST = 10
"""Instances for each number of axes."""
ROUNDS = 4
"""Of draws, until there are as many instances as wanted."""
EVERY = 30.0
"""Seconds between lines of progress."""

load = functools.cache(specs.load)


def examined(rule: Rule, wanted: int, seed: int) -> tuple[str, int, str | None]:
    """Its name, at how many instances it was evaluated, and where its sides differ first.

    Where few numbers of axes have instances, further ones of those."""
    share = max(LEAST, -(-wanted // len(list(block_ranks(rule)))))
    found: list[str | None] = []
    for more in range(ROUNDS):
        found += compared(rule, load(), wanted=share, seed=seed + more, nearby=True)
        if len(found) >= wanted or not found:
            break
        share = max(LEAST, -(-share * (wanted - len(found)) * (more + 1) // len(found)))
    return rule.name, len(found), next((difference for difference in found if difference is not None), None)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--instances", type=int, default=200, help="of a rule, over its numbers of axes (default 200)")
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", metavar="REGEX", help="only rules whose name matches")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    rules = [rule for rule in load_rules(rule_files(given.files)) if re.search(given.only, rule.name)]
    counts: list[int] = []
    lines: list[str] = []
    untried: list[str] = []
    start = shown = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        look = functools.partial(examined, wanted=given.instances, seed=given.seed)
        for name, count, difference in pool.imap_unordered(look, rules, chunksize=4):
            counts.append(count)
            untried += [] if count else [name]
            if difference is not None:
                lines.append(f"{name}: {difference}")
                print(lines[-1], flush=True)
            if time.monotonic() - shown > EVERY:
                shown = time.monotonic()
                print(f"{len(counts)} of {len(rules)} rules, {shown - start:.0f} s", file=sys.stderr, flush=True)
    if not counts:
        print("no rule of that name", file=sys.stderr)
        return 2
    differing = len(lines)
    few = sum(count < 100 for count in counts)
    lines.append(
        f"{len(counts)} rules, {sum(counts):,} instances ({min(counts)} at least for a rule, {few} rules under 100), "
        f"{differing} rules differ; {time.monotonic() - start:.0f} s with {given.workers} workers; "
        f"superopt {__version__}, seed {given.seed}"
    )
    lines += [f"no instance: {', '.join(untried)}"] if untried else []
    print("\n".join(lines[-2:] if untried else lines[-1:]))
    if given.save:
        (RESULTS / "soundness.txt").write_text("\n".join(lines) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
