"""Options refuse what makes no sense, name the flag, and travel as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from superopt.errors import BadOption
from superopt.options import Options, from_json, parse_dim, parse_shape

pytestmark = pytest.mark.unit

CHANGED: dict[str, Any] = {
    "target": "cpu", "budget": 1.5, "accept": "not-slower", "alpha": 1.5, "allow": "standard", "options": "fixed",
    "rules": (Path("r.rules"),), "opset": 20, "candidates": 5, "seed": 7, "shape": {"x": (1, 2), "s": ()},
    "dim": {"n": ((3, 1.0), (5, 2.5)), "m": ((1, 1.0),)}, "inputs": None, "threads": 2, "costs": Path("c.db"),
    "growth": 0, "partial": False, "time_limit": 9.0, "memory_limit": 512, "mine": 2.5, "keep_rules": Path("k.rules"),
    "device": "H200", "portable": False, "search_time": 3.5,
}  # fmt: skip


def test_every_option_survives_json() -> None:
    assert set(CHANGED) == {f.name for f in dataclasses.fields(Options)}
    for options in (Options(), Options(**CHANGED), Options(inputs=Path("a.npz"))):
        assert from_json(json.loads(json.dumps(options.as_json()))) == options


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"target": "tpu"}, "--target: expected auto or cpu or cuda, found 'tpu'"),
        ({"accept": "any"}, "--accept"),
        ({"budget": 0}, "--budget: expected seconds above 0, found 0"),
        ({"budget": math.nan}, "--budget"),
        ({"time_limit": math.inf}, "--time-limit"),
        ({"search_time": -1}, "--search-time: expected seconds, 0 or more, found -1"),
        ({"search_time": math.nan}, "--search-time"),
        ({"mine": math.inf}, "--mine: expected seconds, 0 or more"),
        ({"threads": -1}, "--threads: expected 0 or more, found -1"),
        ({"threads": 100_000}, "--threads: expected at most 1024"),
        ({"growth": -2}, "--growth: expected -1 or more"),
        ({"memory_limit": -1}, "--memory-limit"),
        ({"seed": -1}, "--seed"),
        ({"shape": {"x": (1, -2)}}, "--shape x"),
        ({"dim": {"n": -1}}, "--dim n: expected 0 or more, found -1"),
        ({"dim": {"n": ()}}, "--dim n: expected different sizes"),
        ({"dim": {"n": (4, 4)}}, "--dim n: expected different sizes, found [4, 4]"),
        ({"dim": {"n": {4: 0}}}, "--dim n: expected a weight above 0 for 4, found 0.0"),
        ({"dim": {"n": {4: math.nan}}}, "--dim n: expected a weight above 0"),
        ({"dim": {"n": "four"}}, "--dim n: expected a size, sizes, or sizes with weights, found 'four'"),
        ({"dim": {"n": 1.5}}, "--dim n: expected a size"),
        ({"dim": {"n": (1, 2, 3), "m": (1, 2, 3)}}, "--dim: 9 combinations of sizes, at most 8 are measured"),
        ({"dim": {"n": (1, 2)}, "inputs": Path("a.npz")}, "--dim: several sizes cannot be measured with --inputs"),
        ({"budgets": 1}, "unknown option 'budgets'; the options are accept, allow,"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadOption) as caught:
        Options.of(**given)
    assert complaint in str(caught.value)


def test_shapes_and_dims_as_they_are_typed() -> None:
    assert parse_shape("x=1,3,224") == ("x", (1, 3, 224))
    assert parse_shape("a=b=2") == ("a=b", (2,))
    assert parse_shape("scalar=") == ("scalar", ())
    assert parse_dim("batch=8") == ("batch", ((8, 1.0),))
    assert parse_dim("a=b:c=1,2:0.5") == ("a=b:c", ((1, 1.0), (2, 0.5)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (8, ((8, 1.0),)),
        ([8, 16], ((8, 1.0), (16, 1.0))),
        ({8: 3, 16: 1}, ((8, 3.0), (16, 1.0))),
        ([[8, 3.0], [16, 1.0]], ((8, 3.0), (16, 1.0))),
    ],
)
def test_sizes_as_the_library_takes_them(given: Any, expected: Any) -> None:
    assert Options.of(dim={"n": given}).dim == {"n": expected}


@pytest.mark.parametrize("text", ["x", "=1", "x=a", "x=1,", "x=1;2", ""])
def test_bad_shapes(text: str) -> None:
    with pytest.raises(BadOption, match="expected NAME=D0,D1"):
        parse_shape(text)


@pytest.mark.parametrize("text", ["n", "=1", "n=", "n=-1", "n=1.5", "n=x", "n=1,", "n=1:", "n=1:x", "n=1;2"])
def test_bad_dims(text: str) -> None:
    with pytest.raises(BadOption, match="expected NAME=SIZE"):
        parse_dim(text)
