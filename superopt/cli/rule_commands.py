"""`superopt rules …` and `superopt ops …`: call and print."""

from __future__ import annotations

import argparse
import inspect
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import specs
from superopt.cli.mutate_command import run_mutate
from superopt.errors import BadInput
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, proved, rewrite_proofs, rule_files, state
from superopt.rewrite.text import format_rule

WRITE_EVERY = 30.0
"""Seconds of proving that an interruption may cost."""


def run_rules(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.action == "mutate":
        return run_mutate(arguments, console)
    registry = specs.load(*arguments.specs)
    files = rule_files(arguments.files)
    rules = load_rules(files)
    if arguments.action == "verify":
        return _verify(arguments, rules, registry, console)
    if arguments.action == "check":
        return _check(rules, registry)
    if arguments.action == "derive":
        return _derive(arguments, rules, registry)
    if arguments.action == "reduce":
        return _reduce(rules, registry)
    if arguments.action == "list":
        for rule in rules:
            print(f"{rule.name:44s} {state(rule, registry):9s} {rule.doc}")
        return 0
    rule = next((r for r in rules if r.name == arguments.name), None)
    if rule is None:
        raise BadInput(f"no rule is called {arguments.name!r}; `superopt rules list` names them all")
    if arguments.action == "show":
        print(format_rule(rule), end="")
        return 0
    return _explain(rule, registry)


def run_ops(arguments: argparse.Namespace) -> int:
    registry = specs.load(*arguments.specs)
    if arguments.action == "list":
        for operator in registry:
            print(f"{operator.kind:48s} opset {_opsets(operator):8s} {operator.doc.splitlines()[0]}")
        return 0
    domain, _, name = arguments.name.rpartition("::")
    found = [o for o in registry if o.name == name and o.domain == domain]
    if not found:
        raise BadInput(f"no operator is called {arguments.name!r}; `superopt ops list` names them all")
    for operator in found:
        print(f"{operator.kind}, opset {_opsets(operator)}, elements: {operator.elements}, digest {operator.digest}")
        print(f"{operator.doc}\n")
        print(inspect.getsource(operator.formula))
    return 0


def _opsets(operator: Operator) -> str:
    return f"{operator.since}–{operator.until}" if operator.until is not None else f"{operator.since}+"


def _check(rules: list[Rule], registry: Registry) -> int:
    """Digests only: every rule proved as it stands, or said which is not."""
    states = {rule.name: state(rule, registry) for rule in rules}
    for rule in rules:
        if states[rule.name] != "proved":
            print(f"{rule.source}:{rule.line}: {rule.name}: {states[rule.name]}")
    counts = Counter(states.values())
    print(", ".join(f"{counts[s]} {s}" for s in ("proved", "stale", "unproved")))
    return 0 if counts["proved"] == len(rules) else 1


def _derive(arguments: argparse.Namespace, rules: list[Rule], registry: Registry) -> int:
    """For each rule, a way that leads from its left side to its right side, at random sizes; or that none was found."""
    from superopt.generate.known import Known, derivation

    given = load_rules(rule_files(arguments.given)) if arguments.given else rules
    usable = [rule for rule in given if state(rule, registry) == "proved"]
    found = 0
    for rule in rules:
        others = [g for g in usable if g.name != rule.name]
        way = derivation(rule, Known(registry, others), arguments.steps)
        found += way is not None
        told = "not derived" if way is None else f"derived: {', then '.join(way) or 'the same on both sides'}"
        print(f"{rule.name:44s} {told}", flush=True)
    print(f"{found} of {len(rules)} derived in at most {arguments.steps} steps from {len(usable)} rules")
    return 0 if found == len(rules) else 1


def _reduce(rules: list[Rule], registry: Registry) -> int:
    """Generated rules that the others do as well, and idle ones, leave their files; what people wrote stays."""
    from superopt.generate.reduce import needless_rules
    from superopt.generate.writing import UPHILL, take_out

    kept = [not rule.origin.startswith("generated ") or rule.origin.endswith(UPHILL) for rule in rules]
    gone: defaultdict[str, set[str]] = defaultdict(set)
    for k in needless_rules(rules, kept, registry, idle=True):
        gone[rules[k].source].add(rules[k].name)
        print(f"{rules[k].source}: {rules[k].name}", flush=True)
    for source, names in gone.items():
        take_out(Path(source), names)
    count = sum(map(len, gone.values()))
    print(f"{count} of {len(rules)} taken out, {len(rules) - count} left")
    return 0


def _verify(arguments: argparse.Namespace, rules: list[Rule], registry: Registry, console: Console) -> int:
    """Three different answers: proved, refuted with a counterexample, unknown."""
    from superopt.search.mutant_proofs import MutantProver, follows_from_others, solver  # z3 is needed here alone
    from superopt.verify.batch import prove_all

    wanted = rules if arguments.all else [r for r in rules if state(r, registry) != "proved"]
    derived = [r for r in wanted if follows_from_others(r)]
    at_once = [r for r in wanted if not follows_from_others(r)]
    prover = MutantProver(registry, arguments.seconds)
    done: dict[str, Rule] = {r.name: r for r in rules}
    counts: Counter[str] = Counter({"proved": len(rules) - len(wanted)})
    written = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("proving", total=len(wanted))
        folders = tuple(arguments.specs)
        answers = prove_all(at_once, folders, workers=arguments.workers, seconds=arguments.seconds)
        for rule, verdict in chain(answers, ((r, prover.verdict(r)) for r in derived)):
            counts[verdict.status] += 1
            progress.advance(task)
            print(f"{rule.name:44s} {verdict.status:8s} {verdict.seconds:7.2f} s  {verdict.reason}", flush=True)
            if verdict.status == "proved":
                done[rule.name] = proved(rule, registry, "unbounded", solver(rule))
            if not arguments.dry_run and time.monotonic() - written > WRITE_EVERY:
                _write(done.values())
                written = time.monotonic()
    if not arguments.dry_run:
        _write(done.values())
    print(", ".join(f"{counts[s]} {s}" for s in ("proved", "refuted", "unknown")))
    return 0 if counts["proved"] == len(rules) else 1


def _write(rules: Iterable[Rule]) -> None:
    by_file: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_file[rule.source].append(rule)
    for source, group in by_file.items():
        rewrite_proofs(Path(source), group)


def _explain(rule: Rule, registry: Registry) -> int:
    """The rule, the formulas of both sides at one output element, and what its proof rests on."""
    from superopt.verify.explain import explain  # z3 is needed here alone

    print(format_rule(rule))
    print(explain(rule, registry))
    print(f"state: {state(rule, registry)}")
    return 0
