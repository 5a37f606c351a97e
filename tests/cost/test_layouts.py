"""Where images are moved when convolutions want channels last: what is added, what is dropped, and its price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from superopt.cost.layouts import TO_FIRST, TO_LAST, Images, movements
from superopt.cost.manner import Manner, in_a_model, in_a_region
from superopt.cost.predict import Predictor
from superopt.cost.workloads import data, node, weights, workload
from superopt.ir.graph import Attribute, Graph, Node, Value
from superopt.runtime.deployment import Deployment

pytestmark = pytest.mark.unit

N, C, H, W = IMAGE = (2, 8, 5, 7)
LAST = (N, H, W, C)
FLAT = (N, C, H * W)


def conv(x: Value) -> Node:
    return node("Conv", [x, weights(C, C, 1, 1)], IMAGE)


def one(op: str, x: Value, shape: tuple[int, ...], attributes: Mapping[str, Attribute] | None = None) -> Node:
    return node(op, [x], shape, attributes=attributes)


def moved(graph: Graph, images: Images = "last") -> tuple[int, int]:
    """How many Transposes come, and how many go."""
    added, dropped = movements(graph.nodes, graph.outputs, images)
    assert all(n.op == "Transpose" for n in (*added, *dropped))
    return len(added), len(dropped)


def chain(*nodes: Node) -> Graph:
    return workload([data(0, IMAGE)], *nodes)


def between(op: str, shape: tuple[int, ...] = IMAGE) -> Graph:
    """Two convolutions, and something between that is followed by a Reshape back where shapes differ."""
    first = conv(data(0, IMAGE))
    middle = one(op, first.outputs[0], shape)
    nodes = [first, middle]
    if shape != IMAGE:
        nodes.append(one("Reshape", middle.outputs[0], IMAGE))
    return chain(*nodes, conv(nodes[-1].outputs[0]))


@pytest.mark.parametrize(
    ("graph", "borders_last", "borders_first"),
    [
        (chain(conv(data(0, IMAGE))), 0, 2),
        (between("Relu"), 0, 2),
        (between("Identity"), 0, 2),
        (between("Reshape", FLAT), 2, 4),
        (chain(one("Relu", data(0, IMAGE), IMAGE)), 0, 0),  # nothing wants channels last
    ],
)
def test_images_are_moved_where_the_order_of_axes_matters(graph: Graph, borders_last: int, borders_first: int) -> None:
    assert moved(graph, "last") == (borders_last, 0)
    assert moved(graph, "last inside") == (borders_first, 0)
    assert moved(graph, "first") == (0, 0)


def test_an_image_is_moved_once_for_all_its_readers() -> None:
    first = conv(data(0, IMAGE))
    views = [one("Reshape", first.outputs[0], shape) for shape in (FLAT, (N, C * H * W))]
    assert moved(chain(first, *views)) == (1, 0)


def normalized() -> Graph:
    """Rows of channels, normalized between two convolutions."""
    first = conv(data(0, IMAGE))
    there = one("Transpose", first.outputs[0], LAST, {"perm": TO_LAST})
    row = node("LayerNormalization", [there.outputs[0], weights(C), weights(C)], LAST, attributes={"axis": -1})
    back = one("Transpose", row.outputs[0], IMAGE, {"perm": TO_FIRST})
    return chain(first, there, row, back, conv(back.outputs[0]))


def test_transposes_of_the_model_cancel() -> None:
    assert moved(normalized()) == (0, 2)


def test_what_has_one_pixel_or_one_channel_is_the_same_either_way() -> None:
    pooled = one("GlobalAveragePool", data(0, IMAGE), (N, C, 1, 1))
    assert moved(chain(pooled, one("Reshape", pooled.outputs[0], (N, C)))) == (0, 0)


def test_whoever_asks_for_sizes_alone_moves_nothing() -> None:
    first = conv(data(0, IMAGE))
    sizes, relu = one("Shape", first.outputs[0], (4,)), one("Relu", first.outputs[0], IMAGE)
    assert moved(chain(first, sizes, relu)) == (0, 0)


def test_a_number_that_was_made_of_an_image_is_no_image() -> None:
    first = conv(data(0, IMAGE))
    most = one("ReduceMax", first.outputs[0], ())
    rows = one("Reshape", data(1, FLAT), (N, H, C, W))
    scaled = node("Mul", [rows.outputs[0], most.outputs[0]], (N, H, C, W))
    view = one("Reshape", scaled.outputs[0], FLAT)
    assert moved(workload([data(0, IMAGE), data(1, FLAT)], first, most, rows, scaled, view)) == (0, 0)


def test_the_other_operand_of_a_sum_comes_along() -> None:
    first, flat = conv(data(0, IMAGE)), one("Reshape", data(1, FLAT), IMAGE)
    total = node("Add", [first.outputs[0], flat.outputs[0]], IMAGE)
    assert moved(workload([data(0, IMAGE), data(1, FLAT)], first, flat, total)) == (1, 0)


def test_onnxruntimes_own_operators_want_channels_first() -> None:
    first = conv(data(0, IMAGE))
    fused = node("FusedConv", [first.outputs[0], weights(C, C, 1, 1)], IMAGE, domain="com.microsoft")
    assert moved(chain(first, fused, conv(fused.outputs[0]))) == (2, 0)


def prices(graph: Graph, kinds: Sequence[Images]) -> list[float]:
    return [Predictor(manner=Manner(kind, on_gpu=True)).region(graph) for kind in kinds]


def test_moving_has_its_price_and_what_cancels_has_none() -> None:
    first, last = prices(between("Reshape", FLAT), ("first", "last"))
    assert last > first
    inside, alone = prices(between("Relu"), ("last", "last inside"))
    assert alone > inside
    kept, dropped = prices(normalized(), ("first", "last"))
    assert dropped < kept


def test_deployments_say_where_channels_are() -> None:
    last, first = Deployment("cuda", provider_options=(("prefer_nhwc", "1"),)), Deployment("cuda")
    assert (in_a_region(last).images, in_a_model(last).images) == ("last", "last inside")
    assert (in_a_region(first).images, in_a_model(first).images) == ("first", "first")
