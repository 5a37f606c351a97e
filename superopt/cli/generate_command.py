"""`superopt generate-rules`: call, tell how far it is, write and count."""

from __future__ import annotations

import argparse
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

import specs
from superopt.cli.folders import made
from superopt.cli.live import Live
from superopt.engine.job import Stage
from superopt.errors import BadOption
from superopt.generate.answering import MEMORY, Workers
from superopt.generate.enumerate import Progress, Spread
from superopt.generate.generate import Counts, Notices, Settings, generate
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger, export
from superopt.generate.local import local
from superopt.generate.proving import Pool
from superopt.generate.recipe import Recipe, load_recipe, shipped
from superopt.generate.reduce import reduced
from superopt.generate.writing import Finding, Provenance, write
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files, state

Engine: TypeAlias = "tuple[Spread, Pool]"
LEDGER, LOG = "ledger.jsonl", "refused.log"


def run_generate(arguments: argparse.Namespace, console: Console) -> int:
    registry = specs.load(*arguments.specs)
    names: list[str] = arguments.recipe or shipped()
    ops = [o for o in arguments.ops.split(",") if o]
    recipes = [load_recipe(n, registry, max_ops=arguments.max_ops, ops=ops) for n in names]
    if arguments.scene:
        recipes = [recipe.only(arguments.scene) for recipe in recipes]
    if arguments.list:
        _list(recipes, console)
        return 0
    limit = arguments.time_limit
    settings = Settings(
        arguments.seed, arguments.workers, arguments.seconds, tuple(arguments.specs), int(arguments.memory * (1 << 30)),
        arguments.candidates, deadline=time.monotonic() + limit if limit else float("inf"),
    )  # fmt: skip
    known = Known(registry, _proved(arguments.known, registry))
    made(arguments.out)
    with Ledger(arguments.out / LEDGER) as ledger, _engine(arguments) as engine:
        for recipe in recipes:
            if recipe.macros and not known.rules:
                raise BadOption(f"recipe {recipe.name} composes known rules: name their files with --known")
            counts: list[Counts] = []
            findings: list[Finding] = []
            try:
                _run(recipe, registry, ledger, settings, engine, arguments, console, counts, findings, known)
            finally:  # also when interrupted: the scenes that are done are written, the rest is in the ledger
                kept = reduced(findings, registry)
                provenance = _provenance(recipe, arguments, counts, len(findings))
                path = write(provenance, kept, arguments.out, registry)
            _show(recipe, counts, console)
            print(f"{path}: {len(kept)} rules, all proved; {len(findings) - len(kept)} more that these do as well")
        export(ledger.entries(), arguments.out / LOG)
    return 0


@contextmanager
def _engine(arguments: argparse.Namespace) -> Generator[Engine]:
    """What spreads fingerprints, and who answers questions about rules."""
    if arguments.engine == "local":
        with Workers(arguments.workers, tuple(arguments.specs), MEMORY) as pool:
            yield local(arguments.workers), pool
        return
    from superopt.generate.cluster import Cluster  # Ray is loaded for this alone

    with Cluster(arguments.address, tuple(p.resolve() for p in arguments.specs)) as cluster:
        yield cluster.spread(), cluster.pool()


def _proved(paths: list[Path], registry: Registry) -> list[Rule]:
    """The rules that the user has; one that is not proved counts for nothing."""
    found = load_rules(rule_files(paths)) if paths else []
    return [rule for rule in found if state(rule, registry) == "proved"]


def _run(
    recipe: Recipe, registry: Registry, ledger: Ledger, settings: Settings, engine: Engine,
    arguments: argparse.Namespace, console: Console, counts: list[Counts], findings: list[Finding], known: Known,
) -> None:  # fmt: skip
    """Adds to counts and findings, scene by scene."""
    with Live(console, arguments.quiet) as tell:

        def enumerating(p: Progress) -> None:
            rate = p.graphs / max(time.monotonic() - p.started, 1e-9)
            done = f"{p.portions_done} of {p.portions} portions of level {p.level}"
            tell(
                Stage(
                    stage=f"{recipe.name}/{p.scene}: enumerating",
                    detail=f"{done}, {p.graphs:,} graphs, {rate:,.0f} a second",
                )
            )

        def proving(c: Counts) -> None:
            known = c.pruned
            dropped = known.renamed + known.instances + known.context + known.derivable
            left = known.offered - dropped - known.accepted - known.rejected
            told = (
                f"{c.proved} proved, {c.refuted} refuted, {c.unknown} unknown, {dropped:,} dropped, {left:,} to look at"
            )
            tell(Stage(stage=f"{recipe.name}/{c.scene}: proving", detail=told))

        told = Notices(enumerating, proving)
        spread, pool = engine
        for one, found in generate(
            recipe, registry, ledger, settings, spread=spread, pool=pool, notices=told, known=known
        ):
            counts.append(one)
            findings += found


def _provenance(recipe: Recipe, arguments: argparse.Namespace, counts: Iterable[Counts], proved: int) -> Provenance:
    counts = list(counts)
    words = [f"superopt generate-rules --recipe {recipe.name}"]
    words += [f"--max-ops {arguments.max_ops}"] if arguments.max_ops else []
    words += [f"--ops {arguments.ops}"] if arguments.ops else []
    words += [f"--scene {s}" for s in arguments.scene]
    words += [f"--known {path.name}" for path in arguments.known]
    words += [f"--candidates {arguments.candidates} --seconds {arguments.seconds:g} --seed {arguments.seed}"]
    summed = {
        "graphs covered, with one result": round(sum(c.covered for c in counts)),
        "graphs covered, with several": round(sum(c.covered_several for c in counts)),
        "graphs evaluated": sum(c.graphs for c in counts),
        "equal pairs": sum(c.equal for c in counts),
        "about weights alone": sum(c.free for c in counts),
        "offered": sum(c.pruned.offered for c in counts),
        "renamed": sum(c.pruned.renamed for c in counts),
        "instances": sum(c.pruned.instances for c in counts),
        "in a common context": sum(c.pruned.context for c in counts),
        "derivable": sum(c.pruned.derivable for c in counts),
        "not looked at": sum(c.left for c in counts),
        "refuted": sum(c.refuted for c in counts),
        "unknown": sum(c.unknown for c in counts),
        "bad trades in floating point": sum(c.unsafe for c in counts),
        "proved": proved,
    }
    return Provenance(recipe.name, arguments.seed, " ".join(words), summed)


def _show(recipe: Recipe, counts: list[Counts], console: Console) -> None:
    table = Table(title=f"{recipe.name}: {recipe.doc}", title_justify="left")
    heads = (
        "scene",
        "graphs",
        "covered",
        "of several results",
        "values",
        "equal",
        "dropped",
        "proved",
        "refuted",
        "unknown",
        "enumerate s",
        "prove s",
    )
    for k, head in enumerate(heads):
        table.add_column(head, justify="left" if k == 0 else "right")
    for c in counts:
        dropped = c.pruned.renamed + c.pruned.instances + c.pruned.context + c.pruned.derivable
        numbers = (
            c.graphs, c.covered, c.covered_several, c.values, c.equal, dropped, c.proved, c.refuted, c.unknown
        )  # fmt: skip
        cells = [f"{n:,.0f}" for n in numbers]
        cells += [f"{c.enumerating:.1f}", f"{c.proving:.1f}"]
        table.add_row(c.scene + (" (stopped)" if c.stopped else ""), *cells)
    console.print(table)


def _list(recipes: list[Recipe], console: Console) -> None:
    for recipe in recipes:
        print(f"{recipe.name}: {recipe.doc}")
        for scene in recipe.scenes:
            inputs = "  ".join(map(str, scene.given))
            print(f"  {scene.name}: {len(scene.templates)} operators, up to {scene.max_ops} in a graph, of {inputs}")
        for tiling in recipe.tilings:
            print(f"  {tiling.name}: {tiling.told}, from {len(tiling.points)} points")
