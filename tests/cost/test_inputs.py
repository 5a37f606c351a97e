from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.inputs import region_feeds, stand_ins
from superopt.cost.workloads import data, weights, workload
from superopt.ir.graph import Graph, Value, make_node, make_parameter
from superopt.ir.types import DType, TensorType

pytestmark = pytest.mark.unit


def graph(op: str, *types: TensorType | None, **attributes: int) -> Graph:
    inputs = [Value(make_parameter(i, type_)) for i, type_ in enumerate(types)]
    return workload(inputs, make_node(op, inputs, attributes, [None]))


def test_inputs_have_the_declared_types_at_the_given_sizes():
    found = region_feeds(graph("Op", TensorType(DType.FLOAT16, ("n", 3)), TensorType(DType.BOOL, ())), {"n": 5}, 0)
    assert found is not None
    assert {name: (a.dtype.name, a.shape) for name, a in found.items()} == {
        "in0": ("float16", (5, 3)),
        "in1": ("bool", ()),
    }


def test_the_same_seed_gives_the_same_numbers():
    one, same, other = (region_feeds(graph("Op", TensorType(DType.FLOAT32, (9,))), {}, seed) for seed in (1, 1, 2))
    assert one is not None
    assert same is not None
    assert other is not None
    assert np.array_equal(one["in0"], same["in0"])
    assert not np.array_equal(one["in0"], other["in0"])


@pytest.mark.parametrize(
    "type_",
    [None, TensorType(DType.FLOAT32, None), TensorType(DType.FLOAT32, (None,)), TensorType(DType.FLOAT32, ("n",)),
     TensorType(None, (2,)), TensorType(DType.STRING, (2,))],
)  # fmt: skip
def test_what_is_not_known_cannot_be_timed(type_: TensorType | None):
    assert region_feeds(graph("Op", type_), {"m": 3}, 0) is None


def test_indices_reach_all_rows_and_no_further():
    table, indices = TensorType(DType.FLOAT32, (40, "n")), TensorType(DType.INT64, (500,))
    rows = region_feeds(graph("Gather", table, indices), {"n": 3}, 0)
    columns = region_feeds(graph("Gather", table, indices, axis=1), {"n": 3}, 0)
    assert rows is not None
    assert columns is not None
    assert (rows["in1"].min(), rows["in1"].max()) == (0, 39)
    assert (columns["in1"].min(), columns["in1"].max()) == (0, 2)


def test_nothing_is_divided_by_zero():
    whole = TensorType(DType.INT32, (500,))
    found = region_feeds(graph("Div", whole, whole), {}, 0)
    assert found is not None
    assert found["in1"].min() > 0


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32])
def test_weights_that_are_computed_in_16_bits_have_stand_ins(dtype: DType):
    """onnxruntime computes those of 32 bits before the first run."""
    x, weight = data(0, (3, 2), dtype), weights(4, 2, dtype=dtype)
    turned = make_node("Transpose", [weight], {"perm": (1, 0)}, [TensorType(dtype, (2, 4))])
    product = make_node("MatMul", [x, turned.outputs[0]], {}, [TensorType(dtype, (3, 4))])
    found = stand_ins(workload([x], turned, product), 0)
    assert [(v.producer, t.dtype, t.shape) for v, t in found.items()] == (
        [] if dtype is DType.FLOAT32 else [(turned, dtype, (2, 4))]
    )


def test_a_number_that_is_computed_has_a_stand_in_too():
    x, one = data(0, (3,), DType.FLOAT16), weights(1, dtype=DType.FLOAT16)
    number = make_node("Reshape", [one], {"shape": ()}, [TensorType(DType.FLOAT16, ())])
    product = make_node("Mul", [x, number.outputs[0]], {}, [TensorType(DType.FLOAT16, (3,))])
    [found] = stand_ins(workload([x], number, product), 0).values()
    assert (found.dtype, found.shape, found.numpy().shape) == (DType.FLOAT16, (), ())


def test_what_runs_and_what_comes_out_have_none():
    x, weight = data(0, (2, 2), DType.FLOAT16), weights(2, 2, dtype=DType.FLOAT16)
    turned = make_node("Transpose", [weight], {}, [TensorType(DType.FLOAT16, (2, 2))])
    product = make_node("MatMul", [x, turned.outputs[0]], {}, [TensorType(DType.FLOAT16, (2, 2))])
    inner = workload([x], turned, product)
    both = Graph(inner.inputs, (*inner.outputs, turned.outputs[0]), inner.nodes, inner.input_names, ("a", "b"))
    assert list(stand_ins(inner, 0)) == [turned.outputs[0]]
    assert stand_ins(both, 0) == {}
