"""A rule's two sides as formulas, side by side, as the prover sees them."""

from __future__ import annotations

from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Registry
from superopt.ops.symbols import Symbols
from superopt.rewrite.program import Impossible, Program, block_ranks
from superopt.rewrite.rule import Rule
from superopt.verify.canonical import factor_key
from superopt.verify.expand import expand
from superopt.verify.facts import Facts
from superopt.verify.paths import Path, explore
from superopt.verify.prove import PathSource
from superopt.verify.simplify import simplify
from superopt.verify.terms import Sum
from superopt.verify.witness import output_index


def explain(rule: Rule, registry: Registry) -> str:
    """The first case in which the rule applies, in words and formulas."""
    ranks = block_ranks(rule)[min(1, len(block_ranks(rule)) - 1)]
    told: list[str] = []

    def run(path: Path) -> None:
        program = Program(rule, registry, PathSource(path, Symbols()))
        try:
            program.start(ranks)
            left, right = program.run(rule.left), program.run(rule.right)
        except (Illegal, Impossible, NotCovered) as why:
            told.append(f"case excluded: {why}")
            return
        told.append("assumed: " + "; ".join(str(c) for c in path.facts.conditions))
        for name in rule.results:
            place = tuple(output_index(k) for k in range(left[name].rank))
            bounds = [c for i, n in zip(place, left[name].shape, strict=True) for c in (i >= 0, i < n)]
            facts = path.facts.and_(*bounds)
            shape = ", ".join(map(str, left[name].shape))
            told.append(f"{name}: [{shape}]")
            for side, values in (("left ", left), ("right", right)):
                told.append(f"  {side} {format_sum(simplify(expand(values[name][place], facts), facts))}")

    for path in explore(Facts(()), run):
        if told and told[-1].startswith("  right"):
            break
        del path
    return "\n".join(told)


def format_sum(terms: Sum) -> str:
    if not terms:
        return "0"
    parts: list[str] = []
    for t in terms:
        factors = [] if t.coefficient == 1 and (t.factors or t.scale) else [str(t.coefficient)]
        factors += [f"{atom}^{e}" if e != 1 else str(atom) for atom, e in t.scale]
        factors += [factor_key(f) for f in t.factors]
        text = " · ".join(factors)
        if t.bound:
            text = f"Σ({', '.join(v.name for v in t.bound)}) {text}"
        if t.domain:
            text += f"  where {', '.join(map(str, t.domain))}"
        parts.append(text)
    return "\n      + ".join(parts)
