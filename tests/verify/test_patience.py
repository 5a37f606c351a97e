"""What a solver had no time to answer is asked once more; what it answered is not."""

from pathlib import Path
from typing import Any

import pytest
import z3

import specs
from superopt.rewrite.remembered import read_rules
from superopt.verify import facts
from superopt.verify.prove import prove

pytestmark = pytest.mark.smt
RULES = Path(__file__).parents[2] / "rules"


class Late:
    """A solver whose time is over before it has an answer."""

    def __init__(self, solver: Any) -> None:
        self.solver = solver

    def __getattr__(self, name: str) -> Any:
        return getattr(self.solver, name)

    def check(self) -> Any:
        return z3.unknown


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Milliseconds of each solver; those with no more than usual are late."""
    found: list[int] = []
    made = facts._solver  # pyright: ignore[reportPrivateUsage]

    def solver(translate: Any, conditions: Any, milliseconds: int) -> Any:
        found.append(milliseconds)
        is_late = milliseconds in (facts.LINEAR_MS, facts.EXACT_MS)
        return Late(made(translate, conditions, milliseconds)) if is_late else made(translate, conditions, milliseconds)

    monkeypatch.setattr(facts, "_solver", solver)
    return found


def _of_windows() -> Any:
    rules = read_rules(RULES / "images.rules")
    return next(rule for rule in rules if rule.name == "windows-put-back-and-a-bias-in-one-sum")


def test_what_was_left_open_is_asked_once_more(asked: list[int]) -> None:
    assert prove(_of_windows(), specs.load(), examples=False).status == "proved"
    assert max(asked) > facts.LINEAR_MS


def test_unless_it_should_be_quick(asked: list[int]) -> None:
    assert prove(_of_windows(), specs.load(), examples=False, patient=False).status == "unknown"
    assert max(asked) == facts.LINEAR_MS
