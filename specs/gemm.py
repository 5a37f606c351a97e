"""Gemm: α·A·B + β·C, where A and B are matrices, either of them transposed on demand, and C broadcasts."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from specs._broadcast import broadcast_to
from superopt.ops.draws import pick, size
from superopt.ops.element import Element, Operand, lift, sum_over
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    m, n = (0 if rng.random() < 0.03 else size(rng) for _ in range(2))
    k = size(rng)  # where it is 0, onnxruntime forgets beta
    trans_a, trans_b = int(rng.integers(2)), int(rng.integers(2))
    arguments: dict[str, Any] = {"transA": trans_a, "transB": trans_b} if trans_a or trans_b else {}
    for name in ("alpha", "beta"):
        if rng.random() < 0.5:
            arguments[name] = pick(rng, 0.0, 1.0, 0.5, -2.0)
    shapes = ((k, m) if trans_a else (m, k), (n, k) if trans_b else (k, n))
    return Draw((*shapes, *pick(rng, (), ((),), ((1,),), ((n,),), ((1, n),), ((m, 1),), ((m, n),))), arguments)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    numbers = {"alpha": symbols.real("alpha"), "beta": symbols.real("beta")}
    for trans_a, trans_b in itertools.product((0, 1), (0, 1)):
        yield {**numbers, "transA": trans_a, "transB": trans_b}


@operator("Gemm", since=11, draw=draw, unknown=unknown)
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: Operand = 1.0,
    beta: Operand = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    require(a.rank == 2, "A is a matrix")
    require(b.rank == 2, "B is a matrix")
    (m, k), (j, n) = a.shape[:: -1 if transA else 1], b.shape[:: -1 if transB else 1]
    require(j == k, "inner dimensions differ")
    further = None if c is None else broadcast_to(c, (m, n))

    def at(row: Index, column: Index) -> Element:
        def term(j: Index) -> Element:
            return (a[j, row] if transA else a[row, j]) * (b[column, j] if transB else b[j, column])

        product = lift(alpha) * sum_over(k, term)
        return product if further is None else product + lift(beta) * further[row, column]

    return tensor((m, n), at)


def draw_with_c(rng: Any) -> Draw:
    drawn = draw(rng)
    return drawn if len(drawn.shapes) == 3 else replace(drawn, shapes=(*drawn.shapes, (1,)))


@operator("Gemm", since=7, until=10, draw=draw_with_c, unknown=unknown)
def gemm_with_c(
    a: Tensor, b: Tensor, c: Tensor, *, alpha: Operand = 1.0, beta: Operand = 1.0, transA: int = 0, transB: int = 0
) -> Tensor:
    """C is always there."""
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
