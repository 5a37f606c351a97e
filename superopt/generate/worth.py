"""What graphs cost at run time, roughly, and which pairs come first."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import lru_cache

from superopt.generate.recipe import Scene
from superopt.generate.term import Node, Pair, Term, leaves, operators, show, subterms

HEAVY = ("Conv", "MatMul", "Gemm", "Attention", "Einsum")
"""Parts of the names of operators that multiply matrices."""
HEAVY_COST = 10
VIEWS = frozenset(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"))
"""Operators that move nothing: beside others a detour may have any number of them."""
ASIDE, INSTEAD = 1, 2
"""How many light operators more a detour may have: beside the same heavy ones, and where the heavy ones are others."""
NORMALIZING = 4
"""Weights that one operator reads at least for it to fall apart: scale, shift, mean and variance."""


def is_heavy(operator: str) -> bool:
    return any(part in operator for part in HEAVY)


def at_run_time(terms: Iterable[Term], scene: Scene) -> list[int]:
    """The templates of operators that are not free: they read an input that is no weight."""
    return [t for t, operands in operators(*terms) if any(n not in scene.weights for n in leaves(*operands))]


def cost(terms: Iterable[Term], scene: Scene) -> int:
    """Operators at run time, those that multiply matrices counted tenfold."""
    heavy, light = _running(terms, scene)
    return HEAVY_COST * len(heavy) + light


def is_detour(left: Iterable[Term], right: Iterable[Term], scene: Scene) -> bool:
    """Whether the right side multiplies as many matrices with little more around them, such as a bias that stands
    beside its Conv: a neighbour may take that up. Where the products are by another operator only the clock knows.

    Or a normalization by weights falls apart into a scale and a shift, which neighbours take up as well."""
    left, right = tuple(left), tuple(right)
    (before, light_before), (after, light_after) = (_running(side, scene, VIEWS) for side in (left, right))
    if (before, light_before) == (after, light_after) and not set(left).isdisjoint(subterms(*right)):
        return False  # the same, looked at in another way
    if not before and not after:
        return _reads_weights(left, scene) >= NORMALIZING and light_after - light_before <= ASIDE
    return 0 < len(after) <= len(before) and light_after - light_before <= (ASIDE if after == before else INSTEAD)


def _reads_weights(terms: Iterable[Term], scene: Scene) -> int:
    """Weights among the operands of an operator that runs, at most."""
    running = [operands for _, operands in operators(*terms) if any(n not in scene.weights for n in leaves(*operands))]
    return max((sum(all(n in scene.weights for n in leaves(o)) for o in operands) for operands in running), default=0)


def _running(terms: Iterable[Term], scene: Scene, free: Container[str] = frozenset()) -> tuple[list[str], int]:
    """The operators at run time that multiply matrices, and how many others there are."""
    every = [name for t in at_run_time(terms, scene) for name in scene.templates[t].at_run_time]
    names = [name for name in every if name not in free]
    heavy = sorted(filter(is_heavy, names))
    return heavy, len(names) - len(heavy)


def runs(pair: Pair, scene: Scene) -> bool:
    """Whether it is about anything that runs. Laws about weights alone save nothing, and there are many."""
    return any(leaf not in scene.weights for leaf in leaves(*pair.left, *pair.right))


def written(terms: Iterable[Term]) -> int:
    """Operators of a graph as it is written out, where each is repeated for each of its readers."""
    roots = dict.fromkeys(t.operator for t in terms if isinstance(t, Node))
    return sum(1 + sum(_written(o) for o in operands) for _, operands in roots)


@lru_cache(1 << 18)
def _written(term: Term) -> int:
    return written((term,))


def order(pair: Pair, scene: Scene) -> tuple[int, int, int, int, int, int, str]:
    """Spellings of a scene's targets first, then the smallest: by operators of the larger side; then those with a side
    that costs less; then by operators of both sides, written out; then the most general, which has the most leaves;
    then, of laws that differ in what are weights, those about what runs; then by text.

    By the larger side, because a law such as x + (y − z) = (x + y) − z is what larger sides that cancel follow from.
    Written out, a pair has as many operators as one that follows from it by taking two leaves for one: Relu(x) +
    Relu(x) is smaller than Relu(x) + Relu(y) as a graph, and would come first, though it is the special case.
    """
    running = sum(len(at_run_time(side, scene)) for side in (pair.left, pair.right))
    text = " = ".join(", ".join(show(t, scene.templates) for t in side) for side in (pair.left, pair.right))
    return (*rank(pair, scene), -running, text)


def _is_target(term: Term, scene: Scene) -> bool:
    """Whether it is a target of inputs: that of x/2 has spellings as well, which follow."""
    return isinstance(term, Node) and term.template in scene.goals and all(isinstance(o, str) for o in term.operands)


def rank(pair: Pair, scene: Scene) -> tuple[int, int, int, int, int]:
    """The part of the order that tells apart what may follow from what."""
    sides = written(pair.left), written(pair.right)
    aside = not any(_is_target(t, scene) for t in (*pair.left, *pair.right))
    level = int(cost(pair.left, scene) == cost(pair.right, scene))
    return int(aside), max(sides), level, sum(sides), -len(leaves(*pair.left, *pair.right))
