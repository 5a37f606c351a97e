"""What the bodies of a node read of the graph around them."""

from __future__ import annotations

from typing import TypeGuard

from superopt.ir.graph import Attribute, Graph, Parameter, Value, make_parameter
from superopt.normalize.builder import substitute
from superopt.normalize.scope import count_uses

Attributes = dict[str, Attribute]


def prune(attributes: Attributes, captured: tuple[Value, ...]) -> tuple[Attributes, tuple[Value, ...]]:
    """Bodies that capture each outer value once, and only those that they read."""
    bodies = [body for value in attributes.values() for body in graphs_in(value)]
    read = {v.producer.position for body in bodies for v in count_uses(body) if _is_capture(v.producer)}
    kept = tuple(dict.fromkeys(v for i, v in enumerate(captured) if i in read))
    if len(kept) == len(captured):
        return attributes, captured
    moves = {i: kept.index(v) for i, v in enumerate(captured) if i in read}
    return {name: _moved(value, moves) for name, value in attributes.items()}, kept


def graphs_in(value: Attribute) -> tuple[Graph, ...]:
    if isinstance(value, Graph):
        return (value,)
    return tuple(v for v in value if isinstance(v, Graph)) if isinstance(value, tuple) else ()


def _moved(value: Attribute, moves: dict[int, int]) -> Attribute:
    if isinstance(value, Graph):
        return _move(value, moves)
    bodies = graphs_in(value)
    return tuple(_move(body, moves) for body in bodies) if bodies else value


def _move(body: Graph, moves: dict[int, int]) -> Graph:
    captures: dict[int, Parameter] = {}
    values: dict[Value, Value] = {}
    for old, new in moves.items():
        before = body.captures[old]
        captures.setdefault(new, make_parameter(new, before.type, captured=True))
        values[Value(before)] = Value(captures[new])
    return substitute(body, values, tuple(captures[i] for i in sorted(captures)))[0]


def _is_capture(producer: object) -> TypeGuard[Parameter]:
    return isinstance(producer, Parameter) and producer.captured
