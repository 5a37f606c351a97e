from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.inputs import region_feeds
from superopt.cost.workloads import workload
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
