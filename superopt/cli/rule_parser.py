"""Arguments of `superopt rules …` and `superopt ops …`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

RULES = "what may take the place of what: verify, check, derive, reduce, mutate, list, show, explain"
OPS = "what operators mean: list, show"


def add_rule_commands(commands: Any) -> None:
    rules = commands.add_parser("rules", help=RULES, description=f"Rules: {RULES}.")
    actions = rules.add_subparsers(dest="action", metavar="ACTION", required=True)
    verify = _action(actions, "verify", "prove rules for all sizes and write the proof into their files")
    _add_files(verify)
    verify.add_argument("--workers", type=int, default=2, metavar="N", help="proofs side by side (default 2)")
    verify.add_argument("--seconds", type=float, default=120.0, metavar="S", help="for each rule (default 120)")
    verify.add_argument("--all", action="store_true", help="prove again what is proved already")
    verify.add_argument("--dry-run", action="store_true", help="write nothing")
    check = _action(actions, "check", "are the proofs about the rules as they stand? (no solver, instant)")
    _add_files(check)
    listing = _action(actions, "list", "names, states and what they say")
    _add_files(listing)
    derive = _action(actions, "derive", "which rules follow from others, by rewriting one side into the other")
    derive.add_argument("files", type=Path, nargs="+", metavar="FILE", help="rule files or folders")
    derive.add_argument(
        "--given", type=Path, action="append", default=[], metavar="PATH",
        help="rules that may be used; may be repeated (default: the others of FILE)",
    )  # fmt: skip
    derive.add_argument("--steps", type=int, default=3, metavar="N", help="rewrites, at most (default 3)")
    add_specs(derive)
    reduce = _action(
        actions, "reduce", "take out of generated files what other rules of them do in one step, and what saves nothing"
    )
    reduce.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="files or folders that generate-rules wrote"
    )
    add_specs(reduce)
    mutate = _action(actions, "mutate", "mutants of a model's programs, mended and proved, as a file of rules")
    mutate.add_argument("model", type=Path, metavar="MODEL.onnx")
    mutate.add_argument("-o", "--out", type=Path, metavar="FILE", help="where they are written, for optimize --rules")
    mutate.add_argument(
        "--family", action="append", default=[], metavar="NAME", help="only mutants of this family; may be repeated"
    )
    mutate.add_argument("--seconds", type=float, default=20.0, metavar="S", help="for each proof (default 20)")
    add_specs(mutate)
    show = _action(actions, "show", "one rule as text")
    explain = _action(actions, "explain", "one rule with the formulas of both sides, its conditions and its proof")
    for one in (show, explain):
        one.add_argument("name", metavar="NAME")
        _add_files(one)

    ops = commands.add_parser("ops", help=OPS, description=f"Operators: {OPS}.")
    actions = ops.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _action(actions, "list", "every operator with the opsets that are covered")
    show = _action(actions, "show", "one operator's definition")
    show.add_argument("name", metavar="NAME", help="as in Conv or com.microsoft::FusedConv")
    for one in (listing, show):
        add_specs(one)


def _action(actions: Any, name: str, help: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(quiet=False)
    return parser


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="rule files or folders (default: shipped)")
    add_specs(parser)


def add_specs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--specs", type=Path, action="append", default=[], metavar="DIR", help="folder of further operator definitions"
    )
