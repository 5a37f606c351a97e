"""Two graphs compared: what is kept, what is not, and what hangs together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from superopt.explain.difference import Difference, compare
from superopt.ir.onnx import parse
from superopt.ir.parse import parse_graph
from superopt.ir.tensor import ArrayTensor
from superopt.normalize import normalize
from tests.graphs import Case, cases

pytestmark = pytest.mark.unit

checked = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    derandomize=True,
)

BASE = """graph g (x: float32[n, 4]) -> (y) {
  w = float32[4] {1.0, 2.0, 3.0, 4.0}
  a: float32[n, 4] = Mul(x, w)
  b: float32[n, 4] = Identity(a)
  c: float32[n, 4] = Relu(b)
  y: float32[n, 4] = Softmax(c, axis=1)
}"""


def difference(before: str, after: str) -> Difference:
    return compare(parse_graph(before), parse_graph(after))


def named(found: Difference, side: int) -> dict[str, str]:
    """Status of each node of one graph, by the name of its first output."""
    view = (found.before, found.after)[side]
    return {view.names[node.outputs[0]]: status for node, status in found.statuses[side].items()}


def counts(found: Difference) -> tuple[int, int, int, int]:
    return found.count("kept"), found.count("changed"), found.count("removed"), found.count("added")


def test_a_graph_does_not_differ_from_itself() -> None:
    found = difference(BASE, BASE)
    assert found.same
    assert counts(found) == (4, 0, 0, 0)


def test_names_in_between_are_no_structure() -> None:
    renamed = BASE.replace("a:", "p:").replace("(a)", "(p)").replace("c:", "q:").replace("(c,", "(q,")
    assert renamed != BASE
    assert difference(BASE, renamed).same


def test_order_is_no_structure() -> None:
    text = "graph (x: float32[2]) -> (y, z) {{\n{}\n}}"
    y, z = "  y: float32[2] = Relu(x)", "  z: float32[2] = Abs(x)"
    assert difference(text.format(f"{y}\n{z}"), text.format(f"{z}\n{y}")).same


def test_a_constant_is_the_same_as_initializer_and_as_node() -> None:
    as_node = BASE.replace("w = float32[4] {", "w: float32[4] = Constant(value=float32[4] {").replace("4.0}", "4.0})")
    found = difference(BASE, as_node)
    assert found.same
    assert counts(found) == (4, 0, 0, 0)


def test_a_removed_node_and_the_one_that_read_it_are_one_region() -> None:
    found = difference(BASE, BASE.replace("  b: float32[n, 4] = Identity(a)\n", "").replace("(b)", "(a)"))
    assert named(found, 0) == {"a": "kept", "b": "removed", "c": "changed", "y": "kept"}
    assert named(found, 1) == {"a": "kept", "c": "changed", "y": "kept"}
    (region,) = found.regions
    assert (region.removed, region.added, [c.reasons for c in region.changed]) == (1, 0, [("operands",)])
    assert found.region_of[0].keys() == set(region.before)


def test_what_changed_of_a_node_is_named() -> None:
    for old, new, reason in (
        ("axis=1", "axis=0", "attributes"),
        ("4.0}", "5.0}", "constants"),
        ("Mul(x, w)", "Mul(w, x)", "operands"),
    ):
        found = difference(BASE, BASE.replace(old, new))
        assert [c.reasons for c in found.changes.values()] == [(reason,)], old
        assert len(found.regions) == 1


def test_a_value_recomputed_under_its_name_leaves_its_readers_alone() -> None:
    before = """graph (x: float32[n, 2]) -> (y, z) {
      u = float32[2, 1] {1.0, 2.0}
      v = float32[2, 1] {3.0, 4.0}
      a: float32[n, 1] = MatMul(x, u)
      b: float32[n, 1] = MatMul(x, v)
      y: float32[n, 1] = Relu(a)
      z: float32[n, 1] = Abs(b)
    }"""
    after = """graph (x: float32[n, 2]) -> (y, z) {
      uv = float32[2, 2] {1.0, 3.0, 2.0, 4.0}
      ab: float32[n, 2] = MatMul(x, uv)
      a, b: float32[n, 1], float32[n, 1] = Split(ab, axis=1)
      y: float32[n, 1] = Relu(a)
      z: float32[n, 1] = Abs(b)
    }"""
    found = difference(before, after)
    assert [named(found, side)[name] for side in (0, 1) for name in "yz"] == ["kept"] * 4
    (region,) = found.regions
    assert (len(region.before), len(region.after)) == (2, 2)


def test_a_node_that_was_folded_is_a_region_of_its_own() -> None:
    before = """graph (x: float32[2]) -> (y) {
      c = float32[2] {1.0, 4.0}
      r: float32[2] = Sqrt(c)
      y: float32[2] = Mul(x, r)
    }"""
    after = "graph (x: float32[2]) -> (y) {\n r = float32[2] {1.0, 2.0}\n y: float32[2] = Mul(x, r)\n}"
    found = difference(before, after)
    assert named(found, 0) == {"r": "removed", "y": "kept"}
    assert len(found.regions) == 1


def layers(count: int, body: str) -> str:
    """A chain of equal layers, each `{i}` from `{h}`."""
    lines = "\n".join(body.format(i=f"h{i + 1}", h=f"h{i}") for i in range(count))
    return f"graph (h0: float32[n]) -> (h{count}) {{\n{lines}\n}}"


def test_equal_layers_changed_alike_are_regions_of_one_shape() -> None:
    before = layers(5, "{i}a: float32[n] = Neg({h})\n{i}b: float32[n] = Identity({i}a)\n{i}: float32[n] = Relu({i}b)")
    after = layers(5, "{i}a: float32[n] = Neg({h})\n{i}: float32[n] = Relu({i}a)")
    found = difference(before, after)
    assert [region.like for region in found.regions] == [None, 1, 1, 1, 1]
    assert [region.removed for region in found.regions] == [1] * 5
    assert counts(found) == (5, 5, 5, 0)


def test_nodes_with_other_names_are_found_by_weights_and_neighbours() -> None:
    weights = ArrayTensor(np.arange(40, dtype=np.float32))
    text = """graph (x: float32[40]) -> (y) {{
      w = float32[40] #{digest}
      {0}: float32[40] = {1}(x)
      {2}: float32[40] = Add({3})
      {4}: float32[40] = Relu({2})
      y: float32[40] = Abs({4})
    }}"""
    before = text.format("a", "Neg", "b", "a, w", "c", digest=weights.digest)
    after = text.format("p", "Exp", "q", "w, p", "r", digest=weights.digest)
    tensors = {weights.digest: weights}
    found = compare(parse_graph(before, tensors), parse_graph(after, tensors))
    assert named(found, 0) == {"a": "removed", "b": "changed", "c": "kept", "y": "kept"}
    assert named(found, 1) == {"p": "added", "q": "changed", "r": "kept", "y": "kept"}


def test_bodies_are_compared_inside() -> None:
    text = """graph (c: bool[], x: float32[2]) -> (y) {{
      a: float32[2] = Abs(x)
      y: float32[2] = If(c, then_branch=graph captures (a: float32[2]) -> (r) {{
        s: float32[2] = Relu(a)
        r: float32[2] = {}(s)
      }}, else_branch=graph captures (a: float32[2]) -> (r) {{
        r: float32[2] = Neg(a)
      }}) captured (a)
    }}"""
    found = difference(text.format("Exp"), text.format("Sqrt"))
    assert [c.reasons for c in found.changes.values()] == [("body",)]
    ((node, name, inside),) = found.nested
    assert (node.op, name) == ("If", "then_branch")
    assert named(inside, 0) == {"s": "kept", "r": "removed"}
    assert counts(found) == (3, 1, 1, 1)
    assert difference(text.format("Exp"), text.format("Exp")).same


def test_inputs_and_outputs_count_by_name_type_and_order() -> None:
    text = "graph ({}) -> ({}) {{\n  y: float32[2] = Relu({})\n  z: float32[2] = Abs({})\n}}"
    base = text.format("x: float32[2], v: float32[2]", "y, z", "x", "v")
    for other, line in (
        (text.format("u: float32[2], v: float32[2]", "y, z", "u", "v"), "+ input u: float32[2]"),
        (text.format("x: float32[n], v: float32[2]", "y, z", "x", "v"), "+ input x: float32[n]"),
        (text.format("v: float32[2], x: float32[2]", "y, z", "x", "v"), "+ inputs in the order v: float32[2]; x:"),
        (text.format("x: float32[2], v: float32[2]", "z, y", "x", "v"), "+ outputs in the order z: float32; y:"),
        (text.format("x: float32[2], v: float32[2]", "y = z, z = y", "x", "v"), "+ output y is z"),
        (text.format("x: float32[2], v: float32[2]", "y", "x", "v"), "- output z: float32"),
    ):
        found = difference(base, other)
        assert not found.same
        assert not found.regions
        assert any(told.startswith(line) for told in found.interface), (line, found.interface)


def test_graphs_that_have_nothing_in_common_are_one_region() -> None:
    other = "graph (image: float32[3]) -> (label) {\n label: float32[3] = Exp(image)\n}"
    found = difference(BASE, other)
    assert counts(found) == (0, 0, 4, 1)
    assert sum(len(region.before) + len(region.after) for region in found.regions) == 5


@checked
@given(cases())
def test_a_model_read_twice_has_one_structure(case: Case) -> None:
    assert compare(parse(case.model).graph, parse(case.model).graph).same


@checked
@given(cases(max_steps=20))
def test_every_node_has_one_status_and_every_changed_one_a_region(case: Case) -> None:
    model = parse(case.model)
    found = compare(model.graph, normalize(model).graph)
    for side in (0, 1):
        lit = {node for node, status in found.statuses[side].items() if status != "kept"}
        members = [node for region in found.regions for node in (region.before, region.after)[side]]
        assert len(members) == len(lit)
        assert set(members) == lit
    for a, b in found.matching.forth.items():
        assert a.kind == b.kind
        assert found.matching.back[b] is a
