"""Two graphs compared: what was kept, changed, removed and added, grouped into connected regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from superopt.explain.matching import Matching, match
from superopt.explain.regions import Change, Reason, Region, find_regions
from superopt.explain.view import Key, View, attribute_key, is_literal
from superopt.ir.graph import Graph, Node, Parameter, Value
from superopt.ir.text import format_name
from superopt.ir.types import TensorType, format_type

Status = Literal["kept", "changed", "removed", "added"]


@dataclass(frozen=True, eq=False)
class Difference:
    before: View
    after: View
    matching: Matching
    changes: Mapping[Node, Change]
    """By the node as it was."""
    regions: tuple[Region, ...]
    interface: tuple[str, ...]
    """Inputs and outputs that are no longer as they were, one `- …` or `+ …` line each."""
    nested: tuple[tuple[Node, str, Difference], ...]
    """Bodies that differ: the node as it was, the attribute, how its graph differs."""

    @property
    def same(self) -> bool:
        return not self.regions and not self.interface

    @cached_property
    def statuses(self) -> tuple[Mapping[Node, Status], Mapping[Node, Status]]:
        """Of the nodes of either graph."""
        forth, after = self.matching.forth, {c.after for c in self.changes.values()}
        return (
            {n: "removed" if n not in forth else "changed" if n in self.changes else "kept" for n in self.before.nodes},
            {
                n: "added" if n not in self.matching.back else "changed" if n in after else "kept"
                for n in self.after.nodes
            },
        )

    @cached_property
    def region_of(self) -> tuple[Mapping[Node, int], Mapping[Node, int]]:
        return (
            {node: region.number for region in self.regions for node in region.before},
            {node: region.number for region in self.regions for node in region.after},
        )

    def count(self, status: Status) -> int:
        """How many nodes, bodies included: those of a removed or added node share its fate."""
        side = 1 if status == "added" else 0
        opened = {(node, name) for node, name, _ in self.nested}
        found = 0
        for node, own in self.statuses[side].items():
            found += own == status
            inner = "kept" if own == "changed" else own
            for name, body in named_bodies(node).items():
                if inner == status and (node, name) not in opened:
                    found += sum(not is_literal(n) for n in body.all_nodes())
        return found + sum(difference.count(status) for _, _, difference in self.nested)


def compare(before: Graph, after: Graph) -> Difference:
    """Compare two whole graphs; inputs are the same by name, else by position."""
    keys = _keys_by_name(before, after)
    views = View(before, keys[0], {}), View(after, keys[1], {})
    return _compare(*views, _interface)


def _compare(before: View, after: View, interface: Callable[[Matching], Iterable[str]]) -> Difference:
    matching = match(before, after)
    changes: dict[Node, Change] = {}
    nested: list[tuple[Node, str, Difference]] = []
    for a in before.nodes:
        b = matching.forth.get(a)
        if b is None:
            continue
        inside = [(a, name, d) for name, d in _bodies(matching, a, b) if not d.same]
        reasons = _reasons(matching, a, b, bool(inside))
        nested += inside
        if reasons:
            changes[a] = Change(a, b, reasons)
    regions = find_regions(matching, changes)
    return Difference(before, after, matching, changes, regions, tuple(interface(matching)), tuple(nested))


def _reasons(matching: Matching, a: Node, b: Node, body: bool) -> tuple[Reason, ...]:
    found: list[Reason] = []
    if attribute_key(a) != attribute_key(b):
        found.append("attributes")
    wrong = [(x, y) for x, y in zip(_padded(a, b), _padded(b, a), strict=True) if not matching.same(x, y)]
    weights = [x is not None and y is not None and x.constant is not None and y.constant is not None for x, y in wrong]
    if not all(weights):
        found.append("operands")
    if any(weights):
        found.append("constants")
    if body:
        found.append("body")
    return tuple(found)


def _padded(node: Node, other: Node) -> tuple[Value | None, ...]:
    """Absent operands at the end may be left out."""
    return (*node.inputs, *(None for _ in range(len(other.inputs) - len(node.inputs))))


def _bodies(matching: Matching, a: Node, b: Node) -> Iterable[tuple[str, Difference]]:
    """How each body differs; what they capture is the same where the captured values are."""
    left, right = named_bodies(a), named_bodies(b)
    if list(left) != list(right) or not left:
        return
    seen_before: dict[Parameter, Key] = {}
    seen_after: dict[Parameter, Key] = {}
    for i, x in enumerate(a.captured):
        for j, y in enumerate(b.captured):
            if matching.same(x, y):
                seen_before |= {p: ("captured", i) for g in left.values() for p in g.captures if p.position == i}
                seen_after |= {p: ("captured", i) for g in right.values() for p in g.captures if p.position == j}
    for name, body in left.items():
        other = right[name]
        yield (
            name,
            _compare(
                View(body, {**_keys_by_position(body), **seen_before}, _outer(matching.before, a), body=True),
                View(other, {**_keys_by_position(other), **seen_after}, _outer(matching.after, b), body=True),
                _results,
            ),
        )


def _outer(view: View, node: Node) -> dict[int, str]:
    return {i: view.names[value] for i, value in enumerate(node.captured)}


def named_bodies(node: Node) -> dict[str, Graph]:
    found: dict[str, Graph] = {}
    for name, value in node.attributes:
        if isinstance(value, Graph):
            found[name] = value
        elif isinstance(value, tuple):
            found |= {f"{name}[{i}]": body for i, body in enumerate(value) if isinstance(body, Graph)}
    return found


def _keys_by_name(before: Graph, after: Graph) -> tuple[dict[Parameter, Key], dict[Parameter, Key]]:
    """One that the other graph does not name counts by position."""
    keys: tuple[dict[Parameter, Key], dict[Parameter, Key]] = ({}, {})
    for side, (graph, other) in enumerate(((before, after), (after, before))):
        for i, (parameter, name) in enumerate(zip(graph.inputs, graph.input_names, strict=True)):
            keys[side][parameter] = ("name", name) if name in other.input_names else ("position", i)
    return keys


def _keys_by_position(body: Graph) -> dict[Parameter, Key]:
    return {parameter: ("position", i) for i, parameter in enumerate(body.inputs)}


def _interface(matching: Matching) -> Iterable[str]:
    """What a caller of the model would notice: names, types and order of inputs and outputs."""
    before, after = matching.before.graph, matching.after.graph
    for kind, left, right in (
        ("input", _inputs(before), _inputs(after)),
        ("output", _outputs(before), _outputs(after)),
    ):
        yield from (f"- {kind} {line}" for line in left if line not in right)
        yield from (f"+ {kind} {line}" for line in right if line not in left)
        if left != right and sorted(left) == sorted(right):
            yield f"- {kind}s in the order {'; '.join(left)}"
            yield f"+ {kind}s in the order {'; '.join(right)}"
    yield from _results(matching)


def _results(matching: Matching) -> Iterable[str]:
    """Results that are another value now, though nothing of what makes them has changed."""
    for key, value in matching.before.results.items():
        other = matching.after.results.get(key)
        if other is None or matching.same(value, other):
            continue
        if _stands(matching.forth, value) and _stands(matching.back, other):
            yield f"- output {_shown(key)} is {format_name(matching.before.names[value])}"
            yield f"+ output {_shown(key)} is {format_name(matching.after.names[other])}"


def _shown(key: Key) -> str:
    return format_name(key) if isinstance(key, str) else str(key)


def _stands(partners: Mapping[Node, Node], value: Value) -> bool:
    """Whether what makes the value is still there; otherwise a region tells of it."""
    return value.node is None or value.node in partners or value.constant is not None


def _inputs(graph: Graph) -> list[str]:
    return [f"{format_name(n)}: {format_type(p.type)}" for n, p in zip(graph.input_names, graph.inputs, strict=True)]


def _outputs(graph: Graph) -> list[str]:
    return [
        f"{format_name(name)}: {_dtype(value)}" for name, value in zip(graph.output_names, graph.outputs, strict=True)
    ]


def _dtype(value: Value) -> str:
    """An output's shape follows from the inputs' and is often known to one of two files only."""
    return str(value.type.dtype or "?") if isinstance(value.type, TensorType) else format_type(value.type)
