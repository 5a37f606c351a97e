"""Open dims: which ones go together, and which sizes are tried."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.check import Limits, Request, make_feeds
from superopt.check.ladder import CHECKING, first_sizes, other_sizes
from superopt.check.sizes import check_given, layouts
from superopt.errors import BadOption, CannotRun
from superopt.ir.onnx import Model
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from tests.check.build import INT64, compared, model, node, normal, value


@pytest.mark.unit
def test_one_symbol_is_one_size_across_inputs() -> None:
    layout = next(layouts({"a": ("n", 4), "b": ("n", "s")}, {}, {}))
    assert [(v.name, v.places) for v in layout.variables] == [("n", (("a", 0), ("b", 0))), ("s", (("b", 1),))]
    assert layout.shapes((2, 7)) == {"a": (2, 4), "b": (2, 7)}


@pytest.mark.unit
def test_one_symbol_within_an_input_is_several_sizes_first() -> None:
    readings = list(layouts({"x": ("?", 3, "?", "?")}, {}, {}))
    assert [len(layout.variables) for layout in readings] == [3, 1]


@pytest.mark.unit
def test_sums_of_symbols_are_computed() -> None:
    layout = next(layouts({"past": ("b", "p"), "mask": ("b", "p + s"), "ids": ("b", "s")}, {}, {}))
    assert layout.shapes((1, 5, 2))["mask"] == (1, 7)


@pytest.mark.unit
@pytest.mark.parametrize("symbol", ["__import__('os')", "a.b", "((((", "n" * 500, "2 ** 99", "n if n else 1"])
def test_a_strange_symbol_is_only_a_name(symbol: str) -> None:
    layout = next(layouts({"x": (symbol,)}, {}, {}))
    assert [v.name for v in layout.variables] == [symbol]


@pytest.mark.unit
def test_given_sizes_stay_on_every_rung() -> None:
    layout = next(layouts({"x": ("n", 3, "h", "w")}, {"n": 4}, {}))
    assert {sizing[0] for sizing in first_sizes(layout, CHECKING)} == {4}
    assert next(first_sizes(layout, CHECKING)) == (4, 64, 64)


@pytest.mark.unit
def test_other_sizes_hold_ones_odd_and_unequal_ones() -> None:
    layout = next(layouts({"x": ("n", 3, "h", "w")}, {}, {}))
    found = other_sizes(layout, (1, 64, 64))
    assert found["ones"] == [(1, 1, 1)]
    assert found["other"][0] == (3, 65, 65)
    assert len(set(found["all different"][0])) == 3


@pytest.mark.unit
@pytest.mark.parametrize(
    ("dims", "shapes", "text"),
    [
        ({"m": 2}, {}, "no input has a dim of that name; the dims are n"),
        ({"n": -1}, {}, "expected a size of 0 or more"),
        ({}, {"z": (1,)}, "no such input; the inputs are x"),
        ({}, {"x": (1,)}, "the input has 2 dims, found 1"),
        ({}, {"x": (1, 5)}, "dim 1 of the input is fixed at 4, found 5"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    dims: dict[str, int], shapes: dict[str, tuple[int, ...]], text: str
) -> None:
    with pytest.raises(BadOption, match=text):
        check_given({"x": ("n", 4)}, dims, shapes)


def picky(rows: str, width: int) -> Model:
    """Accepts only multiples of `width` along its second dim, and the same number of rows for both inputs."""
    nodes = [node("Reshape", ["x", "s"], ["r"]), node("Add", ["x", "z"], ["y"])]
    inputs = [value("x", ["n", "w"]), value("z", [rows, None])]
    return model(nodes, inputs, [value("r", None), value("y", None)], {"s": np.array([0, -1, width])})


@pytest.mark.ort
def test_the_ladder_finds_the_size_a_model_needs() -> None:
    report = compared(picky("n", 16), picky("n", 16))
    assert report.status == "equal", report.reason
    assert "w=16" in report.inputs[0]


@pytest.mark.ort
def test_what_the_original_refuses_is_noted() -> None:
    report = compared(picky("n", 16), picky("n", 16))
    assert any(note.startswith("left out, the original refuses it") and "w=1," in note for note in report.notes)


@pytest.mark.ort
def test_an_unknown_rank_is_searched() -> None:
    nodes = [node("Transpose", ["x"], ["y"], perm=[0, 2, 3, 1])]
    report = compared(*[model(nodes, [value("x", None)], [value("y", None)])] * 2)
    assert report.status == "equal", report.reason


@pytest.mark.ort
def test_sizes_stay_bounded() -> None:
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [value("x", ["n", 1024])], [value("y", ["n", 4])], {"w": normal(1024, 4)})
    report = compared(made, made, limits=Limits(elements=2048))
    assert report.status == "equal"
    assert any("more elements than the limit" in note or "n=2" in note for note in [*report.notes, *report.inputs])
    none = compared(made, made, limits=Limits(elements=10))
    assert none.status == "unchecked"


@pytest.mark.ort
def test_feeds_for_the_clock_have_deployed_sizes() -> None:
    nodes = [node("Gather", ["t", "ids"], ["y"])]
    made = model(nodes, [value("ids", ["batch", "seq"], INT64)], [value("y", None)], {"t": normal(10, 4)})
    with Session(made.data, Deployment()) as session:
        feeds = make_feeds(made, session)
        assert np.asarray(feeds["ids"]).shape == (1, 128)
        given = make_feeds(made, session, Request(dims={"seq": 5}))
        assert np.asarray(given["ids"]).shape == (1, 5)


@pytest.mark.ort
def test_feeds_that_no_size_allows_are_an_error() -> None:
    made = model(
        [node("Reshape", ["x", "s"], ["y"])], [value("x", ["n", 2])], [value("y", None)], {"s": np.array([0, 7])}
    )
    with Session(made.data, Deployment()) as session, pytest.raises(CannotRun, match="none of"):
        make_feeds(made, session)
