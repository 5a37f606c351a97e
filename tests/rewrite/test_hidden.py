# pyright: basic
"""Masks that hide a whole row: ONNX's own Attention answers 0 there, what it stands for does not."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import model
from tests.rewrite.taking import REGISTRY, opened, rules, run

pytestmark = pytest.mark.ort

SPELLED = """g (float[1,2,4,3] q, float[1,2,4,3] k, float[1,2,4,3] v{given}) => (float[1,2,4,3] y) {{
  t = Transpose<perm=[0,1,3,2]>(k) p = MatMul(q, t) s = Mul(p, c)
  a = Add(s, m) w = Softmax<axis=3>(a) y = MatMul(w, v) }}"""
OWN = """g (float[1,2,4,3] q, float[1,2,4,3] k, float[1,2,4,3] v, float[1,1,4,4] m) => (float[1,2,4,3] y) {
  y = Attention<scale=0.5>(q, k, v, m) }"""
BACKWARDS = """rule backwards
  given q: [b, h, s, d]  k: [b, h, t, d]  v: [b, h, t, e]  m: [b, 1, s, t]  c: real
  where c > 0
  y = Attention(q, k, v, m, scale=c)
  =>
  y = MatMul(Softmax(Add(Mul(MatMul(q, Transpose(k, perm=[0, 1, 3, 2])), c), m), axis=3), v)
"""
LOWEST = float(np.finfo(np.float32).min)
HALF = {"c": np.array(0.5, np.float32)}


def mask(*rows: int) -> np.ndarray:
    """Causal, and nothing to be seen in some rows."""
    found = np.triu(np.full((1, 1, 4, 4), LOWEST, np.float32), 1)
    found[..., list(rows), :] = LOWEST
    return found


def leads(data: bytes, name: str = "attention-by-head-masked") -> list[bytes]:
    start = opened(data)
    return [start.exported(start.take(start.piece, found)) for found in start.matches(start.piece, rules(name))]


def spelled(constant: np.ndarray | None) -> bytes:
    weights = HALF if constant is None else {**HALF, "m": constant}
    return model(SPELLED.format(given=", float[1,1,4,4] m" if constant is None else ""), opset=23, **weights)


def drawn(*names: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal((1, 2, 4, 3)).astype(np.float32) for name in names}


def test_onnxruntime_answers_differently_where_a_row_is_hidden() -> None:
    feeds = {**drawn("q", "k", "v"), "m": mask(0, 1)}
    (ours,), (theirs,) = run(spelled(None), feeds), run(model(OWN, opset=23), feeds)
    np.testing.assert_allclose(ours[:, :, 2:], theirs[:, :, 2:], rtol=1e-4)
    assert np.abs(ours[:, :, :2]).min() > 0
    assert np.abs(theirs[:, :, :2]).max() == 0


def test_a_mask_that_is_not_known_is_left_where_it_is() -> None:
    assert leads(spelled(None)) == []


def test_nor_one_that_hides_a_row() -> None:
    assert leads(spelled(mask(2))) == []
    assert leads(spelled(np.full((1, 1, 4, 4), -np.inf, np.float32))) == []


def test_one_that_shows_every_row_is_taken() -> None:
    data = spelled(mask())
    (after,) = leads(data)
    feeds = drawn("q", "k", "v")
    (before,), (now,) = run(data, feeds), run(after, feeds)
    np.testing.assert_allclose(before, now, rtol=1e-4, atol=1e-6)


def test_what_gives_0_there_is_not_spelled_out_either() -> None:
    by = Rules(parse_rules(BACKWARDS), REGISTRY)
    start = opened(model(OWN, opset=23))
    assert start.matches(start.piece, by) == []
    (pattern,) = by.patterns.values()
    assert "hides a whole row" in start.why_not(pattern)
