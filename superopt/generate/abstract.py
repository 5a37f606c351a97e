"""The general law behind a pair: what both sides compute alike is an input of the law.

Add(Add(Relu(x), y), z) = Add(Relu(x), Add(y, z)) says no more than associativity, and Relu(x) is just something added.
The new input's shape is read off the worlds: the simplest expression of the recipe's sizes that gives the right number
in each of them. A guess may be wrong; the proof decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from superopt.generate.recipe import Scene
from superopt.generate.stage import Signature, Stage
from superopt.generate.term import Node, Pair, Term, leaves, subterms
from superopt.generate.term import replace as replace_terms
from superopt.rewrite.expression import Binary, Expression, Literal, Name
from superopt.rewrite.rule import Given


class Abstraction:
    """Pairs made general, and the scene with the inputs they need."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._signatures: dict[Term, Signature] = {**stage.leaves}
        self._sizes = list(_expressions(stage))
        self._shapes: dict[Signature, tuple[Expression, ...] | None] = {}
        self._made: dict[tuple[Signature, bool, int], Given] = {}

    @property
    def scene(self) -> Scene:
        """With the inputs that were made."""
        scene = self.stage.scene
        free = frozenset(g.name for (_, is_free, _), g in self._made.items() if is_free)
        return replace(scene, given=(*scene.given, *self._made.values()), weights=scene.weights | free)

    def general(self, pair: Pair) -> Pair:
        """The pair with its largest common subterms as inputs; the pair itself where there are none."""
        by: dict[Term, Term] = {}
        taken = set(leaves(*pair.left, *pair.right))
        for term in self._common(pair):
            name = self._input(term, taken)
            if name is None:
                return pair
            taken.add(name)
            by[term] = name
        return replace_all(pair, by) if by else pair

    def _common(self, pair: Pair) -> list[Term]:
        """Operators' results that occur on both sides, those inside another one left out."""
        left = [t for t in subterms(*pair.left) if isinstance(t, Node) and t not in pair.left]
        right = set(subterms(*pair.right)) - set(pair.right)
        common = [t for t in left if t in right]
        inside = {s for t in common for s in subterms(t) if s != t}
        outer = [t for t in common if t not in inside]
        needed = {t for t in outer if self._stands_alone(t, pair, outer)}
        return [t for t in outer if t in needed]

    def _stands_alone(self, term: Term, pair: Pair, outer: Sequence[Term]) -> bool:
        """Whether its parts are read nowhere else, so that nothing about them gets lost."""
        parts = {s for s in subterms(term) if s != term}
        rest = replace_all(pair, {t: f"?{k}" for k, t in enumerate(outer)})
        return not parts & set(subterms(*rest.left, *rest.right))

    def signature(self, term: Term) -> Signature:
        if term not in self._signatures:
            assert isinstance(term, Node)
            applied = self.stage.apply(term.template, tuple(self.signature(o) for o in term.operands))
            assert applied is not None
            self._signatures[term] = self.stage.signature(applied, term.output)
        return self._signatures[term]

    def _input(self, term: Term, taken: set[str]) -> str | None:
        signature = self.signature(term)
        is_free = all(name in self.stage.scene.weights for name in leaves(term))
        for given in self.stage.scene.given:
            same = self.stage.leaves[given.name] == signature and (given.name in self.stage.scene.weights) == is_free
            if same and given.kind == "tensor" and given.name not in taken:
                return given.name
        if signature not in self._shapes:
            self._shapes[signature] = self._shape(signature)
        dims = self._shapes[signature]
        if dims is None:
            return None
        for count in itertools.count():
            key = (signature, is_free, count)
            if key not in self._made:
                self._made[key] = Given(f"zz{len(self._made) + 1}", "tensor", dims)
                self._signatures[self._made[key].name] = signature
            if self._made[key].name not in taken:
                return self._made[key].name
        raise AssertionError

    def _shape(self, signature: Signature) -> tuple[Expression, ...] | None:
        ranks = {len(shape) for shape in signature}
        if len(ranks) > 1:
            return None
        dims: list[Expression] = []
        for axis in range(ranks.pop()):
            wanted = tuple(shape[axis] for shape in signature)
            found = next((e for e, values in self._sizes if values == wanted), None)
            if found is None:
                return None
            dims.append(found)
        return tuple(dims)


def replace_all(pair: Pair, by: dict[Term, Term]) -> Pair:
    return Pair(tuple(replace_terms(t, by) for t in pair.left), tuple(replace_terms(t, by) for t in pair.right))


def _expressions(stage: Stage) -> Iterator[tuple[Expression, tuple[int, ...]]]:
    """Sizes, simplest first: names, numbers, sums and products of two, twice a name."""
    worlds = stage.scene.worlds
    names = [n for n, v in worlds[0].items() if isinstance(v, int)]
    plain: list[tuple[Expression, tuple[int, ...]]] = [(Name(n), tuple(_int(w[n]) for w in worlds)) for n in names]
    numbers: list[tuple[Expression, tuple[int, ...]]] = [(Literal(str(k)), (k,) * len(worlds)) for k in range(1, 8)]
    yield from plain
    yield from numbers
    for operator in "+*":
        for (a, x), (b, y) in itertools.combinations(plain, 2):
            yield Binary(operator, a, b), tuple(p + q if operator == "+" else p * q for p, q in zip(x, y, strict=True))
    for (n, k), (a, x) in itertools.product(numbers[1:3], plain):
        yield Binary("*", n, a), tuple(p * q for p, q in zip(k, x, strict=True))
    for (a, x), (n, k) in itertools.product(plain, numbers[:4]):
        yield Binary("+", a, n), tuple(p + q for p, q in zip(x, k, strict=True))


def _int(value: Any) -> int:
    return int(value)
