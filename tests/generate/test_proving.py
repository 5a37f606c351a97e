"""Candidates settled in processes: in order, once, whatever dies."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.generate.ledger import Ledger
from superopt.generate.proving import Settled, settle
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import format_meaning, parse_rules

pytestmark = [pytest.mark.smt, pytest.mark.slow]

TEXT = """
rule relu-twice
  given x: [m, k]
  y = Relu(Relu(x))
  =>
  y = Relu(x)
rule wrong
  given x: [m, k]
  y = Relu(x)
  =>
  y = Neg(x)
rule relu-twice-again
  given x: [m, n]
  y = Relu(Relu(x))
  =>
  y = Relu(x)
rule scale
  given x: [m, k]
  y = Relu(Mul(x, 2))
  =>
  y = Mul(Relu(x), 2)
"""

DEADLY = '''
"""An operator that ends the process in which it is used."""
import os
from superopt.ops.formula import Tensor
from superopt.ops.registry import operator


@operator("Deadly", domain="test.deadly", since=1)
def deadly(x: Tensor) -> Tensor:
    os._exit(3)
'''


def candidates() -> list[Rule]:
    return parse_rules(TEXT)


def told(results: list[Settled]) -> list[tuple[str, str, str]]:
    return [(s.candidate.name, s.status, format_meaning(s.rule) if s.rule else "") for s in results]


def test_results_come_in_order_and_do_not_depend_on_the_number_of_workers() -> None:
    one = told(list(settle(candidates(), workers=1)))
    two = told(list(settle(candidates(), workers=2)))
    assert one == two
    assert [(name, status) for name, status, _ in one] == [
        ("relu-twice", "proved"),
        ("wrong", "refuted"),
        ("relu-twice-again", "proved"),
        ("scale", "proved"),
    ]
    assert "s >= 0" in one[3][2], "the number became a variable"


def test_nothing_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger") as ledger:
        first = told(list(settle(candidates(), ledger=ledger, workers=1)))
        size = len(ledger)
    monkeypatch.setattr("superopt.generate.proving.Workers", None)
    with Ledger(tmp_path / "ledger") as ledger:
        assert told(list(settle(candidates(), ledger=ledger, workers=1))) == first
        assert len(ledger) == size


def test_a_worker_that_dies_costs_its_question_alone(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    deadly = parse_rules(
        "rule deadly\n  given x: [m, k]\n  y = test.deadly::Deadly(x)\n  =>\n  y = test.deadly::Deadly(Relu(x))\n"
    )
    results = list(settle([*deadly, *candidates()[:1]], folders=(tmp_path,), workers=2))
    assert [s.status for s in results] == ["unknown", "proved"]
    assert results[0].attempts[-1].reason == "the proving process died"


def test_time_is_limited() -> None:
    conv = parse_rules(
        "rule conv\n  given x: [n, c, h, w]  k: [o, c, 3, 3]  u: [o, c, 3, 3]\n"
        "  y = Add(Conv(x, k), Conv(x, u))\n  =>\n  y = Conv(x, Add(k, u))\n"
    )
    [settled] = settle(conv, workers=1, seconds=0.01)
    assert settled.status == "unknown"
    assert settled.attempts[-1].reason == "no proof within 0.01 CPU seconds"
