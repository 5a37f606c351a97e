"""Follow every answer to every question about symbols that a definition asks.

A definition asks Python questions of symbolic sizes (`if n == 1`). Each run answers them one way, where the facts do
not answer them already; the runs together cover all ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from superopt.ops.condition import Condition, deciding, negate
from superopt.rewrite.program import RealFact
from superopt.verify.facts import Facts

MOST_PATHS = 400


class TooManyPaths(Exception):
    """More ways than are worth following; the verdict is unknown."""


class Path:
    """One run: what it knows so far, and the choices it made."""

    def __init__(self, facts: Facts, script: list[int]) -> None:
        self.facts = facts
        self._script = script
        self.outcome = ""
        self.taken: list[tuple[int, int]] = []
        """Each choice, with the number of choices there were."""

    def choose(self, count: int) -> int:
        """One of `count` ways to go on; other runs take the others."""
        place = len(self.taken)
        choice = self._script[place] if place < len(self._script) else 0
        self.taken.append((choice, count))
        return choice

    def assume(self, *conditions: Condition | bool) -> None:
        self.facts = self.facts.and_(*conditions)

    def assume_real(self, fact: RealFact) -> None:
        self.facts = self.facts.and_real(fact)

    def decide(self, condition: Condition) -> bool:
        if self.facts.entails(condition):
            return True
        if self.facts.entails(negate(condition)):
            return False
        answer = self.choose(2) == 0
        self.assume(condition if answer else negate(condition))
        return answer


def explore(facts: Facts, run: Callable[[Path], None], most: int = MOST_PATHS) -> Iterator[Path]:
    """Run once for every way to choose, depth first."""
    script: list[int] = []
    for _ in range(most):
        path = Path(facts, script)
        with deciding(path.decide):
            run(path)
        yield path
        taken = list(path.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        script = [choice for choice, _ in taken]
        script[-1] += 1
    raise TooManyPaths(f"more than {most} cases")
