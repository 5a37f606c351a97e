# pyright: basic
"""Nodes that read alike nearby have the same rules; what a rewrite changed further away is no matter."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ir.graph import Node
from superopt.rewrite.below import Below
from tests.rewrite.small import model, numbers
from tests.rewrite.taking import RULES, Opened, opened

pytestmark = pytest.mark.unit

LAYERS = """
g (float[4,8] x) => (float[4,8] y) {
  p = MatMul(x, u) q = Add(p, b) r = Relu(q) s = MatMul(r, v) t = Add(s, x)
  d = Mul(t, two) e = MatMul(d, u) f = Add(e, b) h = Relu(f) k = MatMul(h, v) z = Add(k, d) y = Add(z, z)
}"""


def layers() -> Opened:
    weights = {"u": numbers(8, 8), "v": numbers(8, 8), "b": numbers(8), "two": np.float32(2)}
    return opened(model(LAYERS, **weights))


def node(start: Opened, name: str) -> Node:
    found = start.piece.names[name].node
    assert found is not None
    return found


def below(text: str, first: str, second: str, depth: int) -> bool:
    """Whether the nodes that give two values look alike down to a depth."""
    start = opened(model(text, w=numbers(2, 2), v=numbers(2, 2) + 1, i=np.array([1, 1], np.int64)))
    key = Below(start.rewriter.constants)
    return key(node(start, first), depth) == key(node(start, second), depth)


@pytest.mark.parametrize(
    ("nodes", "depth", "alike"),
    [
        ("a = Exp(x) b = Exp(z)", 3, True),
        ("a = Exp(x) b = Neg(x)", 1, False),
        ("a = Add(x, x) b = Add(x, z)", 1, False),  # one value twice
        ("a = MatMul(x, w) b = MatMul(z, w)", 3, True),
        ("a = MatMul(x, w) b = MatMul(x, v)", 3, False),  # another weight
        ("a = MatMul(x, w) b = MatMul(w, x)", 3, False),
        ("a = LeakyRelu<alpha = 0.1>(x) b = LeakyRelu<alpha = 0.2>(x)", 1, False),
        ("a = Exp(x) b = Exp(n)", 1, False),  # another shape
        ("p, q = Split<axis = 0>(x, i) a = Exp(p) b = Exp(q)", 2, False),  # another output is read
        ("p, q = Split<axis = 0>(x, i) a = Add(p, q) b = Add(p, p)", 2, False),
        ("p = Exp(x) q = Neg(x) a = Abs(p) b = Abs(q)", 1, True),  # what differs is further away
        ("p = Exp(x) q = Neg(x) a = Abs(p) b = Abs(q)", 2, False),
    ],
)
def test_what_a_pattern_of_that_depth_can_tell_apart(nodes: str, depth: int, alike: bool) -> None:
    text = f"g (float[2,2] x, float[2,2] z, float[4,2] n) => (float[m,k] a, float[o,l] b) {{ {nodes} }}"
    assert below(text, "a", "b", depth) == alike


def test_a_rewriter_that_has_seen_many_graphs_misses_nothing() -> None:
    rng = np.random.default_rng(0)
    start = layers()
    piece = start.piece
    for _ in range(4):
        found = start.matches(piece)
        assert [(m.pattern.rule.name, m.nodes) for m, _ in found] == [
            (name, match.nodes)
            for node in piece.nodes
            for name, pattern in RULES.patterns.items()
            if pattern.roots
            for match, _ in start.rewriter.matches(pattern, node, piece)
        ]
        for k in rng.integers(len(found), size=3):
            start.matches(start.take(piece, found[int(k)]))
        piece = start.take(piece, found[int(rng.integers(len(found)))])
