"""When two pairs say the same: renamed, turned around, one an instance of the other, or one inside the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from superopt.generate.recipe import Scene
from superopt.generate.term import Node, Pair, Term, leaves, replace, size, subterms

Key: TypeAlias = "tuple[Any, ...]"
"""Orders terms: leaves before operators, then by template, output and operands."""

MOST_NAMINGS = 720
"""Ways to name a pair's leaves that are tried; where there are more, they are named in order of use."""


def canonical(pair: Pair, scene: Scene) -> Pair:
    """The same for all pairs that differ in the names of interchangeable leaves, in which side is the left one, in the
    order of their results, or in the order of a commutative operator's operands.

    Leaves are interchangeable when they are declared with the same shape and both or neither are weights; those used
    become the first ones declared. The larger side is the left one.
    """
    number = {g.name: k for k, g in enumerate(scene.given)}

    def rank(leaf: str) -> int:
        return number[leaf]

    named = (_written(pair, naming, scene, rank) for naming in _namings(pair, scene))
    return min(named, key=lambda found: found[0])[1]


def _namings(pair: Pair, scene: Scene) -> Iterator[dict[str, str]]:
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for given in scene.given:
        kind = (given.kind, ", ".join(map(str, given.dims)), given.name in scene.weights)
        groups.setdefault(kind, []).append(given.name)
    used = leaves(*pair.left, *pair.right)
    members = [[n for n in used if n in group] for group in groups.values()]
    targets = [group[: len(mine)] for group, mine in zip(groups.values(), members, strict=True)]
    if math.prod(math.factorial(len(mine)) for mine in members) > MOST_NAMINGS:
        yield {a: b for mine, to in zip(members, targets, strict=True) for a, b in zip(mine, to, strict=True)}
        return
    for choice in itertools.product(*(itertools.permutations(to) for to in targets)):
        yield {a: b for mine, to in zip(members, choice, strict=True) for a, b in zip(mine, to, strict=True)}


def _written(pair: Pair, naming: Mapping[str, str], scene: Scene, rank: Callable[[str], int]) -> tuple[Key, Pair]:
    def side(terms: tuple[Term, ...]) -> list[tuple[Key, Term]]:
        return [_normal(t, naming, scene, rank) for t in terms]

    sides = side(pair.left), side(pair.right)
    found: list[tuple[Key, Pair]] = []
    for one, other in (sides, sides[::-1]):
        both = sorted(zip(one, other, strict=True), key=lambda b: (b[0][0], b[1][0]))
        result = Pair(tuple(left[1] for left, _ in both), tuple(right[1] for _, right in both))
        key = (-size(*result.left), tuple(left[0] for left, _ in both), tuple(right[0] for _, right in both))
        found.append((key, result))
    return min(found, key=lambda f: f[0])


def _normal(term: Term, naming: Mapping[str, str], scene: Scene, rank: Callable[[str], int]) -> tuple[Key, Term]:
    """A term renamed, the operands of commutative operators in order, and its key."""
    if isinstance(term, str):
        name = naming.get(term, term)
        return (0, rank(name)), name
    operands = [_normal(o, naming, scene, rank) for o in term.operands]
    if scene.templates[term.template].commutative:
        operands.sort(key=lambda o: o[0])
    node = Node(term.template, tuple(o[1] for o in operands), term.output)
    return (1, term.template, term.output, *(o[0] for o in operands)), node


def normal(terms: Iterable[Term], scene: Scene) -> tuple[Term, ...]:
    """With the operands of commutative operators in order."""
    number = {g.name: k for k, g in enumerate(scene.given)}
    return tuple(_normal(t, {}, scene, lambda leaf: number.get(leaf, len(number)))[1] for t in terms)


def pattern_key(pair: Pair, scene: Scene) -> Key:
    """Equal keys mean equal pairs but for the names of leaves, whatever their shapes.

    Leaves are named in order of use, after operands and results are ordered by what can be said without names. Equal
    pairs with much symmetry may get two keys: a pair is then proved that need not be.
    """
    sides = [[_normal(t, {}, scene, _nameless) for t in side] for side in (pair.left, pair.right)]
    found: list[Key] = []
    for one, other in (sides, sides[::-1]):
        both = sorted(zip(one, other, strict=True), key=lambda b: (b[0][0], b[1][0]))
        ordered = [[left[1] for left, _ in both], [right[1] for _, right in both]]
        number = {name: k for k, name in enumerate(leaves(*ordered[0], *ordered[1]))}
        found.append(tuple(tuple(_normal(t, {}, scene, number.__getitem__)[0] for t in side) for side in ordered))
    return min(found)


def _nameless(_: str) -> int:
    return 0


def abstracted(pair: Pair, *, whole: bool = False) -> Pair:
    """The pair with the largest operators' terms that both sides have replaced by fresh leaves `?0`, `?1`, …

    The given pair is an instance of it. The result is no claim, and its fresh leaves have no shapes: it serves to find
    a pair that is known already, of which the given one is an instance. A side that stands inside the other is itself
    replaced only if `whole`: Relu(Relu(Add(x, y))) = Relu(Add(x, y)) is an instance of Relu(Relu(?0)) = Relu(?0),
    while Transpose(Transpose(Add(x, y))) = Add(x, y) is one of Transpose(Transpose(?0)) = ?0.
    """
    left, right = (dict.fromkeys(t for t in subterms(*side) if isinstance(t, Node)) for side in (pair.left, pair.right))
    roots = () if whole else (*pair.left, *pair.right)
    common = {t for t in left if t in right and t not in roots}
    fresh: dict[Term, Term] = {}

    def visit(term: Term) -> None:
        if term in common:
            fresh.setdefault(term, f"?{len(fresh)}")
        elif isinstance(term, Node):
            for operand in term.operands:
                visit(operand)

    for term in (*pair.left, *pair.right):
        visit(term)
    return Pair(tuple(replace(t, fresh) for t in pair.left), tuple(replace(t, fresh) for t in pair.right))


def inside(pair: Pair) -> tuple[Pair, ...]:
    """Pairs from which this one follows by putting both sides in one context: a = b of f(a, c) = f(b, c). None for
    several results, or where the sides' operators differ."""
    if len(pair.left) != 1:
        return ()
    (a,), (b,) = pair.left, pair.right
    if isinstance(a, str) or isinstance(b, str) or (a.template, a.output) != (b.template, b.output):
        return ()
    differing = [(s, t) for s, t in zip(a.operands, b.operands, strict=True) if s != t]
    return tuple(Pair((s,), (t,)) for s, t in differing)
