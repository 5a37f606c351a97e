# pyright: basic
"""parse ∘ print is the identity: on random models and on every node case that onnx generates."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from superopt.errors import BadText
from superopt.ir.graph import Graph
from superopt.ir.onnx import parse
from superopt.ir.parse import parse_graph
from superopt.ir.tensor import Tensor
from superopt.ir.text import format_graph
from tests.graphs import Case, cases

pytestmark = pytest.mark.unit


def tensors(graph: Graph) -> dict[str, Tensor]:
    found = {c.tensor.digest: c.tensor for c in graph.constants}
    for node in graph.all_nodes():
        for _, value in node.attributes:
            if isinstance(value, Tensor):
                found[value.digest] = value
        for body in node.bodies:
            found.update((c.tensor.digest, c.tensor) for c in body.constants)
    return found


def assert_prints_and_parses(graph: Graph) -> None:
    text = format_graph(graph)
    again = parse_graph(text, tensors(graph))
    assert again.digest == graph.digest
    assert format_graph(again) == text
    assert (again.input_names, again.output_names, again.name) == (graph.input_names, graph.output_names, graph.name)


@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)  # fmt: skip
@given(cases())
def test_random_models(case: Case) -> None:
    assert_prints_and_parses(parse(case.model).graph)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("graph (x: int8[]) -> (y) {}", "text:1:23: output 'y' is not defined"),
        ("graph () -> () {\n  y = Relu(x)\n}", "text:2:12: 'x' is not defined"),
        ("graph (x: int8[]) -> (x) {\n  x = Relu(x)\n}", "text:2:3: 'x' is defined twice"),
        ("graph (x: int8[]) -> (x) {\n  y = Relu(a=1, x)\n}", "operands come before attributes"),
        ("graph () -> () {\n  y = int8[2] {1}\n}", "shape [2] needs 2 elements, found 1"),
        ("graph () -> () {\n  y = int8[2] #00\n}", "no tensor with digest 00 was given"),
        ("graph () -> () {} graph", "expected the end of the text, found 'graph'"),
        ("graph () -> () {\n  ~\n}", "text:2:3: no token starts with '~'"),
    ],
)
def test_bad_text_is_refused_at_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadText) as caught:
        parse_graph(text)
    assert complaint in str(caught.value)
    assert str(caught.value).splitlines()[-1].strip() == "^"
