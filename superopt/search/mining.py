"""The model at hand mined before it is searched: rules that it alone suggests, each proved (needs z3)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from superopt.generate.answering import MEMORY, Workers
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger
from superopt.generate.naming import named
from superopt.ir.files import clear_write_errors
from superopt.ir.onnx import Model
from superopt.mine.mine import Counts, Mined, Miner
from superopt.mine.writing import write
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import proved
from superopt.runtime.cores import usable_cores
from superopt.search.ending import Ending
from superopt.search.rulebook import Rulebook
from superopt.search.stages import Tell
from superopt.verify.prove import SOLVER

MINED = "mined"
PROOF = 20.0
"""CPU seconds for each proof."""
MOST_WORKERS = 4


@dataclass
class Findings:
    """The new rules by their names, and what became of everything else."""

    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])
    notes: list[str] = field(default_factory=list[str])


def mine_model(model: Model, book: Rulebook, seconds: float, keep: Path | None, tell: Tell, ending: Ending) -> Findings:
    """Adds to the book what the model's own parts teach in so many seconds; proofs that have begun are finished."""
    until = time.monotonic() + seconds
    known = Known(book.registry, book.rules.searched)
    found: list[Mined] = []
    with Workers(min(usable_cores(), MOST_WORKERS), (), MEMORY) as pool:
        miner = Miner(
            book.registry, Ledger(), pool, seconds=PROOF, known=known, deadline=until,
            tell=lambda _, counts: tell("mining", _told(counts)),
        )  # fmt: skip
        for mined in miner.mine(model, origin_of(model)):
            found.append(mined)
            if ending.is_asked():
                break
    rules = named(MINED, (replace(m.rule, origin=f"{MINED} {m.origin}") for m in found))
    findings = Findings({r.name: proved(r, book.registry, "unbounded", SOLVER) for r in rules})
    for rule in findings.rules.values():
        book.add(rule)
    findings.notes.append(_summary(findings, miner.counts, keep))
    if keep is not None:
        with clear_write_errors(keep):
            write(MINED, found, miner.counts, keep, book.registry)
    return findings


def origin_of(model: Model) -> str:
    """The exporter, the opset and the model."""
    name = model.path.stem if model.path is not None else "a model"
    return f"{model.producer} opset {model.opset}, {name}"


def _told(counts: Counts) -> str:
    return (
        f"{counts.parts:,} different parts, {counts.hits} recognized, {counts.known} known, {counts.proved} proved, "
        f"{counts.refuted} refuted, {counts.unknown} unknown"
    )


def _summary(findings: Findings, counts: Counts, keep: Path | None) -> str:
    count = len(findings.rules)
    told = f"mined: {_told(counts)}; {count} new rule{'s' * (count != 1)}"
    if not count:
        return told
    return f"{told}, kept in {keep}" if keep is not None else f"{told}; --keep-rules FILE keeps them"
