# pyright: basic
"""Places where a matcher that is a little too generous would be wrong."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.ir.graph import Value, make_parameter
from superopt.ir.types import DType, TensorType
from superopt.ops.index import same
from superopt.rewrite.reading import Reading
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.sizes import Sizes
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY, RULES, opened, rules

pytestmark = pytest.mark.ort


def test_a_number_with_axes_is_more_than_a_number() -> None:
    """2·x summed over five copies of x is not twice the sum of x."""
    (rule,) = parse_rules(
        "rule factor\n  given x: [m, n]  s: real\n  y = ReduceSum(Mul(x, (s)), axes=[1])\n"
        "  =>\n  y = Mul(ReduceSum(x, axes=[1]), (s))"
    )
    for shape, fires in (((), True), ((1,), True), ((1, 1), True), ((1, 5), False), ((1, 1, 1), False)):
        data = model(
            "g (float[3, 1] x) => (float[m, n] y) { s = Mul(x, c) y = ReduceSum(s, a) }",
            c=np.full(shape, 2, np.float32), a=np.array([-1]),
        )  # fmt: skip
        assert bool(every_way(data, {"x": numbers(3, 1)}, Rules([rule], REGISTRY))) == fires, shape


def test_a_weight_with_leading_axes_is_not_a_smaller_one_where_rank_counts() -> None:
    data = model(
        "g (float[5] x) => (float[m, n] y) { s = Add(x, c) y = ReduceMean<axes=[0], keepdims=1>(s) }",
        c=numbers(1, 5),
    )
    every_way(data, {"x": numbers(5)})


@pytest.mark.parametrize("pads", [[0, -1, 0, -1], [0, 1, 0, -1], [-1, 0, 2, 0]])
def test_a_pad_that_crops_is_not_a_border(pads: list[int]) -> None:
    data = model(
        "g (float[4, 6] x, float[a, b] z) => (float[m, n] y) { p = Pad(x, pads) q = Tanh(p) y = Add(q, z) }",
        pads=np.array(pads),
    )
    shape = (4 + pads[0] + pads[2], 6 + pads[1] + pads[3])
    found = every_way(data, {"x": numbers(4, 6), "z": numbers(*shape)})
    assert not any("pad" in name for name in found)


def test_a_convolution_takes_in_no_border_that_crops() -> None:
    data = model(
        "g (float[1, 2, 6, 6] x) => (float[a, b, m, n] y) { p = Pad(x, pads) y = Conv(p, k) }",
        pads=np.array([0, 0, -1, 1, 0, 0, -1, 1]), k=numbers(3, 2, 3, 3),
    )  # fmt: skip
    assert "pad-into-conv" not in every_way(data, {"x": numbers(1, 2, 6, 6)})


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 3)])
def test_nothing_is_said_of_empty_tensors(shape: tuple[int, ...]) -> None:
    dims = ", ".join(map(str, shape))
    out = ", ".join("abcd"[: len(shape)])
    data = model(
        f"g (float[{dims}] x) => (float[{out}] y) {{ n = Neg(x) m = Neg(n) r = Relu(m) s = Relu(r) y = Mul(s, c) }}",
        c=np.ones((), np.float32),
    )
    assert every_way(data, {"x": np.zeros(shape, np.float32)}) == []


def test_the_number_next_to_two_is_not_two() -> None:
    for dtype in (np.float16, np.float32):
        for number, fires in ((2.0, True), (np.nextafter(dtype(2), dtype(3)), False)):
            kind = "float16" if dtype is np.float16 else "float"
            data = model(f"g ({kind}[4] x) => ({kind}[n] y) {{ y = Pow(x, e) }}", e=np.asarray(number, dtype))
            start = opened(data)
            assert bool(start.matches(start.piece, rules("pow-two"))) == fires


def test_a_number_that_no_type_holds_is_one_of_its_neighbours() -> None:
    """1/√2 is rounded down by some exporters and up by others."""
    near = np.float32(1 / np.sqrt(2))
    steps = [near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1)), near * np.float32(1.00001)]
    found: list[bool] = []
    for number in steps:
        data = model(
            "g (float[4] x) => (float[n] y) "
            "{ a = Mul(x, s) b = Erf(a) c = Add(b, one) d = Mul(x, half) y = Mul(d, c) }",
            20, s=number.reshape(()), one=np.ones((), np.float32), half=np.full((), 0.5, np.float32),
        )  # fmt: skip
        found.append("gelu-scaled-half-first" in every_way(data, {"x": numbers(4)}))
    assert found == [True, True, True, False]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_rules_about_real_numbers_are_not_for_integers(kind: str) -> None:
    real = {r.name for p in RULES.patterns.values() if (r := p.rule) and _is_real(p.nodes)}
    data = model(
        f"g ({kind}[2, 3] x, {kind}[2, 3] z) => ({kind}[m, n] y, {kind}[p, q] w) {{ "
        "a = Mul(x, z) b = Mul(a, c) d = Div(b, two) e = Add(d, zero) f = Mul(e, one) y = Add(f, f) w = Div(x, one) }",
        c=np.full((), 3, kind), two=np.full((), 2, kind), zero=np.zeros((), kind), one=np.ones((), kind),
    )  # fmt: skip
    values = np.arange(1, 7, dtype=kind).reshape(2, 3)
    start = opened(data)
    found = {f[0].pattern.rule.name for f in start.matches(start.piece)}
    assert found
    assert not found & real
    every_way(data, {"x": values, "z": values}, Rules([RULES.patterns[n].rule for n in found], REGISTRY))


def _is_real(nodes: tuple) -> bool:
    return any(node.operator.elements == "real" for node in nodes)


def test_infinite_constants_are_no_numbers_of_rules() -> None:
    low, nan = np.full((), -np.inf, np.float32), np.full((), np.nan, np.float32)
    data = model(
        "g (float[2, 3] x, bool[2, 3] c) => (float[m, n] y, float[p, q] w, float[a, b] v) { "
        "m1 = Where(c, x, low) s = Add(m1, low) y = Mul(s, one) p1 = Pad(x, pads, low) w = Relu(p1) "
        "t = Add(x, nan) v = Mul(t, nan) }",
        low=low, nan=nan, one=np.ones((), np.float32), pads=np.array([0, 1, 0, 1]),
    )  # fmt: skip
    found = every_way(data, {"x": numbers(2, 3), "c": np.ones((2, 3), bool)})
    assert "mul-one" in found
    assert "max-pool-shift" not in found


def test_an_infinite_attribute_is_read_by_no_rule() -> None:
    data = model("g (float[3] x) => (float[n] y) { a = LeakyRelu<alpha: float = inf>(x) y = Relu(a) }")
    start = opened(data)
    node = start.piece.nodes[0]
    assert isinstance(start.rewriter.reader.read(node), str)


def test_windows_that_onnxruntime_crops_are_barriers() -> None:
    """auto_pad with strides beyond the window: the formula pads by nothing, onnxruntime by less."""
    text = 'g (float[1, 2, 4] x) => (float[a, b, c] y) {{ v = Conv<auto_pad="{}", strides=[{}]>(x, k) y = Neg(v) }}'
    for stride, readable in ((1, True), (2, True), (4, False)):
        start = opened(model(text.format("SAME_UPPER", stride), k=numbers(3, 2, 1 if stride == 4 else 2)))
        assert isinstance(start.rewriter.reader.read(start.piece.nodes[0]), Reading) == readable


def test_sizes_that_only_the_run_tells_are_not_taken_for_one_another() -> None:
    """Both results have two unknown dims, and nothing says that they are the same ones."""
    data = model(
        "g (float[1, 1] x, int64[2] s, int64[2] t) => (float[m, n] y, float[p, q] z) "
        "{ y = Expand(x, s) z = Expand(x, t) }"
    )
    start = opened(data)
    readings = [start.rewriter.reader.read(node) for node in start.piece.nodes]
    assert all(isinstance(r, Reading) for r in readings)
    shapes = [str(r.arguments["shape"]) for r in readings if isinstance(r, Reading)]
    assert shapes[0] != shapes[1]


def test_a_dim_that_a_file_calls_a_sum_is_not_that_sum() -> None:
    """The join of n and m rows need not be as long as an input whose dim is called `m + n`."""
    sizes = Sizes()
    named = make_parameter(0, TensorType(DType.FLOAT32, ("m + n", "n", "m", None, None)))
    shape = sizes.shape(Value(named))
    assert shape is not None
    total, unknown = shape[1] + shape[2], shape[3] + 1
    joined = make_parameter(1, sizes.type(DType.FLOAT32, (total, unknown, shape[1])))
    again = sizes.shape(Value(joined))
    assert again is not None
    assert same(again[0], total)
    assert not same(again[0], shape[0])
    assert not same(again[1], unknown)
    assert same(again[2], shape[1])
    assert not same(shape[3], shape[4])


def test_a_weight_that_the_caller_may_replace_is_none() -> None:
    """Initializers that are inputs too are only defaults."""
    proto = onnx.ModelProto.FromString(
        model("g (float[3] x, float c) => (float[n] y) { y = Mul(x, c) }", c=np.ones((), np.float32))
    )
    found = every_way(proto.SerializeToString(), {"x": numbers(3), "c": np.full((), 3, np.float32)})
    assert "mul-one" not in found


def test_shapes_that_a_file_claims_are_not_believed() -> None:
    proto = onnx.ModelProto.FromString(
        model("g (float[2, 6] x, int64[2] s) => (float[m, n] y) { r = Reshape(x, s) q = Reshape(r, t) y = Neg(q) }",
              t=np.array([3, 4]))
    )  # fmt: skip
    proto.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [2, 6]))
    proto.graph.value_info.append(helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 6]))
    every_way(proto.SerializeToString(), {"x": numbers(2, 6), "s": np.array([4, 3])})


@pytest.mark.parametrize(
    ("shape", "fires"), [((2, 3, 2, 3), True), ((2, 2), True), ((2, 3, 3, 2), False), ((2, 3, 4), False)]
)
def test_a_block_that_stands_twice_takes_as_many_axes_each_time(shape: tuple[int, ...], fires: bool) -> None:
    (rule,) = parse_rules("rule twice\n  given x: [...b, ...b]\n  y = Neg(Neg(x))\n  =>\n  y = x")
    dims, out = ", ".join(map(str, shape)), ", ".join("abcd"[: len(shape)])
    data = model(f"g (float[{dims}] x) => (float[{out}] y) {{ n = Neg(x) m = Neg(n) y = Relu(m) }}")
    assert bool(every_way(data, {"x": numbers(*shape)}, Rules([rule], REGISTRY))) == fires


def test_a_result_that_the_node_does_not_have_is_no_match() -> None:
    """SkipLayerNormalization may leave out all results but the first; a rule may want the sum as well."""
    (rule,) = parse_rules(
        "rule sum\n  given x: [m, k, n]  z: [m, k, n]  g: [n]\n"
        "  y, mean, inverse, t = com.microsoft::SkipLayerNormalization(x, z, g)\n"
        "  =>\n  t = Add(x, z)\n  y, mean, inverse = LayerNormalization(t, g, epsilon=1e-12)"
    )
    data = model(
        "g (float[2, 3, 4] x, float[2, 3, 4] z) => (float[a, b, c] y)"
        " { y = com.microsoft.SkipLayerNormalization(x, z, g) }",
        g=numbers(4),
    )  # fmt: skip
    start = opened(data)
    assert not start.matches(start.piece, Rules([rule], REGISTRY))
