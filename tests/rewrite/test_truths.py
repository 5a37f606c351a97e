# pyright: basic
"""Rules over truths alone: the type of numbers is that of what the left side makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ir.types import DType
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import model
from tests.rewrite.taking import REGISTRY, Opened, opened, run

pytestmark = pytest.mark.ort

COUNT = Rules(
    parse_rules("""
rule count-to-products
  given   c: bool[n, m, k]
  where   n*m <= 2048, k <= 2048
  y = ReduceSum(Cast(c, to=1), axes=[0, 1, 2], keepdims=0)
  =>
  rows = MatMul(Reshape(Cast(c, to=1), shape=[n*m, k]), ConstantOfShape(input=[k, 1], value=1))
  y = Reshape(MatMul(ConstantOfShape(input=[1, n*m], value=1), rows), shape=[])
"""),
    REGISTRY,
)
"""Not among those that ship: measured, it was slower."""


def counted(*shape: int, to: int = 1, kind: str = "float") -> bytes:
    """How many elements are infinite."""
    body = f"b = IsInf(x) c = Cast<to={to}>(b) y = ReduceSum<keepdims=0>(c, axes)"
    dims = ", ".join(map(str, shape))
    return model(f"g (float[{dims}] x) => ({kind} y) {{ {body} }}", axes=np.arange(len(shape)))


def why_not(start: Opened, by: Rules) -> str:
    (pattern,) = by.patterns.values()
    return start.why_not(pattern)


@pytest.mark.parametrize("shape", [(3, 5, 7), (32, 64, 5), (2, 3, 2048)])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_infinities_are_counted_by_products(shape: tuple[int, ...], share: float) -> None:
    data = counted(*shape)
    start = opened(data)
    ((match, outputs),) = start.matches(start.piece, COUNT)
    assert match.dtype is DType.FLOAT32
    after = start.exported(start.take(start.piece, (match, outputs)))
    ops = [node.op for node in opened(after).model.graph.nodes]
    assert ops.count("MatMul") == 2
    assert "ReduceSum" not in ops
    x = np.where(np.random.default_rng(0).random(shape) < share, -np.inf, 1).astype(np.float32)
    (before,), (now,) = run(data, {"x": x}), run(after, {"x": x})
    assert before == np.isinf(x).sum()
    assert now.dtype == np.float32
    np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    ("shape", "limit"), [((2049, 1, 2), "n*m <= 2048"), ((3, 683, 2), "n*m <= 2048"), ((1, 1, 2049), "k <= 2048")]
)
def test_not_where_tf32_would_not_hold_every_number_on_the_way(shape: tuple[int, ...], limit: str) -> None:
    start = opened(counted(*shape))
    assert not start.matches(start.piece, COUNT)
    assert limit in why_not(start, COUNT)


@pytest.mark.parametrize(("to", "kind"), [(10, "float16"), (11, "double"), (6, "int32"), (7, "int64")])
def test_not_in_another_type(to: int, kind: str) -> None:
    start = opened(counted(3, 5, 7, to=to, kind=kind))
    assert not start.matches(start.piece, COUNT)
    assert "to of Cast is" in why_not(start, COUNT)


def test_what_is_made_of_truths_may_be_of_any_one_type() -> None:
    text = "rule r\n  given c: bool[n]\n  y = Abs(Cast(c, to=11))\n  =>\n  y = Cast(c, to=11)"
    by = Rules(parse_rules(text), REGISTRY)
    start = opened(model("g (bool[4] c) => (double[4] y) { w = Cast<to=11>(c) y = Abs(w) }"))
    ((match, _),) = start.matches(start.piece, by)
    assert match.dtype is DType.FLOAT64


def test_what_makes_two_types_of_truths_is_of_no_known_type() -> None:
    text = "rule r\n  given c: bool[n]\n  y = Cast(Cast(c, to=1), to=11)\n  =>\n  y = Cast(c, to=11)"
    by = Rules(parse_rules(text), REGISTRY)
    start = opened(model("g (bool[4] c) => (double[4] y) { w = Cast<to=1>(c) y = Cast<to=11>(w) }"))
    assert not start.matches(start.piece, by)
    assert "the element type is not known" in why_not(start, by)
