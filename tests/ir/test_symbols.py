# pyright: basic
"""Within one lifted graph equal symbols are equal sizes, whatever the file calls its dims."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, parser

from superopt.ir.graph import Graph, Value
from superopt.ir.onnx import encode, parse
from superopt.ir.onnx.declared import declared_inputs
from superopt.ir.onnx.sized import symbol_sizes
from superopt.ir.types import TensorType, Type
from tests.graphs import Case, cases, run

F32 = np.float32


def model(body: str, functions: str = "", *, opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "my" : 1]>\n{body}\n{functions}')


def lifted(body: str, functions: str = "", *, opset: int = 18) -> Graph:
    return parse(model(body, functions, opset=opset).SerializeToString()).graph


def shape(value: Value) -> tuple:
    assert isinstance(value.type, TensorType)
    return value.type.shape or ()


def broken_promises(seen: Iterable[tuple[Type, object]]) -> list[str]:
    """Types against the arrays they were promised for."""
    found: list[str] = []
    sizes: dict[str, int] = {}
    for type_, array in seen:
        if not isinstance(type_, TensorType) or type_.shape is None or not isinstance(array, np.ndarray):
            continue
        if len(type_.shape) != array.ndim:
            found.append(f"{type_} has the shape {array.shape}")
            continue
        for dim, size in zip(type_.shape, array.shape, strict=True):
            known = sizes.setdefault(dim, size) if isinstance(dim, str) else dim
            if known is not None and known != size:
                found.append(f"{type_} has the shape {array.shape}, {dim} is {known}")
    return found


@pytest.mark.unit
def test_every_dim_of_an_input_has_its_own_symbol() -> None:
    text = 'g (float[n, n, 3] x, float[n, k] y, float["", "n#2"] z) => (float[n] w) { w = ReduceSum(x) }'
    proto = model(text)
    for dim in proto.graph.input[2].type.tensor_type.shape.dim:
        dim.dim_param = dim.dim_param.strip('"')
    found = parse(proto.SerializeToString())
    shapes = [p.type.shape for p in found.graph.inputs if isinstance(p.type, TensorType)]
    assert shapes == [("n", "n#3", 3), ("n#4", "k"), ("z.0#1", "n#2")]
    assert [str(t) for t in declared_inputs(found).values()] == [
        "float32[n, n, 3]", "float32[n, k]", 'float32[?, "n#2"]'
    ]  # fmt: skip
    assert encode(found, found.graph) == proto


@pytest.mark.unit
def test_dims_without_a_name_are_sizes_too() -> None:
    proto = model("g (float[a, b, 3] x, float[c] y) => (float[a, b, 3] z) { z = Relu(x) }")
    first, second = proto.graph.input[0].type.tensor_type.shape.dim[:2]
    first.dim_value = -1
    second.ClearField("dim_param")
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "x.0"
    graph = parse(proto.SerializeToString()).graph
    names = [shape(Value(parameter)) for parameter in graph.inputs]
    assert names == [("x.0#1", "x.1#1", 3), ("x.0",)]
    assert shape(graph.outputs[0]) == names[0]


@pytest.mark.unit
def test_one_name_on_two_inputs_says_nothing_about_their_sum() -> None:
    graph = lifted("g (float[n] x, float[n] y) => (float[n] z) { z = Add(x, y) }")
    assert shape(graph.outputs[0])[0] not in ("n", "n#2")
    graph = lifted("g (float[n] x, float[n] y) => (float[n] z) { a = Relu(x)  z = Add(x, a) }")
    assert shape(graph.outputs[0]) == ("n",)


@pytest.mark.unit
def test_branches_do_not_share_symbols() -> None:
    graph = lifted("""g (bool c, float[n] x, float[n] y) => (float[a] z, int64[b] w) {
      z = If (c) <
        then_branch = t () => (float[k] p) { q = NonZero(x)  p = Cast<to = 1>(q) },
        else_branch = e () => (float[k] r) { s = NonZero(y)  r = Cast<to = 1>(s) }
      >
      w = NonZero(x)
    }""")
    choice = graph.nodes[0]
    dims = [shape(body.outputs[0])[1] for body in choice.bodies] + [shape(v)[1] for v in graph.outputs]
    assert len(set(dims)) == 4


@pytest.mark.unit
def test_elements_of_a_sequence_have_no_common_size() -> None:
    graph = lifted("""g (float[n] x, int64[p] parts, int64 i, int64 j) => (float[a] y, float[b] z) {
      s = SplitToSequence(x, parts)
      y = SequenceAt(s, i)
      z = SequenceAt(s, j)
    }""")
    assert [shape(v) for v in graph.outputs] == [(None,), (None,)]


@pytest.mark.unit
def test_a_function_that_works_with_sequences_takes_the_symbols_with_it() -> None:
    function = """<domain: "my", opset_import: ["" : 18]> f (x, parts, i, j) => (y, z) {
      s = SplitToSequence(x, parts)
      y = SequenceAt(s, i)
      z = SequenceAt(s, j)
    }"""
    body = """g (float[n] x, int64[p] parts, int64 i, int64 j) => (float[a] y, float[b] z) {
      y, z = my.f(x, parts, i, j)
    }"""
    assert not [d for v in lifted(body, function).outputs for d in shape(v) if isinstance(d, str)]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("...i,...j->...ij", None),
        ("bi,bj->bij", None),
        ("ki,kj->ij", ("m", "k")),
        ("ab,cd->abcd", ("n", "m", "n#2", "k")),
    ],
)
def test_dims_that_einsum_may_broadcast_are_unknown(equation: str, expected: tuple | None) -> None:
    text = f'g (float[n, m] x, float[n, k] y) => (float[o] z) {{ z = Einsum <equation = "{equation}"> (x, y) }}'
    type_ = lifted(text).outputs[0].type
    assert (type_.shape if isinstance(type_, TensorType) else None) == expected
    same = f'g (float[n, m] x) => (float[o] z) {{ y = Relu(x)  z = Einsum <equation = "{equation}"> (x, y) }}'
    assert isinstance(lifted(same).outputs[0].type, TensorType)


@pytest.mark.unit
def test_attention_of_unknown_sizes_is_not_empty() -> None:
    graph = lifted(
        """g (float[b, s, w] q, float[b, t, w] k, float[b, t, w] v) => (float[b, s, w] y, float[o] z) {
          y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v)
          z = Relu(y)
        }""",
        opset=23,
    )
    assert not [v for v in graph.outputs if isinstance(v.type, TensorType) and 0 in (v.type.shape or ())]


GROUPS = "t = GroupNormalization <num_groups = 3> (x, s, b) y = Relu (t)"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "steps", "opset"),
    [
        (", float[6] s, float[6] b", GROUPS, 21),
        (", float[3] s, float[3] b", GROUPS, 18),
        ("", "t = MeanVarianceNormalization (x) y = Relu (t)", 18),
    ],
)
def test_what_onnx_says_nothing_of_keeps_the_shape_of_its_input(given: str, steps: str, opset: int) -> None:
    graph = lifted(f"g (float[n, 6, h, 4] x{given}) => (float[n, 6, h, 4] y) {{ {steps} }}", opset=opset)
    assert [shape(node.outputs[0]) for node in graph.nodes] == [shape(Value(graph.inputs[0]))] * 2
    assert shape(graph.outputs[0])[1::2] == (6, 4)


@pytest.mark.unit
def test_sizes_of_symbols_follow_from_the_inputs() -> None:
    made = parse(
        model("""g (float[n, n] x, float[n, k] y, bool c) => (float[a, b] z, float[d] w, int64[e, f] v) {
      z = Concat<axis = 1>(x, y)
      w = If (c) <
        then_branch = t () => (float[p] r) { q = Concat<axis = 0>(x, x)  r = ReduceSum<keepdims = 0>(q) },
        else_branch = e () => (float[p] s) { s = ReduceSum<keepdims = 0>(x) }
      >
      v = NonZero(x)
    }""").SerializeToString()
    )
    graph = made.graph
    sizes = symbol_sizes(made, {"x": (2, 5), "y": (2, 7), "c": ()})
    assert [sizes[d] for d in ("n", "n#2", "n#3", "k")] == [2, 5, 2, 7]
    assert sizes[shape(graph.outputs[0])[1]] == 12
    doubled = next(n for body in graph.nodes[1].bodies for n in body.nodes if n.op == "Concat")
    assert sizes[shape(Value(doubled))[0]] == 4
    assert shape(graph.outputs[2])[1] not in sizes
    assert symbol_sizes(made, {"x": (2, 5)})["n"] == 2


@pytest.mark.ort
@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)  # fmt: skip
@given(cases())
def test_symbols_hold_on_random_models(case: Case) -> None:
    """Every value of the model is made a result and run; the random models name unrelated dims alike."""
    graph = parse(case.model).graph
    proto = onnx.load_from_string(case.model)
    named = {
        name: value
        for node in graph.nodes
        for name, value in zip(graph.labels[node].outputs, node.outputs, strict=True)
    }
    shown = {n: v for n, v in named.items() if n and isinstance(v.type, TensorType) and v.type.dtype is not None}
    for name in shown.keys() - set(graph.output_names):
        proto.graph.output.add(name=name)
    found = run(proto.SerializeToString(), case.feeds)
    values = dict(zip([v.name for v in proto.graph.output], found, strict=True))
    seen = [(p.type, case.feeds.get(n)) for p, n in zip(graph.inputs, graph.input_names, strict=True)]
    assert not broken_promises([*seen, *((v.type, values[n]) for n, v in shown.items())])
