"""From two equal graphs to the text of a rule, in the sizes that the recipe names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from superopt.generate.recipe import Scene
from superopt.generate.term import Node, Pair, Term, leaves, operators, size, subterms
from superopt.generate.worth import cost, is_detour
from superopt.rewrite.expression import names_in
from superopt.rewrite.rule import Block, Call, Operand, Rule, Step


def directions(pair: Pair, scene: Scene) -> Iterator[Pair]:
    """The ways in which it may be used: the pattern reads every input, and what takes its place costs less when it
    runs, or as much without more work on weights, or is a detour that may be worth it. Scenes that lead uphill want
    what costs as much or more."""
    for left, right in ((pair.right, pair.left), (pair.left, pair.right)):
        bound = set(leaves(*left))
        usable = all(isinstance(t, Node) for t in left) and set(leaves(*right)) <= bound
        before, after = ((cost(side, scene), size(*side)) for side in (left, right))
        pays = after[0] < before[0] or (after[0] == before[0] and after[1] <= before[1])
        wanted = after[0] >= before[0] if scene.uphill else pays or is_detour(left, right, scene)
        if usable and wanted:
            yield Pair(left, right)


def first_of_its_names(pair: Pair, scene: Scene) -> bool:
    """Whether of inputs that are alike it reads the first ones: one that reads others is another one renamed."""
    used = set(leaves(*pair.left, *pair.right))
    alike: dict[tuple[str, bool], list[bool]] = {}
    for given in scene.given:
        shape = str(given).partition(":")[2]
        alike.setdefault((shape, given.name in scene.weights), []).append(given.name in used)
    return all(reads == sorted(reads, reverse=True) for reads in alike.values())


def to_rule(pair: Pair, scene: Scene, name: str, *, origin: str = "generated") -> Rule:
    """The pair's left side as the pattern, its right side in its place."""
    used = set(leaves(*pair.left, *pair.right))
    mentioned = {n for t, _ in operators(*pair.left, *pair.right) for n in scene.templates[t].mentions}
    given = tuple(g for g in (*scene.given, *scene.whole) if g.name in used or g.name in mentioned)
    taken = used | {n for g in given for d in g.dims for n in (names_in(d) if not isinstance(d, Block) else {d.name})}
    result = next(n for n in ("y", "z", "r", "out", "result") if not any(t.startswith(n) for t in taken))
    results = [result] if len(pair.left) == 1 else [f"{result}{k + 1}" for k in range(len(pair.left))]
    left = tuple(steps(pair.left, scene, results, taken, pattern=True))
    right = tuple(steps(pair.right, scene, results, taken, pattern=False))
    return Rule(name, "", given, (), left, right, origin=origin)


def steps(
    terms: Sequence[Term], scene: Scene, results: Sequence[str], taken: Iterable[str], *, pattern: bool
) -> Iterator[Step]:
    """One step for each operator, operands first."""
    names: dict[Term, str] = {}
    wanted = dict(zip(terms, results, strict=True))
    letter = "t" if pattern else "u"
    fresh = (f"{letter}{k}" for k in range(1, 1000) if f"{letter}{k}" not in set(taken))
    read = {o for t in subterms(*terms) if isinstance(t, Node) for o in t.operands} | set(terms)
    done: set[tuple[int, tuple[Term, ...]]] = set()

    def visit(term: Term) -> Iterator[Step]:
        if isinstance(term, str):
            names[term] = term
            return
        if term.operator in done:
            return
        for operand in term.operands:
            yield from visit(operand)
        done.add(term.operator)
        template = scene.templates[term.template]
        targets: list[str] = []
        for output in range(template.outputs):
            result = Node(term.template, term.operands, output)
            if result in wanted:
                names[result] = wanted[result]
            elif result in read:
                names[result] = next(fresh)
            else:
                names[result] = "_"
            targets.append(names[result])
        call = template.filled(tuple(names[o] for o in term.operands))
        yield from _unnested(call, tuple(targets), fresh)

    for term in terms:
        yield from visit(term)
        if isinstance(term, str):
            yield Step((wanted[term],), term)


def _unnested(call: Call, targets: tuple[str, ...], fresh: Iterator[str]) -> Iterator[Step]:
    """One step for each operator of a template."""
    operands: list[Operand] = []
    for operand in call.operands:
        if isinstance(operand, Call):
            name = next(fresh)
            yield from _unnested(operand, (name,), fresh)
            operands.append(name)
        else:
            operands.append(operand)
    yield Step(targets, replace(call, operands=tuple(operands)))
