"""com.microsoft FusedMatMul: α times the product of matrices, axes of either exchanged on demand."""

import itertools
from collections.abc import Iterator
from typing import Any

from specs.matmul import matmul
from specs.transpose import transpose
from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, covered, elementwise, require
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols

SWITCHES = ("transA", "transB", "transBatchA", "transBatchB")


def draw(rng: Any) -> Draw:
    m, k, n = size(rng), size(rng), size(rng)
    switches = {name: int(rng.random() < 0.3) for name in SWITCHES}
    first = switches["transBatchA"] or switches["transBatchB"]
    batch = shape(rng, 1 if first else 0, 2)
    a, b = (*batch, m, k), (*(batch if first else pick(rng, batch, (1,) * len(batch), batch[1:])), k, n)
    shapes = [
        _stored(a, switches["transA"], switches["transBatchA"]),
        _stored(b, switches["transB"], switches["transBatchB"]),
    ]
    vectors = ((k,), shapes[1]), (shapes[0], (k,)), ((k,), (k,))
    operands = tuple(shapes) if first or rng.random() < 0.7 else pick(rng, *vectors)
    return Draw(operands, {**switches, **pick(rng, {}, {"alpha": 0.5}, {"alpha": -2.0})})


def _stored(matrices: tuple[int, ...], trans: int, trans_batch: int) -> tuple[int, ...]:
    """The operand's shape from that of the matrices it stands for."""
    *batch, m, n = matrices
    rows, columns = (n, m) if trans else (m, n)
    return (rows, *batch, columns) if trans_batch else (*batch, rows, columns)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    batched = ranks[0] == ranks[1] > 2
    for trans in itertools.product((0, 1), (0, 1), *[(0, 1) if batched else (0,)] * 2):
        yield {"alpha": symbols.real("alpha"), **dict(zip(SWITCHES, trans, strict=True))}


def matrices(x: Tensor, trans: int, trans_batch: int) -> Tensor:
    """The first axis behind the batch axes with `trans_batch`, then the last two exchanged with `trans`."""
    order = list(range(x.rank))
    if trans_batch:
        order = [*order[1:-1], 0, order[-1]]
    if trans and x.rank > 1:
        order[-2:] = reversed(order[-2:])
    return transpose(x, perm=order)


@operator("FusedMatMul", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def fused_matmul(
    a: Tensor,
    b: Tensor,
    *,
    alpha: Operand = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:
    if transBatchA or transBatchB:
        require(a.rank == b.rank, "transBatchA and transBatchB are for operands of one rank")
        require(a.rank > 2, "transBatchA and transBatchB are for batches")
    covered(not (transA and b.rank == 1), "transA with a vector, for which onnxruntime's result is wrong")
    product = matmul(matrices(a, transA, transBatchA), matrices(b, transB, transBatchB))
    return elementwise(lambda e: alpha * e, product)
