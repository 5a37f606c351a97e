"""A rule tried on numbers: quickly, to see whether a more general form of it may be true."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from superopt.errors import BadInput
from superopt.ops.condition import Condition
from superopt.ops.element import Access
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.editing import flat
from superopt.rewrite.program import Impossible, Program, RealFact
from superopt.rewrite.rule import Rule, Step
from superopt.verify.counterexample import find_counterexample
from superopt.verify.instances import instances

DRAWS = 8
"""Instances of each number of axes that a form must survive before a proof is tried."""
SEED = 5
TRIES = 60
SIZES = (41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89)
NOT_A_RULE = (BadInput, Illegal, NotCovered, Impossible, TypeError, ValueError, IndexError, KeyError, ArithmeticError)
"""What a form raises that is no rule at all, such as an axis that no tensor has."""


def survives(rule: Rule, registry: Registry) -> bool:
    """Whether it has instances, and none that were drawn differ. A proof decides, later."""
    try:
        if next(instances(rule, registry, wanted=DRAWS, seed=SEED), None) is None:
            return False
        return find_counterexample(rule, registry, wanted=DRAWS, seed=SEED) is None
    except NOT_A_RULE:
        return False


@dataclass
class Sizes:
    """Different numbers for different sizes, so that an axis is known by its size."""

    rng: Random
    free: list[int]

    def positive(self, name: str) -> Any:
        """Entries of bundles are 1: most other numbers are not legal together."""
        return 1 if "." in name else self.free.pop()

    def natural(self, name: str) -> Any:
        return 0 if "." in name else self.rng.randrange(3)

    def real(self, name: str) -> Any:
        return Access(name, ())

    def choose(self, count: int) -> int:
        return 0

    def assume(self, condition: Condition | bool) -> None:
        if not condition:
            raise Impossible("drawn otherwise")

    def assume_real(self, fact: RealFact) -> None:
        """Numbers play no part in shapes."""


@dataclass
class Shapes:
    """Sizes for which the left side of a rule is legal; shapes of any of its steps."""

    rule: Rule
    registry: Registry
    names: dict[str, Any]
    ranks: dict[str, int]

    def of(self, steps: tuple[Step, ...], rule: Rule | None = None) -> dict[str, tuple[int, ...]]:
        """The shape of every value, for flat steps; raises where they are not legal."""
        program = Program(rule or self.rule, self.registry, Sizes(Random(0), []), names=dict(self.names))
        program.start(self.ranks)
        return {name: shape(tensor) for name, tensor in program.run(steps).items()}


def shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]


def find_shapes(rule: Rule, registry: Registry, ranks: dict[str, int] | None = None) -> Shapes | None:
    """Sizes, different where names differ, for which the left side is legal; None where none are found."""
    ranks = dict.fromkeys(rule.blocks, 1) if ranks is None else ranks
    steps = flat(rule.left)
    for attempt in range(TRIES):
        rng = Random(f"{SEED} {attempt}")
        free: list[int] = list(SIZES)
        rng.shuffle(free)
        program = Program(rule, registry, Sizes(rng, free))
        try:
            program.start(ranks)
            program.run(steps)
        except NOT_A_RULE:
            continue
        return Shapes(rule, registry, program.names, ranks)
    return None
