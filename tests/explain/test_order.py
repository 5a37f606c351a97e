"""Both graphs as one sequence to read, and rewrites at the regions they made."""

from __future__ import annotations

import pytest

from superopt.explain.difference import Difference, compare
from superopt.explain.order import Stretch, in_order
from superopt.explain.trace import rewrites_by_region
from superopt.ir.parse import parse_graph
from superopt.report import Rewrite

pytestmark = pytest.mark.unit

BEFORE = """graph (x: float32[n]) -> (y, z) {
  a: float32[n] = Neg(x)
  b: float32[n] = Identity(a)
  c: float32[n] = Relu(b)
  d: float32[n] = Exp(c)
  y: float32[n] = Abs(d)
  z: float32[n] = Tanh(d)
}"""


def told(found: Difference) -> list[str]:
    """Regions by number, stretches by the names of their nodes."""
    return [
        "".join(found.before.names[node.outputs[0]] for node in item.nodes)
        if isinstance(item, Stretch)
        else str(item.number)
        for item in in_order(found)
    ]


def without_identity(text: str) -> str:
    return text.replace("  b: float32[n] = Identity(a)\n", "").replace("Relu(b)", "Relu(a)")


def test_regions_stand_where_they_were_and_every_unchanged_node_between_them() -> None:
    after = without_identity(BEFORE).replace("Tanh(d)", "Sqrt(d)")
    assert told(compare(parse_graph(BEFORE), parse_graph(after))) == ["a", "1", "dy", "2"]


def test_what_is_new_stands_after_what_it_reads() -> None:
    after = BEFORE.replace("-> (y, z)", "-> (y, z, new)").replace("  y:", "  new: float32[n] = Sqrt(c)\n  y:")
    found = compare(parse_graph(BEFORE), parse_graph(after))
    assert [region.before for region in found.regions] == [()]
    assert told(found) == ["abc", "1", "dyz"]


def rewrite(name: str, place: str, **more: object) -> Rewrite:
    return Rewrite.model_validate({"name": name, "place": place, "proof": "by definition", **more})


def test_rewrites_are_told_where_they_were_made() -> None:
    after = without_identity(BEFORE).replace("Tanh(d)", "Sqrt(d)")
    found = compare(parse_graph(BEFORE), parse_graph(after))
    rewrites = [
        rewrite("pass", "Identity:b"),
        rewrite("rule", "z", results=["z"], kind="rule", region=1, nodes=["d", "z"]),
        rewrite("in between", "gone", results=["gone"], kind="rule", region=1, nodes=["d", "z"]),
        rewrite("elsewhere", "gone", results=["gone"], kind="rule", region=2, nodes=["q"]),
    ]
    by_region = rewrites_by_region(found, rewrites)
    assert {number: [r.name for r in made] for number, made in by_region.items()} == {
        1: ["pass"],
        2: ["rule", "in between"],
    }
