"""What the bodies of a node read of the graph around them."""

from __future__ import annotations

from superopt.ir.graph import Attribute, Graph, Parameter, Value, make_parameter
from superopt.normalize.builder import substitute
from superopt.normalize.scope import count_uses

Attributes = dict[str, Attribute]


def prune(attributes: Attributes, captured: tuple[Value, ...]) -> tuple[Attributes, tuple[Value, ...]]:
    """Bodies that capture each outer value once, and only those that they read."""
    bodies = [body for value in attributes.values() for body in graphs_in(value)]
    read: set[Value] = set()
    for body in bodies:
        read.update(count_uses(body))
    kept: dict[Value, Parameter] = {}
    moved: dict[Value, Value] = {}
    for parameter, value in zip(bodies[0].captures, captured, strict=True):
        if Value(parameter) in read:
            if value not in kept:
                kept[value] = make_parameter(len(kept), parameter.type, captured=True)
            moved[Value(parameter)] = Value(kept[value])
    if len(kept) == len(captured):
        return attributes, captured
    captures = tuple(kept.values())
    return {name: _moved(value, moved, captures) for name, value in attributes.items()}, tuple(kept)


def graphs_in(value: Attribute) -> tuple[Graph, ...]:
    if isinstance(value, Graph):
        return (value,)
    return tuple(v for v in value if isinstance(v, Graph)) if isinstance(value, tuple) else ()


def _moved(value: Attribute, moved: dict[Value, Value], captures: tuple[Parameter, ...]) -> Attribute:
    if isinstance(value, Graph):
        return substitute(value, moved, captures)[0]
    bodies = graphs_in(value)
    return tuple(substitute(body, moved, captures)[0] for body in bodies) if bodies else value
