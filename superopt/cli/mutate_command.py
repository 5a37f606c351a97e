"""`superopt rules mutate`: mutants of a model's programs as a file of rules."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from rich.console import Console

from superopt.errors import BadOption
from superopt.ir.files import clear_write_errors, refuse_unwritable
from superopt.rewrite.text import format_rule


def run_mutate(arguments: argparse.Namespace, console: Console) -> int:
    from superopt.search.mutating import mutants_of_model  # z3 is needed here

    dropped: Counter[str] = Counter()

    def tell(kind: str, what: str) -> None:
        dropped[kind] += 1
        console.print(f"{kind}: {what}", highlight=False, markup=False, soft_wrap=True)

    out: Path | None = arguments.out
    if out is not None:
        _refuse(out, arguments.model)
    texts: list[str] = []
    for found in mutants_of_model(arguments.model, arguments.family, arguments.specs, arguments.seconds, tell):
        texts.append(format_rule(found.rule))
        print(f"{found.rule.name:44s} {found.share:7.2%} mended  {found.rule.doc}", flush=True)
    if out is not None:
        head = f"# Mutants of the programs of {arguments.model.name}, mended and proved: {len(texts)} rules.\n\n"
        with clear_write_errors(out):
            staged = out.with_name(f".{out.name}.new")
            staged.write_text(head + "\n".join(texts), encoding="utf-8")
            os.replace(staged, out)
    print(f"{len(texts)} proved, {dropped['dropped']} dropped, {dropped['bug']} bugs")
    return 1 if dropped["bug"] else 0


def _refuse(out: Path, model: Path) -> None:
    """Before the work, not after it; and never over the model."""
    if out.absolute() == model.absolute() or (out.exists() and model.exists() and out.samefile(model)):
        raise BadOption(f"-o {out}: would replace the model; choose another name")
    refuse_unwritable(out, "the rules")
