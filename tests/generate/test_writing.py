"""Files of rules found by machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import specs
from superopt.generate.writing import Finding, Provenance, write
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, state
from superopt.rewrite.text import parse_rules

pytestmark = pytest.mark.smt

REGISTRY = specs.load()
ABOUT = Provenance("tiny", 7, "superopt generate-rules --recipe tiny --seed 7", {"graphs": 12345, "candidates": 3})
TEXT = """
rule a
  given x: [n, ...b]
  y = Relu(Relu(x))
  =>
  y = Relu(x)
rule b
  given x: [n, ...b]
  y = Neg(Neg(x))
  =>
  y = Identity(x)
rule c
  given x: [n, ...b]
  y = Relu(Relu(x))
  =>
  y = Relu(x)
"""


def found() -> list[Rule]:
    return parse_rules(TEXT)


def test_what_is_written_reads_as_proved_rules(tmp_path: Path) -> None:
    path = write(ABOUT, [Finding(r, "plain") for r in found()], tmp_path, REGISTRY)
    rules = load_rules([path])
    assert path == tmp_path / "tiny.rules"
    assert len(rules) == 2, "rules that say the same are written once"
    assert all(state(r, REGISTRY) == "proved" and r.doc for r in rules)
    assert {r.origin for r in rules} == {"generated recipe=tiny scene=plain seed=7"}
    assert rules == sorted(rules, key=lambda r: r.name)
    assert "graphs: 12,345" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_the_order_of_findings_does_not_matter(tmp_path: Path) -> None:
    one = write(ABOUT, [Finding(r, "plain") for r in found()], tmp_path / "1", REGISTRY)
    two = write(ABOUT, [Finding(r, "plain") for r in found()[::-1]], tmp_path / "2", REGISTRY)
    assert one.read_bytes() == two.read_bytes()


def test_macros_are_marked(tmp_path: Path) -> None:
    findings = [Finding(r, "plain", macro=r.name == "c") for r in found()]
    rules = load_rules([write(ABOUT, findings, tmp_path, REGISTRY)])
    assert sorted(r.origin.endswith(" macro") for r in rules) == [False, True]
