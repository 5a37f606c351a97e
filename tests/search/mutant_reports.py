# pyright: basic
"""A result that mutants made, and reports that tell of them otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from superopt.ir.onnx import parse
from superopt.partial.corrected import corrected_mutants
from superopt.partial.families import canvases, tiles
from superopt.partial.lift import originals
from superopt.report import OwnRule, Report
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest, load_rules, proved, rule_files
from superopt.rewrite.text import format_rule, parse_rules
from superopt.rewrite.whole import piece_of
from superopt.search.trace import heard, own_rules_used
from superopt.verify.prove import SOLVER
from tests.search.heads import CHANNELS, LEVELS, REGISTRY, WINDOW, model, small_book
from tests.search.rewritten import Rewritten, rewrite

SHIPPED = next(rule for rule in load_rules(rule_files()) if rule.name == "linear-matmul-matmul-to-matmul-matmul-4574")


def proto() -> onnx.ModelProto:
    """A head of two layers on two images, an image on its own, and a chain of products."""
    rng = np.random.default_rng(0)
    shapes = {"k0": (CHANNELS, CHANNELS, 3, 3), "k1": (CHANNELS, CHANNELS, 3, 3), "k2": (2, 3, 3, 3),
              "v": (6, 7), "w": (7, 5)}  # fmt: skip
    nodes = []
    for k in range(2):
        nodes.append(helper.make_node("Conv", [f"x{k}", "k0"], [f"c{k}"], **WINDOW))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"]))
        nodes.append(helper.make_node("Conv", [f"r{k}", "k1"], [f"y{k}"], **WINDOW))
    nodes.append(helper.make_node("Conv", ["x2", "k2"], ["y2"], **WINDOW))
    nodes += [helper.make_node("MatMul", ["z", "v"], ["m"]), helper.make_node("MatMul", ["m", "w"], ["t"])]
    images = {f"{k}": [1, CHANNELS, *LEVELS[k]] for k in range(2)}
    inputs = {**{f"x{k}": s for k, s in images.items()}, "x2": [1, 3, 12, 5], "z": [4, 6]}
    outputs = {**{f"y{k}": s for k, s in images.items()}, "y2": [1, 2, 12, 5], "t": [4, 5]}
    return model(nodes, inputs, {name: rng.standard_normal(s) / 4 for name, s in shapes.items()}, outputs)


def made_of_mutants(folder: Path) -> Rewritten:
    """A result of three steps: a mutant that was derived, one with corrections, and a rule that ships."""
    opened = parse(proto().SerializeToString())
    rewriter = Rewriter(REGISTRY, 17, Vocabulary())
    programs = list(originals(piece_of(opened.graph, rewriter.constants), rewriter))
    head = next(p for p in programs if len(p.steps) == 6)
    alone = next(p for p in programs if len(p.steps) == 1 and "12" in str(p.given))
    derived = next(corrected_mutants(head, REGISTRY, families=(canvases,)))
    mended = next(c for c in corrected_mutants(alone, REGISTRY, families=(tiles,)) if c.share)
    rules = {c.rule.name: c.rule for c in (derived, mended)}
    book = small_book(SHIPPED, *rules.values())
    result = rewrite(folder, proto(), [*rules, SHIPPED.name], book)
    report = result.told()
    told = own_rules_used(map(heard, report.trace), rules, book.digests)
    result.tell(report.model_copy(update={"mutants": told}))
    return result


Edit = Callable[[OwnRule], OwnRule]


def with_mutant(report: Report, number: int, edit: Edit) -> Report:
    mutants = list(report.mutants)
    mutants[number] = edit(mutants[number])
    return report.model_copy(update={"mutants": mutants})


def text(edit: Callable[[str], str]) -> Edit:
    """Another text, nothing else changed."""

    def changed(told: OwnRule) -> OwnRule:
        edited = edit(told.text)
        assert edited != told.text
        return told.model_copy(update={"text": edited})

    return changed


def replaced(old: str, new: str) -> Edit:
    return text(lambda told: new.join(told.rsplit(old, 1)))


DERIVED, MENDED = 0, 1


DOC = "Trust me."
TRUE = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 1, 1]
  y = Conv(x, k)
  =>
  y = Conv(x, k, strides=[1, 1])
"""
PADDED = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 3, 3]
  y = Conv(x, k, pads=[1, 1, 1, 1])
  =>
  p = Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 0])
  q = Pad(p, pads=[0, 0, 0, 0, 0, 0, 0, 1])
  y = Conv(q, k, dilations=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1])
"""
LOSES_NAN = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 1, 1]
  y = Conv(Sub(x, x), k)
  =>
  y = ConstantOfShape(input=[n, o, 4, 4], value=0)
"""


def renamed(rule: Rule) -> OwnRule:
    """As a forger would tell of a rule: with a digest and a name that fit."""
    own = digest(rule, REGISTRY)
    told = replace(rule, name=f"partial-tiles-{own}", origin="partial tiles", doc=DOC)
    told = proved(told, REGISTRY, "unbounded", SOLVER)
    return OwnRule(name=told.name, digest=own, text=format_rule(told))


def forged(report: Report, rule: Rule) -> Report:
    """The report with another rule in place of its second mutant, wherever it tells of it."""
    old, new = report.mutants[MENDED], renamed(rule)
    told = report.model_dump_json().replace(old.name, new.name).replace(old.digest, new.digest)
    told = told.replace(parse_rules(old.text)[0].doc, DOC)
    return with_mutant(Report.model_validate_json(told), MENDED, lambda _: new)
