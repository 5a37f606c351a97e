"""Steps that pay only together: found at one place, they are tried at all others.

A search finds them by trying whatever does not cost much, and there is much of that: it may find a way over a hill in
one block of a network, and not in the next one, which has other sizes, or stands in a region with more around it. But
whoever knows the way needs to try nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import TypeAlias

from superopt.ir.graph import Node
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.rewrite.synonyms import stands_for
from superopt.search.candidate import Candidate
from superopt.search.descend import MOST, Way

LONGEST = 8
"""Steps of a way that are remembered: the last ones."""
TRIED = 3
"""Places for a step, at most, behind those before it."""

Hill: TypeAlias = tuple[str, ...]
"""A way over it: rules by their names, each at or beside what those before it made. Some of them may have nothing to do
elsewhere."""


def hills_of(candidate: Candidate) -> Iterator[Hill]:
    """Which of a candidate's steps led to which: chains of them, to the end."""
    steps, made, before = candidate.steps, list[frozenset[Node]](), list[set[int]]()
    for step in steps:
        before.append({k for k, nodes in enumerate(made) if not nodes.isdisjoint(step.match.nodes)})
        made = [*map(step.now, made), step.fresh]
    led_on = {j for earlier in before for j in earlier}
    for last in range(len(steps)):
        if last not in led_on:
            chain = tuple(steps[k].rule.name for k in sorted(_all_before(last, before)))
            if len(chain) > 1:
                yield chain[-LONGEST:]


def _all_before(last: int, before: list[set[int]]) -> set[int]:
    found, waiting = {last}, [last]
    while waiting:
        new = before[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def climbed(
    start: Candidate,
    hills: Iterable[Hill],
    rules: Rules,
    rewriter: Rewriter,
    price: Callable[[Piece], float],
    out_of_time: Callable[[], bool],
    most: int = MOST,
) -> Candidate | None:
    """The graph with all of these ways gone wherever they pay, and with what pays behind them; None where none does."""
    way = Way(start, rules, rewriter, price, out_of_time, most)
    hills = list(hills)
    cost = None
    while way.cost != cost and not out_of_time():
        cost = way.cost
        for hill in hills:
            _climb(way, hill)
        way.go_down()
    return way.end


def _climb(way: Way, hill: Hill) -> None:
    """Goes one way wherever it begins and pays."""
    while (found := _paying(way, hill)) is not None:
        way.go(*found)


def _paying(way: Way, hill: Hill) -> tuple[tuple[Taken, ...], float] | None:
    """Steps that pay, and what the graph costs behind them."""
    for node in way.piece.nodes:
        for steps in _ways(way, hill, way.piece, (node,), frozenset()):
            cost = way.price(steps[-1].after)
            if cost < way.cost:
                return steps, cost
    return None


def _ways(
    way: Way, hill: Hill, piece: Piece, nodes: Iterable[Node], fresh: frozenset[Node]
) -> Iterator[tuple[Taken, ...]]:
    """The ways that begin at these nodes, and go on at or beside what was made. Steps that are possible nowhere are
    left out, and whatever a way passes by is an end of it as well."""
    pattern, tried = way.rules.patterns[hill[0]], 0
    near = _near(piece, fresh)
    for node in nodes:
        if not stands_for(node, pattern.anchor.call.op, pattern.anchor.call.domain):
            continue
        for match, made in way.rewriter.matches(pattern, node, piece):
            if way.out_of_time() or tried >= TRIED:
                return
            if not _concerns(match.nodes, near) or not all(value in piece.called for value in match.results.values()):
                continue
            tried += 1
            step = way.rewriter.take(piece, match, made)
            yield (step,)
            if len(hill) > 1:
                for rest in _ways(way, hill[1:], step.after, step.after.nodes, step.now(fresh) | step.fresh):
                    yield (step, *rest)
    if not tried and len(hill) > 1:
        yield from _ways(way, hill[1:], piece, nodes, fresh)


def _concerns(nodes: Iterable[Node], near: Container[Node] | None) -> bool:
    return near is None or any(node in near for node in nodes)


def _near(piece: Piece, fresh: Collection[Node]) -> Container[Node] | None:
    """What was made, what that reads, and what reads it; None: everything, where nothing was made yet."""
    if not fresh:
        return None
    around = set(fresh)
    for node in piece.nodes:
        read = {value.node for value in node.inputs if value is not None and value.node is not None}
        if node in fresh:
            around |= read
        elif not read.isdisjoint(fresh):
            around.add(node)
    return around
