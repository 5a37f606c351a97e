from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from specs import load
from superopt.cost.coefficients import ON_CUDA, PRIORS, Coefficients
from superopt.cost.columns import Column
from superopt.cost.features import amounts
from superopt.cost.fusions import ABSORBED, BIAS
from superopt.cost.kinds import KINDS
from superopt.cost.measures import UNKNOWN_SHAPE, Measures
from superopt.cost.workloads import data, node, weights, whole
from superopt.ir.graph import Node, Value, make_node, make_parameter
from superopt.ir.types import DType, TensorType

pytestmark = pytest.mark.unit


def counted(of: Node, role: str = "", **sizes: int) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for column, amount in amounts(of, Measures(sizes), role):
        found[column.text] += amount
    return dict(found)


def test_a_product_counts_operations_and_bytes():
    found = counted(node("MatMul", [data(0, (2, 5, 3)), weights(3, 4)], (2, 5, 4)))
    assert found["product operation weights"] == 2 * (2 * 5 * 4) * 3
    assert found["product byte weights"] == 4 * (2 * 5 * 3 + 3 * 4 + 2 * 5 * 4)
    transposed = counted(node("Gemm", [data(0, (3, 5)), data(1, (3, 4))], (5, 4), attributes={"transA": 1}))
    assert transposed["product operation data"] == 2 * 5 * 4 * 3


def test_columns_that_eight_does_not_divide_are_told():
    x = data(0, (5, 3), DType.FLOAT16)
    odd = counted(node("MatMul", [x, weights(3, 9, dtype=DType.FLOAT16)], (5, 9)))
    assert odd["product operation ragged float16"] == odd["product operation weights float16"] == 2 * 5 * 9 * 3
    even = counted(node("MatMul", [x, weights(3, 16, dtype=DType.FLOAT16)], (5, 16)))
    assert not any("ragged" in column for column in even)
    equation = {"equation": "ab,bc->ac"}
    spelled = counted(node("Einsum", [x, weights(3, 9, dtype=DType.FLOAT16)], (5, 9), attributes=equation))
    assert spelled["product operation ragged float16"] == odd["product operation ragged float16"]


@pytest.mark.parametrize(
    ("left", "right", "attributes", "addresses"),
    [
        ((16, 49, 96), (96, 288), {}, False),  # one large product
        ((16, 49, 96), (1, 96, 288), {}, False),
        ((16, 49, 96), (16, 96, 288), {}, False),  # a matrix for each
        ((1, 16, 49, 96), (16, 96, 288), {}, False),
        ((49, 96), (1, 96, 288), {}, False),  # one of each
        ((49, 96), (16, 96, 288), {}, True),
        ((16, 3, 49, 96), (16, 1, 96, 288), {}, True),
        ((16, 49, 96), (1, 96, 288), {"transBatchA": 1}, True),
        ((16, 49, 96), (96, 288), {"transBatchA": 1}, False),
    ],
)
def test_products_whose_matrices_are_found_by_address_are_told(
    left: tuple[int, ...], right: tuple[int, ...], attributes: dict[str, int], addresses: bool
):
    operands = [data(0, left), data(1, right)]
    found = counted(node("FusedMatMul", operands, (16, 49, 288), domain="com.microsoft", attributes=attributes))
    assert found.get("product run by addresses", 0) == addresses


def test_a_bias_beside_a_residual_is_told_by_the_row():
    rows = [data(0, (2, 5, 4)), weights(4), data(1, (2, 5, 4))]
    found = counted(node("BiasAdd", rows, (2, 5, 4), domain="com.microsoft"))
    assert found["element-wise run row"] == 10


def test_a_bias_of_a_product_is_told_wherever_it_is_written():
    x, w = data(0, (5, 3)), weights(3, 4)
    gemm = counted(node("Gemm", [x, w, weights(4)], (5, 4)))
    assert gemm["product element bias"] == 20
    assert "product element bias" not in counted(node("Gemm", [x, w], (5, 4)))
    added = counted(node("Add", [data(0, (5, 4)), weights(4)], (5, 4)), BIAS)
    assert added["product element bias"] == 20
    assert added["absorbed byte Add"] == 80


def test_a_bias_of_a_convolution_in_groups_is_told_as_well():
    x, shape = data(0, (1, 8, 10, 10)), (1, 8, 8, 8)
    grouped = counted(node("Conv", [x, weights(8, 1, 3, 3), weights(8)], shape, attributes={"group": 8}))
    assert grouped["convolution element bias"] == 8 * 64
    assert "convolution element bias" not in counted(node("Conv", [x, weights(8, 8, 3, 3), weights(8)], shape))


def test_a_normalization_by_channel_has_its_weights_widened():
    channels = [weights(8) for _ in range(4)]
    single = counted(node("BatchNormalization", [data(0, (1, 8, 4, 4)), *channels], (1, 8, 4, 4)))
    assert single["channel-wise element"] == 128
    assert "launch run weights widened" not in single
    x = data(0, (1, 8, 4, 4), DType.FLOAT16)
    half = counted(node("BatchNormalization", [x, *channels], (1, 8, 4, 4)))
    assert half["launch run weights widened"] == 1


def test_a_convolution_counts_by_its_window_and_groups():
    x = data(0, (1, 8, 10, 10))
    dense = counted(node("Conv", [x, weights(16, 8, 3, 3)], (1, 16, 8, 8)))
    assert dense["convolution operation dense"] == 2 * (16 * 64) * 8 * 9
    assert dense["convolution element dense"] == 64 * 8 * 9
    grouped = counted(node("Conv", [x, weights(8, 1, 5, 5)], (1, 8, 6, 6), attributes={"group": 8}))
    assert grouped["convolution operation depthwise"] == 2 * (8 * 36) * 25
    assert grouped["convolution run group"] == 8


def convolved(channels: int, dtype: DType, groups: int = 1) -> Node:
    operands = data(0, (16, channels, 114, 114), dtype), weights(64, channels // groups, 3, 3, dtype=dtype)
    return node("Conv", operands, (16, 64, 112, 112), attributes={"group": groups})


@pytest.mark.parametrize(
    ("channels", "groups", "dtype", "ragged"),
    [
        (12, 1, DType.FLOAT16, "ragged float16"),
        (12, 1, DType.BFLOAT16, "ragged bfloat16"),
        (24, 2, DType.FLOAT16, "ragged float16"),  # 12 in a group
        (12, 1, DType.FLOAT32, ""),
        (16, 1, DType.FLOAT16, ""),
        (12, 2, DType.FLOAT16, ""),  # 6 in a group are thin
        (3, 1, DType.FLOAT16, ""),
        (12, 12, DType.FLOAT16, ""),
    ],
)
def test_channels_that_eight_does_not_divide_are_told_in_16_bits(channels: int, groups: int, dtype: DType, ragged: str):
    found = counted(convolved(channels, dtype, groups))
    told = {column: amount for column, amount in found.items() if "ragged" in column}
    operations = 2 * (16 * 64 * 112 * 112) * (channels // groups) * 9
    assert told == ({f"convolution operation {ragged}": operations} if ragged else {})
    assert any("thin" in column for column in found) == (1 < channels // groups < 8)


@pytest.mark.parametrize(("dtype", "dearer"), [(DType.FLOAT16, True), (DType.BFLOAT16, True), (DType.FLOAT32, False)])
def test_a_gpu_does_sixteen_channels_sooner_than_twelve_in_16_bits(dtype: DType, dearer: bool):
    twelve, sixteen = (ON_CUDA.price(amounts(convolved(n, dtype), Measures({}))) for n in (12, 16))
    assert (twelve > sixteen) == dearer


def attended(positions: int, dtype: DType, added: bool = True) -> Node:
    rows, heads = (2, positions, 128), 2
    operands = [*(data(k, rows, dtype) for k in range(3)), None, None]
    scores = [weights(1, heads, positions, positions, dtype=dtype)] if added else []
    attributes = {"num_heads": heads}
    return node("MultiHeadAttention", [*operands, *scores], rows, domain="com.microsoft", attributes=attributes)


@pytest.mark.parametrize(
    ("positions", "dtype", "style"),
    [
        (64, DType.FLOAT16, "biased on the way"),
        (8, DType.BFLOAT16, "biased on the way"),
        (49, DType.FLOAT16, "biased"),
        (68, DType.BFLOAT16, "biased"),
        (256, DType.FLOAT32, "biased on the way"),
        (240, DType.FLOAT32, "biased"),
        (264, DType.FLOAT32, "biased"),
    ],
)
def test_what_is_added_to_scores_is_told_by_whether_they_are_written_down(positions: int, dtype: DType, style: str):
    found = counted(attended(positions, dtype))
    told = {column: amount for column, amount in found.items() if "biased" in column}
    assert told == {f"attention element {style}": 2 * 2 * positions * positions}
    assert not any("biased" in column for column in counted(attended(positions, dtype, added=False)))


@pytest.mark.parametrize(("domain", "heads"), [("custom", 2), ("com.microsoft", "two"), ("com.microsoft", (1, 2))])
def test_what_is_only_called_attention_adds_nothing_to_scores(domain: str, heads: Any):
    rows = (2, 8, 16)
    operands = [data(0, rows), data(1, rows), data(2, rows), None, None, data(3, rows)]
    result = TensorType(DType.STRING, rows)
    called = make_node("MultiHeadAttention", operands, {"num_heads": heads}, [result], domain=domain)
    assert not any("biased" in column for column in counted(called))


def test_only_what_leaves_a_slice_is_moved():
    cut = node("Slice", [data(0, (100, 6)), whole(0), whole(10), whole(0)], (10, 6))
    assert counted(cut)["movement byte Slice"] == 2 * 4 * 60


def test_rows_that_stay_together_move_in_pieces_and_single_elements_do_not():
    rows = node("Transpose", [data(0, (4, 8, 16))], (8, 4, 16), attributes={"perm": (1, 0, 2)})
    scattered = node("Transpose", [data(0, (4, 8))], (8, 4), attributes={"perm": (1, 0)})
    assert counted(rows)["piece run Transpose"] == 32
    assert counted(scattered)["movement element Transpose"] == 32


@pytest.mark.parametrize(
    ("dtype", "parts", "words"),
    [
        (DType.FLOAT16, (9, 7), 5 * 16),
        (DType.FLOAT16, (12, 4), 5 * 16 / 4),
        (DType.FLOAT16, (8, 8), 0),
        (DType.FLOAT32, (9, 7), 5 * 16),
        (DType.FLOAT32, (12, 4), 0),
    ],
)
def test_words_are_as_wide_as_all_parts_of_a_row_are_multiples_of(dtype: DType, parts: tuple[int, int], words: float):
    x = data(0, (5, 16), dtype)
    split = node("Split", [x, whole(*parts)], *((5, n) for n in parts), attributes={"axis": 1})
    assert counted(split)["piece run words of Split"] == words
    pieces = [data(k, (5, n), dtype) for k, n in enumerate(parts)]
    concat = node("Concat", pieces, (5, 16), attributes={"axis": 1})
    assert counted(concat)["piece run words of Concat"] == words


@pytest.mark.parametrize(
    ("shape", "perm", "expected"),
    [
        ((4, 8), (1, 0), {}),
        ((2, 3, 4, 5), (0, 2, 3, 1), {}),  # two groups of axes that change places
        ((2, 1, 3, 4), (1, 0, 2, 3), {}),  # nothing moves
        ((2, 3, 4, 5), (0, 2, 1, 3), {"piece run blocks turned": 6.0}),
        ((1, 3, 4, 5), (0, 2, 1, 3), {"piece run blocks turned": 3.0}),
        ((2, 3, 4, 5, 6, 7), (0, 1, 3, 2, 4, 5), {"piece run blocks turned": 24.0}),
        ((2, 3, 4, 5, 6, 7), (2, 4, 0, 1, 3, 5), {"movement element turned any way": 5040.0}),
        ((2, 3, 4), (2, 1, 0), {"movement element turned any way": 24.0}),
    ],
)
def test_which_kernel_turns_a_tensor_is_told(
    shape: tuple[int, ...], perm: tuple[int, ...], expected: dict[str, float]
) -> None:
    turned = node("Transpose", [data(0, shape)], tuple(shape[axis] for axis in perm), attributes={"perm": perm})
    assert {name: amount for name, amount in counted(turned).items() if "turned" in name} == expected


def test_matrices_of_a_batch_are_counted_where_both_operands_are_data():
    batch = counted(node("MatMul", [data(0, (2, 3, 4, 5)), data(1, (2, 3, 5, 6))], (2, 3, 4, 6)))
    assert batch["product run matrix"] == 6
    assert "product run matrix" not in counted(node("MatMul", [data(0, (2, 3, 4, 5)), weights(5, 6)], (2, 3, 4, 6)))


def test_an_einsum_counts_its_matrices_and_how_its_operands_are_laid_out():
    def einsum(equation: str, *shapes: tuple[int, ...]) -> dict[str, float]:
        *given, result = shapes
        operands = [data(k, shape) for k, shape in enumerate(given)]
        return counted(node("Einsum", operands, result, attributes={"equation": equation}))

    heads = einsum("nqhd,nkhd->nhqk", (2, 5, 3, 4), (2, 6, 3, 4), (2, 3, 5, 6))
    assert heads["product run matrix"] == 6
    assert heads["product operation data"] == 2 * 2 * 3 * 5 * 6 * 4
    assert heads["piece run blocks turned"] == 2 * 5 + 2 * 6
    plain = einsum("ik,kj->ij", (5, 4), (4, 6), (5, 6))
    assert plain["product run matrix"] == 1
    assert "piece run blocks turned" not in plain
    dots = einsum("...k,kj->...j", (2, 5, 4), (4, 6), (2, 5, 6))
    assert dots["product operation data"] == 2 * 2 * 5 * 4 * 6
    assert "piece run blocks turned" not in dots
    assert einsum("ij", (3, 4), (3, 4))["product run matrix"] == 1
    assert einsum(" ii , ij -> j i", (4, 4), (4, 5), (5, 4))["product run matrix"] == 4
    for wrong in ("ij,jk,kl->il", "i,jk->ik", "i?,jk->ik", ""):
        assert einsum(wrong, (3, 4), (4, 5), (3, 5))["launch run Einsum"] == 1, "priced, and the runtime's to refuse"


def test_a_last_axis_of_one_makes_every_element_a_stretch():
    thin = counted(node("Add", [data(0, (7, 9, 1)), data(1, (1,))], (7, 9, 1)))
    plain = counted(node("Add", [data(0, (7, 9)), data(1, (9,))], (7, 9)))
    assert thin["piece run broadcast"] == 63
    assert plain["piece run broadcast"] == 7
    assert "piece run broadcast" not in counted(node("Add", [data(0, (7, 9)), data(1, (7, 9))], (7, 9)))


def test_reductions_across_rows_are_told_from_those_along_them():
    x = data(0, (6, 8))
    along = node("ReduceMean", [x], (6, 1), attributes={"axes": (1,)})
    across = node("ReduceSum", [x, whole(0)], (1, 8))
    assert counted(along)["reduction element ReduceMean"] == 48
    assert counted(across)["reduction element ReduceSum across"] == 48


def test_a_pool_over_a_whole_image_is_the_operator_without_windows():
    x, mean = data(0, (1, 8, 7, 5)), (1, 8, 1, 1)
    whole_image = counted(node("AveragePool", [x], mean, attributes={"kernel_shape": (7, 5)}))
    assert whole_image == counted(node("GlobalAveragePool", [x], mean))
    rows = counted(node("AveragePool", [x], (1, 8, 7, 1), attributes={"kernel_shape": (1, 5)}))
    assert rows["pool element AveragePool"] == 8 * 7 * 5


def test_rows_of_a_normalization_are_counted():
    row = weights(8)
    normalized = counted(node("LayerNormalization", [data(0, (2, 3, 8)), row, row], (2, 3, 8)))
    assert normalized["reduction run row"] == 6
    softmax = node("Softmax", [data(0, (6, 8))], (6, 8), attributes={"axis": -1})
    assert "reduction run row" not in counted(softmax)


def test_views_cost_a_launch_of_their_own_kind_and_absorbed_nodes_none():
    assert counted(node("Reshape", [data(0, (6, 8)), whole(48)], (48,))) == {"launch run view": 1.0}
    assert counted(node("Relu", [data(0, (6, 8))], (6, 8)), ABSORBED) == {"absorbed byte Relu": 192}


def test_the_end_of_a_spelled_out_function_counts_as_that_function():
    last = node("Mul", [data(0, (6, 8)), data(1, (6, 8))], (6, 8))
    assert counted(last, "Gelu")["function element Gelu"] == 48


def test_symbols_take_their_sizes():
    x = Value(make_parameter(0, TensorType(DType.FLOAT16, ("n", 4))))
    relu = make_node("Relu", [x], {}, [x.type])
    assert counted(relu, n=10)["element-wise byte Relu float16"] == 2 * 2 * 40


def test_a_shape_that_onnx_does_not_infer_is_guessed_from_the_operands():
    x = data(0, (6, 8))
    gelu = make_node("Gelu", [x], {}, [None], domain="com.microsoft")
    product = make_node(
        "FusedMatMul", [gelu.outputs[0], data(1, (5, 8))], {"transB": 1}, [None], domain="com.microsoft"
    )
    assert Measures({}).shape(product.outputs[0]) == (6, 5)
    lost = make_node("Source", [], {}, [None], domain="custom")
    assert Measures({}).shape(lost.outputs[0]) == UNKNOWN_SHAPE


def test_every_operator_with_a_formula_has_a_price():
    x, w = data(0, (1, 4, 6, 6)), weights(4, 4, 3, 3)
    for op in {*(operator.name for operator in load()), *KINDS}:
        for operands in ([x, w, w], [x], []):
            found = amounts(make_node(op, operands, {}, [x.type]), Measures({}))
            assert PRIORS.price(found) > 0, op
            assert all(PRIORS.of(column) > 0 and ON_CUDA.of(column) > 0 for column, _ in found), op


def test_a_column_without_a_price_of_its_own_takes_the_general_one():
    assert PRIORS.of(Column("launch", "run", "Never")) == PRIORS.of(Column("launch", "run"))


@pytest.mark.parametrize("coefficients", [PRIORS, ON_CUDA], ids=["cpu", "cuda"])
def test_a_product_is_not_cheaper_because_another_operator_computes_it(coefficients: Coefficients):
    x, w = data(0, (16, 128)), weights(128, 64)

    def price(made: Node) -> float:
        return coefficients.price(amounts(made, Measures({})))

    plain = price(node("MatMul", [x, w], (16, 64)))
    assert price(node("FusedMatMul", [x, w], (16, 64), domain="com.microsoft")) >= plain
    assert price(node("Einsum", [x, w], (16, 64), attributes={"equation": "ij,jk->ik"})) > plain
