"""What the graph asks of its inputs, and that made values stay inside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from superopt.check.cases import FIRST, MASKED, Case, Source
from superopt.check.domains import domain_of
from superopt.check.fill import Style, fill
from superopt.check.search import further_cases
from superopt.check.sizes import Layout, layouts
from superopt.check.uses import uses_of_inputs
from superopt.ir.onnx import Model
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from tests.check.build import BOOL, FLOAT, INT64, compared, graph, model, node, normal, value

SIZES = {"n": 3, "s": 7}


def asked(made: Model, name: str) -> dict[str, Any]:
    return {use.kind: use.size for use in uses_of_inputs(made.graph)[name]}


def embeddings(*path: Any, constants: dict[str, Any] | None = None) -> Model:
    """ids through `path` (from `ids` to `i`) into a table of 10 rows."""
    nodes = [*path, node("Gather", ["t", "i"], ["y"])]
    tables = {"t": normal(10, 4), **(constants or {})}
    return model(nodes, [value("ids", ["n", "s"], INT64)], [value("y", None)], tables)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("path", "constants"),
    [
        ([node("Identity", ["ids"], ["i"])], {}),
        ([node("Cast", ["ids"], ["i"], to=6)], {}),
        ([node("Unsqueeze", ["ids", "a"], ["u"]), node("Squeeze", ["u", "a"], ["i"])], {"a": np.array([1])}),
        ([node("Reshape", ["ids", "shape"], ["i"])], {"shape": np.array([-1])}),
        ([node("Transpose", ["ids"], ["i"])], {}),
        ([node("Concat", ["ids", "ids"], ["i"], axis=0)], {}),
        ([node("Gather", ["ids", "first"], ["i"])], {"first": np.array([0])}),
    ],
    ids=["identity", "cast", "unsqueeze", "reshape", "transpose", "concat", "gather"],
)
def test_an_index_is_followed_through_what_keeps_values(path: list[Any], constants: dict[str, Any]) -> None:
    assert asked(embeddings(*path, constants=constants), "ids") == {"index": 10}


@pytest.mark.unit
def test_an_offset_moves_the_range() -> None:
    made = embeddings(node("Add", ["ids", "two"], ["i"]), constants={"two": np.array(2)})
    domain = domain_of("ids", DType.INT64, uses_of_inputs(made.graph)["ids"], (3, 7), SIZES)
    assert (domain.low, domain.high) == (-2, 7)


@pytest.mark.unit
def test_an_index_is_followed_into_bodies() -> None:
    branch = graph([node("Gather", ["t", "ids"], ["a"])], [], [value("a", None)])
    other = graph([node("Gather", ["t", "ids"], ["b"], axis=0)], [], [value("b", None)])
    nodes = [node("If", ["c"], ["y"], then_branch=branch, else_branch=other)]
    inputs = [value("c", [], BOOL), value("ids", ["s"], INT64)]
    made = model(nodes, inputs, [value("y", None)], {"t": normal(10, 4)})
    assert asked(made, "ids") == {"index": 10}
    assert asked(made, "c") == {"flag": None}


@pytest.mark.unit
def test_a_value_is_followed_out_of_a_body() -> None:
    same = graph([node("Identity", ["ids"], ["a"])], [], [value("a", None, INT64)])
    other = graph([node("Neg", ["ids"], ["b"])], [], [value("b", None, INT64)])
    nodes = [node("If", ["c"], ["i"], then_branch=same, else_branch=other), node("Gather", ["t", "i"], ["y"])]
    inputs = [value("c", [], BOOL), value("ids", ["s"], INT64)]
    made = model(nodes, inputs, [value("y", None)], {"t": normal(10, 4)})
    assert asked(made, "ids") == {"index": 10}


@pytest.mark.unit
def test_lengths_are_bounded_by_a_dynamic_dim() -> None:
    constants = {"w": normal(1, 8, 2), "r": normal(1, 8, 2)}
    nodes = [node("LSTM", ["x", "w", "r", "", "lengths"], ["y"], hidden_size=2)]
    inputs = [value("x", ["s", "n", 2]), value("lengths", ["n"], 6)]
    made = model(nodes, inputs, [value("y", None)], constants)
    uses = uses_of_inputs(made.graph)["lengths"]
    domain = domain_of("lengths", DType.INT32, uses, (3,), SIZES)
    assert (domain.form, domain.low, domain.high) == ("length", 1, 7)
    drawn = fill(domain, DType.INT32, (3,), Style(""), 0, [0])
    assert drawn[0] == 7
    assert drawn.min() >= 1


@pytest.mark.unit
@pytest.mark.parametrize(
    ("nodes", "constants", "expected"),
    [
        ([node("Cast", ["a"], ["y"], to=BOOL)], {}, (0, 1)),
        ([node("Cast", ["a"], ["f"], to=FLOAT), node("Sub", ["one", "f"], ["y"])], {"one": np.float32(1)}, (0, 1)),
        ([node("ConstantOfShape", ["a"], ["y"])], {}, (1, 3)),
        ([node("Tile", ["x", "a"], ["y"])], {"x": normal(2)}, (1, 3)),
        ([node("TopK", ["x", "a"], ["y", "i"])], {"x": normal(9)}, (1, 5)),
        ([node("Div", ["k", "a"], ["y"])], {"k": np.array([7])}, (1, 9)),
        ([node("Mul", ["a", "k"], ["m"]), node("ConstantOfShape", ["m"], ["y"])], {"k": np.array([7])}, (1, 2)),
        ([node("OneHot", ["a", "depth", "v"], ["y"])], {"depth": np.array(4), "v": normal(2)}, (-4, 3)),
        ([node("Equal", ["a", "k"], ["y"])], {"k": np.array([50])}, (49, 51)),
        ([node("Add", ["a", "a"], ["y"])], {}, (-100, 100)),
    ],
    ids=["bool", "mask", "shape", "tile", "top-k", "divisor", "scaled shape", "one-hot", "compared", "number"],
)
def test_ranges(nodes: list[Any], constants: dict[str, Any], expected: tuple[int, int]) -> None:
    made = model(nodes, [value("a", [1], INT64)], [value("y", None)], constants)
    domain = domain_of("a", DType.INT64, uses_of_inputs(made.graph)["a"], (1,), {})
    assert (domain.low, domain.high) == expected


@pytest.mark.unit
def test_names_count_only_where_the_graph_says_nothing() -> None:
    assert domain_of("attention_mask", DType.INT64, (), (2, 3), {}).form == "flag"
    uses = uses_of_inputs(embeddings(node("Identity", ["ids"], ["i"])).graph)["ids"]
    assert domain_of("mask", DType.INT64, uses, (2, 3), {}).high == 9


@pytest.mark.unit
def test_images_of_bytes_use_the_whole_range() -> None:
    domain = domain_of("image", DType.UINT8, (), (1, 3, 32, 32), {})
    drawn = fill(domain, DType.UINT8, (1, 3, 32, 32), Style(""), 0, [0])
    assert (drawn.min(), drawn.max()) == (0, 255)


@pytest.mark.unit
def test_places_to_write_are_distinct_along_the_axis() -> None:
    nodes = [node("ScatterElements", ["d", "i", "u"], ["y"], axis=1)]
    inputs = [value("d", [2, 6]), value("i", [2, 4], INT64), value("u", [2, 4])]
    made = model(nodes, inputs, [value("y", [2, 6])])
    domain = domain_of("i", DType.INT64, uses_of_inputs(made.graph)["i"], (2, 4), {})
    drawn = fill(domain, DType.INT64, (2, 4), MASKED, 0, [3])
    assert all(len(set(row)) == 4 for row in drawn.tolist())
    assert 0 <= drawn.min() <= drawn.max() < 6


@pytest.mark.ort
def test_made_indices_cover_both_ends_of_the_table() -> None:
    made = embeddings(node("Identity", ["ids"], ["i"]))
    with Session(made.data, Deployment()) as session:
        source = Source(made, session, 0)
    declared = {name: shape or () for name, shape in source.declared.items()}
    first = Case(FIRST, next(layouts(declared, {}, {})), (1, 8), 0)
    drawn = [source.feeds(case[0])["ids"] for case in further_cases(source, [first], nonfinite=False)]
    everything = np.concatenate([np.asarray(d).reshape(-1) for d in drawn])
    assert (everything.min(), everything.max()) == (0, 9)


@pytest.mark.ort
def test_a_divisor_is_never_zero() -> None:
    """Dividing integers by 0 ends the process on some machines; also the last resort, all zeros, must not."""
    made = model(
        [node("Div", ["a", "b"], ["y"])], [value("a", [4], INT64), value("b", [4], INT64)], [value("y", [4], INT64)]
    )
    with Session(made.data, Deployment()) as session:
        source = Source(made, session, 0)
    first = Case(FIRST, Layout({"a": (4,), "b": (4,)}, ()), (), 0)
    cases = [first, replace(first, plain=0), *(c[0] for c in further_cases(source, [first], nonfinite=False))]
    assert all(np.asarray(source.feeds(case)["b"]).all() for case in cases)


@pytest.mark.ort
def test_models_steered_by_integers_run() -> None:
    """Shapes, lengths, counts, indices and divisors all at once."""
    body = graph(
        [node("Identity", ["c"], ["c2"]), node("Add", ["v", "v"], ["v2"])],
        [value("k", [], INT64), value("c", [], BOOL), value("v", ["n", "s"])],
        [value("c2", [], BOOL), value("v2", ["n", "s"])],
        name="body",
    )
    nodes = [
        node("Gather", ["t", "ids"], ["e"]),
        node("ReduceSum", ["e", "last"], ["r"], keepdims=0),
        node("Loop", ["times", "", "r"], ["l"], body=body),
        node("Expand", ["l", "wide"], ["w"]),
        node("Reshape", ["w", "shape"], ["y"]),
        node("Div", ["ids", "by"], ["q"]),
    ]
    inputs = [
        value("ids", ["n", "s"], INT64),
        value("times", [], INT64),
        value("wide", [2], INT64),
        value("shape", [3], INT64),
        value("by", [1], INT64),
    ]
    outputs = [value("y", None), value("q", ["n", "s"], INT64)]
    made = model(nodes, inputs, outputs, {"t": normal(10, 4), "last": np.array([2])})
    report = compared(made, made)
    assert report.status == "equal", report.reason
    assert not report.notes
