"""`superopt generate-rules --from MODEL…`: rules from the graphs that people have."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import specs
from superopt.cli.folders import made
from superopt.cli.live import Live
from superopt.engine.job import Stage
from superopt.errors import BadOption
from superopt.generate.answering import MEMORY, Workers
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger, export
from superopt.ir.onnx import inlined, load
from superopt.mine.cut import ANCHORS
from superopt.mine.mine import Counts, Mined, Miner
from superopt.mine.writing import write
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files, state

LEDGER, LOG, RULES = "ledger.jsonl", "refused.log", "mined.rules"


def run_mine(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.engine != "local":
        raise BadOption("models are mined by local processes; leave out --engine")
    registry = specs.load(*arguments.specs)
    models = _files(arguments.models)
    known = Known(registry, _proved(arguments.known, registry))
    limit, wanted = arguments.time_limit, [op for op in arguments.ops.split(",") if op]
    made(arguments.out)
    found: list[Mined] = []
    with (
        Ledger(arguments.out / LEDGER) as ledger,
        Workers(arguments.workers, tuple(arguments.specs), MEMORY) as pool,
        Live(console, arguments.quiet) as live,
    ):

        def tell(origin: str, counts: Counts) -> None:
            live(
                Stage(
                    stage=f"mining {origin}",
                    detail=f"{counts.cuts:,} parts, {counts.parts:,} different, {counts.hits} recognized, "
                    f"{counts.known} known, {counts.proved} proved, {counts.refuted} refuted, {counts.unknown} unknown",
                )
            )

        miner = Miner(
            registry, ledger, pool, tuple(arguments.specs), arguments.seconds, known,
            time.monotonic() + limit if limit else float("inf"), tell, frozenset(wanted) or ANCHORS,
        )  # fmt: skip
        try:
            for path in models:
                model = inlined(load(path))
                found += miner.mine(model, f"{model.producer} opset {model.opset}, {path.stem}")
        finally:  # also when interrupted: what is proved is written
            path = arguments.out / RULES
            count = write("mined", found, miner.counts, path, registry)
            export(ledger.entries(), arguments.out / LOG)
    _show(miner.counts, console)
    print(f"{path}: {count} rules, all proved")
    return 0


def _files(paths: list[Path]) -> list[Path]:
    found = [p for path in paths for p in (sorted(path.rglob("*.onnx")) if path.is_dir() else [path])]
    if not found:
        raise BadOption("--from: no model there; give .onnx files, or folders that hold some")
    return found


def _proved(paths: list[Path], registry: Registry) -> list[Rule]:
    """The rules that the user names; those that ship where none are named, but for mined ones."""
    files = rule_files(paths) if paths else [f for f in rule_files() if f.parent.name != "mined"]
    return [rule for rule in load_rules(files) if state(rule, registry) == "proved"]


def _show(counts: Counts, console: Console) -> None:
    table = Table("what became of them", "", box=None)
    for name, number in dataclasses.asdict(counts).items():
        table.add_row(name, f"{number:,}")
    console.print(table)
