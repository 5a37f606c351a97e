"""What a part computes, compared with what richer operators would: on small random sizes and numbers.

Equal numbers are a hint, no proof; what is found goes to the prover. Numbers are floating point with true exponentials,
roots and error functions, so that nothing has to be assumed about them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from superopt.generate.trial import NOT_A_RULE
from superopt.mine.essence import NONE, Essence, Essences
from superopt.mine.legality import Legality
from superopt.mine.lift import Lifted, narrowed
from superopt.mine.targets import Filler, Filling, Target, fits, targets
from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule, Step
from superopt.rewrite.text import parse_rules
from superopt.verify.drawing import Instance, Skip
from superopt.verify.instances import instances

DRAWS = 3
TRIES = 60
TOLERANCE = 1e-9
GUARD = ("IsNaN", "")
"""What asks for it is only what asks for it as well."""
LEAST_ELEMENTS = 4
"""A result of fewer elements says little."""


@dataclass(frozen=True)
class Hit:
    rule: Rule
    target: Target


def rule_text(part: Lifted, right: Iterable[str], name: str = "part") -> str:
    where = f"\n  where   {part.where}" if part.where else ""
    body = "\n  ".join((*part.steps, "=>", *right))
    return f"rule {name}\n  doc     A part of a model.\n  given   {part.given}{where}\n  {body}\n"


class Lookup:
    """Finds the calls that a part may be."""

    def __init__(self, registry: Registry) -> None:
        self.registry, self.essences = registry, Essences(registry)
        self.legality = Legality(registry, self.essences)
        self._told: dict[str, Essence] = {}
        self._asked: dict[tuple[frozenset[tuple[str, str]], int, int, int], list[Target]] = {}

    def may_be(self, operators: Iterable[tuple[str, str]], results: int, data: int, weights: int) -> list[Target]:
        """Calls that a part of these operators may be, with so many results, values and weights that it reads."""
        key = frozenset(operators), results, data, weights
        if key not in self._asked:
            essence, guarded = self._essence(key[0]), GUARD in key[0]
            self._asked[key] = [
                t
                for t in targets()
                if (t.results, t.count("$"), t.count("%")) == key[1:]
                and guarded == (GUARD in t.operators)
                and essence.can_be(self._of(t))
            ]
        return self._asked[key]

    def hits(self, part: Lifted, operators: Iterable[tuple[str, str]]) -> Iterator[Hit]:
        """Calls that give the same numbers as a part of these operators. Where a call does not for all sizes, perhaps
        it does where sizes are equal that are so in the model."""
        among = self.may_be(operators, len(part.results), len(part.data), len(part.weights))
        rest = [t for t in among if fits(t, part)]
        for narrower in itertools.chain([part], narrowed(part)):
            if not rest:
                return
            legal = {target.text: self.legality.ways(Filler(target, narrower)) for target in rest}
            if not any(legal.values()):
                continue
            held = Held(narrower, self.registry)
            found = {hit.target.text: hit for hit in held.hits(rest, legal)}
            yield from found.values()
            rest = [t for t in rest if t.text not in found]

    def _of(self, target: Target) -> Essence:
        if target.text not in self._told:
            self._told[target.text] = self._essence(target.operators)
        return self._told[target.text]

    def _essence(self, operators: Iterable[tuple[str, str]]) -> Essence:
        found = NONE
        for op, domain in operators:
            found = found | self.essences.of(op, domain)
        return found


class Held:
    """Values of one part, against which calls are held."""

    def __init__(self, part: Lifted, registry: Registry) -> None:
        self.part = part
        self.drawn: list[Instance] = []
        self.wanted: list[list[np.ndarray]] = []
        copy = [f"{name} = Identity({part.data[0]})" for name in part.results] if part.data else []
        try:
            (whole,) = parse_rules(rule_text(part, copy))
            for instance in _telling(instances(whole, registry, wanted=TRIES, seed=1), part):
                values = [instance.value(instance.left[name]) for name in part.results]
                if all(v.size >= LEAST_ELEMENTS and np.isfinite(v).all() and np.ptp(v) > 0 for v in values):
                    self.drawn.append(instance)
                    self.wanted.append(values)
                if len(self.drawn) == DRAWS:
                    break
        except (Skip, Unsupported, *NOT_A_RULE):
            self.drawn = []

    def hits(self, among: Iterable[Target], legal: Mapping[str, Sequence[Mapping[str, Filling]]]) -> Iterator[Hit]:
        for target in among if len(self.drawn) == DRAWS else ():
            step = self._found(Filler(target, self.part), legal[target.text])
            if step is not None:
                yield Hit(parse_rules(rule_text(self.part, [str(step)]))[0], target)

    def _found(self, filler: Filler, legal: Sequence[Mapping[str, Filling]]) -> Step | None:
        numbers = filler.numbers()
        for filling, chosen in itertools.product(legal, numbers):
            step = filler.step({**filling, **chosen})
            if self._agrees((step,)):
                return step
        return None

    def _agrees(self, steps: tuple[Step, ...]) -> bool:
        try:
            return all(self._same(k, i.program.run(steps)) for k, i in enumerate(self.drawn))
        except (Skip, Unsupported, *NOT_A_RULE):
            return False

    def _same(self, which: int, found: dict[str, Tensor]) -> bool:
        instance, wanted = self.drawn[which], self.wanted[which]
        tensors = [found[name] for name in self.part.results]
        if any(tuple(t.shape) != w.shape for t, w in zip(tensors, wanted, strict=True)):
            return False
        return all(_close(instance.value(t), w) for t, w in zip(tensors, wanted, strict=True))


def _telling(drawn: Iterable[Instance], part: Lifted) -> Iterator[Instance]:
    """Those in which no size is 1 come first: at a size of 1 much is equal that is not elsewhere."""
    later: list[Instance] = []
    for instance in drawn:
        if any(instance.numbers.drawn.get(name) == 1 for name in part.values):
            later.append(instance)
        else:
            yield instance
    yield from later


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    scale = 1.0 + float(np.max(np.abs(b), initial=0.0))
    return bool(np.all(np.abs(a - b) <= TOLERANCE * scale))
