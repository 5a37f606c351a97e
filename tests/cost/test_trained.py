"""Prices that were learned of a device are where its calibration starts from, and nobody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from superopt.cost.coefficients import priors
from superopt.cost.columns import Column
from superopt.cost.machine import Machine
from superopt.cost.manner import in_a_region
from superopt.cost.predict import Predictor
from superopt.cost.trained import FILE, Trained, learned, start_of, written
from superopt.cost.workloads import data, node, weights, whole, workload
from superopt.ir.graph import Graph, Node, Value
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment

pytestmark = pytest.mark.unit

RECORDED = Deployment("cuda", threads=3, provider_options=(("enable_cuda_graph", "1"),))
H200 = Machine("cuda", "NVIDIA H200", "another driver", "1.31.1")
LEARNED = Trained(
    target="cuda", device="a GPU", driver="1", runtime="1.31.1", deployment="cuda", observations=3,
    seconds={"launch run": 3e-6, "convolution operation depthwise 9": 5e-13},
)  # fmt: skip


def test_what_is_shipped_is_used_for_its_device_alone() -> None:
    found = start_of(RECORDED, "NVIDIA H200")
    assert found != priors("cuda")
    assert set(priors("cuda").seconds) <= set(found.seconds)
    assert start_of(RECORDED, "another GPU") == priors("cuda")
    assert start_of(Deployment("cpu", threads=1), "NVIDIA H200") == priors("cpu")


def test_options_that_kernels_depend_on_have_prices_of_their_own() -> None:
    others = replace(RECORDED, threads=7, provider_options=(*RECORDED.provider_options, ("prefer_nhwc", "1")))
    assert start_of(others, "NVIDIA H200") != start_of(RECORDED, "NVIDIA H200")
    assert learned(others, H200) == start_of(others, "NVIDIA H200")
    assert learned(RECORDED, replace(H200, device="another GPU")) is None
    assert learned(replace(RECORDED, deterministic=False), H200) is None
    searched = replace(others, provider_options=(*others.provider_options, ("cudnn_conv_algo_search", "HEURISTIC")))
    assert learned(searched, H200) == learned(others, H200)
    strange = replace(RECORDED, config=(("session.strange", "1"),))
    assert learned(strange, H200) is None
    assert learned(RECORDED, replace(H200, runtime="1.0")) is None
    assert start_of(strange, "NVIDIA H200") == start_of(RECORDED, "NVIDIA H200")


def test_columns_keep_their_names_and_what_was_not_learned_stays() -> None:
    found = LEARNED.coefficients
    assert found.of(Column("launch", "run")) == 3e-6
    assert found.of(Column("convolution", "operation", "depthwise 9")) == 5e-13
    assert found.of(Column("pool", "element")) == priors("cuda").of(Column("pool", "element"))


# sequences, positions, heads, width of a head
N, S, H, D = 16, 64, 12, 64
ROWS, APART, TURNED, SCORES = (N, S, H * D), (N, S, H, D), (N, H, S, D), (N, H, S, S)
MASK = weights(1, 1, S, S, dtype=DType.FLOAT16)
QUERIES, KEYS, VALUES = GIVEN = [data(k, ROWS, DType.FLOAT16) for k in range(3)]


def attention() -> Graph:
    attributes = {"num_heads": H, "scale": 1.0}
    operands = [*GIVEN, None, None, MASK]
    return workload(GIVEN, node("MultiHeadAttention", operands, ROWS, domain="com.microsoft", attributes=attributes))


def attention_spelled_out() -> Graph:
    """By heads, with no scale: what a network has at the very least."""
    nodes: list[Node] = []

    def made(op: str, shape: tuple[int, ...], *operands: Value, **attributes: int | tuple[int, ...]) -> Value:
        nodes.append(node(op, operands, shape, attributes=attributes))
        return nodes[-1].outputs[0]

    def by_head(x: Value, *perm: int) -> Value:
        apart = made("Reshape", APART, x, whole(*APART))
        return made("Transpose", tuple(APART[axis] for axis in perm), apart, perm=perm)

    scores = made("MatMul", SCORES, by_head(QUERIES, 0, 2, 1, 3), by_head(KEYS, 0, 2, 3, 1))
    shares = made("Softmax", SCORES, made("Add", SCORES, scores, MASK), axis=-1)
    mixed = made("MatMul", TURNED, shares, by_head(VALUES, 0, 2, 1, 3))
    made("Reshape", ROWS, made("Transpose", APART, mixed, perm=(0, 2, 1, 3)), whole(*ROWS))
    return workload(GIVEN, *nodes)


def test_attention_with_a_mask_costs_less_than_the_operators_it_stands_for() -> None:
    predictor = Predictor(coefficients=start_of(RECORDED, "NVIDIA H200"), manner=in_a_region(RECORDED))
    assert predictor.region(attention()) < predictor.region(attention_spelled_out())


def test_the_file_is_what_the_script_would_write() -> None:
    from pydantic import TypeAdapter

    text = FILE.read_text()
    assert written(TypeAdapter(list[Trained]).validate_json(text)) == text
