"""Follow every answer to every question about symbols that a definition asks.

A definition asks Python questions of symbolic sizes (`if n == 1`). Each run answers them one way, where the facts do not
answer them already; the runs together cover all ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from superopt.ops.condition import Condition, deciding, negate
from superopt.verify.facts import Facts

MOST_PATHS = 400


class TooManyPaths(Exception):
    """More ways than are worth following; the verdict is unknown."""


class Path:
    """One run: the facts it started from and the answers it gave."""

    def __init__(self, facts: Facts, script: list[bool]) -> None:
        self.facts = facts
        self.script = script
        self.taken: list[bool] = []

    def decide(self, condition: Condition) -> bool:
        if self.facts.entails(condition):
            return True
        if self.facts.entails(negate(condition)):
            return False
        answer = self.script[len(self.taken)] if len(self.taken) < len(self.script) else True
        self.taken.append(answer)
        self.facts = self.facts.and_(condition if answer else negate(condition))
        return answer


def explore(facts: Facts, run: Callable[[Path], None]) -> Iterator[Path]:
    """Run once for every way to answer, depth first."""
    script: list[bool] = []
    for _ in range(MOST_PATHS):
        path = Path(facts, script)
        with deciding(path.decide):
            run(path)
        yield path
        script = list(path.taken)
        while script and not script[-1]:
            script.pop()
        if not script:
            return
        script[-1] = False
    raise TooManyPaths(f"more than {MOST_PATHS} cases")
