"""What a graph does with the values of an input: followed forward to whoever asks something of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from superopt.check.consumers import Use, computes, constants, preserves, use_of
from superopt.ir.graph import Graph, Node, Parameter, Value
from superopt.ir.types import DType

_BOOL = 9
"""How Cast writes it; inference does not always get as far as its type."""


@dataclass(frozen=True, eq=False)
class _Scope:
    """A graph and, for a body, the node that holds it."""

    graph: Graph
    node: Node | None = None
    outer: _Scope | None = None


@dataclass(frozen=True)
class _Place:
    scope: _Scope
    value: Value
    shift: int = 0
    exact: bool = True


def uses_of_inputs(graph: Graph) -> dict[str, tuple[Use, ...]]:
    """By input name, every use found; nothing found says nothing."""
    walk = _Walk()
    top = _Scope(graph)
    return {
        name: walk.uses(_Place(top, Value(parameter)))
        for name, parameter in zip(graph.input_names, graph.inputs, strict=True)
    }


class _Walk:
    def __init__(self) -> None:
        self._readers: dict[Graph, dict[Value, list[tuple[Node, int]]]] = {}
        self._scopes: dict[tuple[_Scope, Graph], _Scope] = {}

    def uses(self, start: _Place) -> tuple[Use, ...]:
        found: dict[Use, None] = {}
        waiting, seen = [start], {(start.scope, start.value)}
        while waiting:
            place = waiting.pop()
            for node, slot in self._readers_of(place.scope.graph).get(place.value, ()):
                use = self._use(place, node, slot)
                if use is not None:
                    found[replace(use, shift=place.shift, exact=place.exact)] = None
                for following in self._beyond(place, node, slot):
                    if (following.scope, following.value) not in seen:
                        seen.add((following.scope, following.value))
                        waiting.append(following)
            waiting.extend(self._leaving(place, seen))
        return tuple(found)

    def _use(self, place: _Place, node: Node, slot: int) -> Use | None:
        if slot < 0:
            return None
        if node.op in ("Cast", "CastLike") and not node.domain:
            return _cast_use(place.value, node)
        inputs = tuple(v if v is None else _outermost(place.scope, v) for v in node.inputs)
        return use_of(node, slot, inputs)

    def _beyond(self, place: _Place, node: Node, slot: int) -> Iterator[_Place]:
        """Where the value goes on: through the node, or into its bodies."""
        if node.bodies:
            for body in node.bodies:
                yield from self._entering(place, node, body, slot)
        elif preserves(node, slot):
            for output in node.outputs:
                yield replace(place, value=output)
        elif computes(node):
            shift = self._shift(place, node, slot)
            for output in node.outputs:
                if shift is None:
                    yield replace(place, value=output, exact=False)
                else:
                    yield replace(place, value=output, shift=place.shift + shift)

    def _shift(self, place: _Place, node: Node, slot: int) -> int | None:
        """c where the node computes x + c."""
        if node.op not in ("Add", "Sub") or (node.op == "Sub" and slot == 1):
            return None
        other = node.inputs[1 - slot]
        found = constants(_outermost(place.scope, other), 1) if other is not None else ()
        if not found or isinstance(found[0], str) or found[0] != int(found[0]):
            return None
        return int(found[0]) if node.op == "Add" else -int(found[0])

    def _entering(self, place: _Place, node: Node, body: Graph, slot: int) -> Iterator[_Place]:
        inner = self._scopes.setdefault((place.scope, body), _Scope(body, node, place.scope))
        if slot < 0:
            yield replace(place, scope=inner, value=Value(body.captures[-1 - slot]))
        elif slot < len(body.inputs) and not (node.op == "Loop" and slot < 2):
            yield replace(place, scope=inner, value=Value(body.inputs[slot]))

    def _leaving(self, place: _Place, seen: set[tuple[_Scope, Value]]) -> Iterator[_Place]:
        """Out of a body: the results of If and Scan in order, those of Loop after its condition."""
        scope = place.scope
        if scope.node is None or scope.outer is None:
            return
        for i, output in enumerate(scope.graph.outputs):
            index = i - (scope.node.op == "Loop")
            if output == place.value and 0 <= index < len(scope.node.types):
                outside = Value(scope.node, index)
                if (scope.outer, outside) not in seen:
                    seen.add((scope.outer, outside))
                    yield replace(place, scope=scope.outer, value=outside)

    def _readers_of(self, graph: Graph) -> dict[Value, list[tuple[Node, int]]]:
        found = self._readers.get(graph)
        if found is None:
            found = self._readers[graph] = {}
            for node in graph.nodes:
                for slot, value in enumerate(node.inputs):
                    if value is not None:
                        found.setdefault(value, []).append((node, slot))
                for i, value in enumerate(node.captured):
                    found.setdefault(value, []).append((node, -1 - i))
        return found


def _cast_use(source: Value, cast: Node) -> Use | None:
    before = source.tensor_type.dtype if source.tensor_type is not None else None
    after = cast.outputs[0].tensor_type.dtype if cast.outputs[0].tensor_type is not None else None
    if after is DType.BOOL or cast.attribute("to") == _BOOL:
        return Use("flag")
    if before is DType.STRING and after is not DType.STRING:
        return Use("number text")
    return None


def _outermost(scope: _Scope, value: Value) -> Value:
    """What a captured value is outside."""
    while isinstance(value.producer, Parameter) and value.producer.captured and scope.node is not None:
        value = scope.node.captured[value.producer.position]
        assert scope.outer is not None
        scope = scope.outer
    return value
