# pyright: basic
"""Dims that follow from others: what is solved, what is left open, and that no run contradicts it."""

from __future__ import annotations

import random
import time

import onnxruntime as ort
import pytest

from superopt.ir.graph import Graph, Value
from superopt.ir.onnx import parse
from superopt.runtime.library import errors
from tests.ir.growing import Growing
from tests.ir.test_symbols import broken_promises, lifted, shape

VIEW = """
g (float[batch, length, 12] x) => (float[n, m, k, l] y)
<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] rest = {-1}, int64[1] width = {4}> {
    s = Shape(x)
    b = Gather<axis=0>(s, zero)
    t = Gather<axis=0>(s, one)
    b1 = Unsqueeze(b, first)
    t1 = Unsqueeze(t, first)
    target = Concat<axis=0>(b1, t1, rest, width)
    y = Reshape(x, target)
}
"""


def dims(graph: Graph) -> tuple:
    return shape(graph.outputs[0])


@pytest.mark.unit
@pytest.mark.parametrize("opset", [13, 14, 18])
def test_what_is_left_of_a_view_is_counted(opset: int) -> None:
    assert dims(lifted(VIEW, opset=opset)) == ("batch", "length", 3, 4)


@pytest.mark.unit
def test_what_follows_a_view_is_inferred_anew() -> None:
    """One view behind another, each of which inference knows nothing of at this opset."""
    twice = VIEW.replace(
        "y = Reshape(x, target)",
        """
    v = Reshape(x, target)
    turned = Transpose<perm = [0, 2, 1, 3]>(v)
    u = Shape(turned)
    h = Gather<axis=0>(u, one)
    h1 = Unsqueeze(h, first)
    again = Concat<axis=0>(b1, h1, rest)
    y = Reshape(turned, again)
    """,
    )
    assert dims(lifted(twice, opset=13))[:2] == ("batch", 3)


@pytest.mark.unit
def test_what_does_not_divide_stays_open() -> None:
    batch, length, heads, width = dims(lifted(VIEW.replace("{4}", "{5}")))
    assert (batch, length, width) == ("batch", "length", 5)
    assert isinstance(heads, str)
    assert heads not in ("batch", "length")


@pytest.mark.unit
def test_heads_that_are_computed_are_divided_exactly() -> None:
    body = """
    g (float[batch, length, 12] x) => (float[n, m, k, l] y)
    <int64[1] four = {4}, int64[1] two = {2}, int64[1] three = {3}, int64[1] none = {0}, int64[1] all = {-1}> {
        s = Shape(x)
        front = Slice(s, none, two, none)
        width = Slice(s, two, three, none)
        heads = Div(width, four)
        target = Concat<axis=0>(front, all, heads)
        y = Reshape(x, target)
    }
    """
    assert dims(lifted(body)) == ("batch", "length", 4, 3)


EXPAND = """
g (bool[batch, 1, 1, length] mask, float[batch, length] x) => (bool[n, m, k, l] y)
<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] minus = {-1}, int64[1] single = {1},
 int64[1] four = {4}> {
    s = Shape(x)
    b = Gather<axis=0>(s, zero)
    t = Gather<axis=0>(s, one)
    b1 = Unsqueeze(b, first)
    t1 = Unsqueeze(t, first)
    wanted = Concat<axis=0>(b1, single, t1, t1)
    ones = ConstantOfShape<value = int64[1] {1}>(four)
    negative = Mul(ones, minus)
    kept = Equal(wanted, negative)
    target = Where(kept, ones, wanted)
    y = Expand(mask, target)
}
"""


@pytest.mark.unit
def test_a_size_is_no_negative_number() -> None:
    """torch writes `expand` with a choice of 1 where the wanted size is −1."""
    n, one, k, last = dims(lifted(EXPAND))
    assert (one, k) == (1, "length#2")
    assert n not in ("batch", "batch#2"), "either may be 1"
    assert last not in ("length", "length#2")


@pytest.mark.unit
def test_inner_sizes_of_a_product_are_equal() -> None:
    body = """
    g (float[n, k] a, float[m, 1] b, float[k, w] c) => (float[p, q] y) { s = Add(a, b) y = MatMul(s, c) }
    """
    found = lifted(body)
    (total, product) = found.nodes
    assert shape(Value(total))[1] == "k", "an input's own size is what it was"
    assert isinstance(shape(Value(total))[0], str)
    assert shape(Value(product))[1] == "w"


@pytest.mark.unit
def test_what_nobody_reads_says_nothing() -> None:
    """A node that no result needs may be left out of a run, and cannot fail it."""
    body = """
    g (float[n, k] a, float[1, l] b, float[r, w] c) => (float[p, q] y) { s = Add(a, b) z = MatMul(s, c) y = Relu(s) }
    """
    total = next(node for node in lifted(body).nodes if node.op == "Add")
    assert shape(Value(total))[1] not in ("k", "l", "r")
    read = body.replace("y = Relu(s)", "y = Add(s, z)")
    total = next(node for node in lifted(read).nodes if node.op == "Add")
    assert shape(Value(total))[1] == "r"


@pytest.mark.unit
def test_a_table_cut_to_a_length_has_that_length_where_it_meets_it() -> None:
    body = """
    g (float[batch, length, 4] x, float[1, 8, 4] table) => (float[n, m, k] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
        s = Shape(x)
        end = Slice(s, one, two, zero)
        positions = Slice(table, zero, end, one)
        y = Add(x, positions)
    }
    """
    assert dims(lifted(body)) == ("batch", "length", 4)
    apart = body.replace("y = Add(x, positions)", "y = Relu(positions)")
    assert dims(lifted(apart))[1] != "length", "a run with more than 8 does not fail there"


@pytest.mark.unit
def test_one_row_may_be_for_all() -> None:
    """A table of one row broadcasts, however long the other is."""
    body = """
    g (float[batch, length, 4] x, float[1, 1, 4] seed) => (float[n, m, k] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
        s = Shape(x)
        end = Slice(s, one, two, zero)
        cut = Slice(seed, zero, end, one)
        y = Add(x, cut)
        z = Relu(cut)
    }
    """
    cut = next(node for node in lifted(body).nodes if node.op == "Slice" and len(shape(Value(node))) == 3)
    assert shape(Value(cut))[1] != "length"


@pytest.mark.unit
def test_bodies_know_what_was_solved_outside() -> None:
    body = """
    g (float[batch, length, 12] x, bool c) => (float[n, m, k, l] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] rest = {-1}, int64[1] width = {4}> {
        s = Shape(x)
        b = Gather<axis=0>(s, zero)
        t = Gather<axis=0>(s, one)
        b1 = Unsqueeze(b, first)
        t1 = Unsqueeze(t, first)
        target = Concat<axis=0>(b1, t1, rest, width)
        v = Reshape(x, target)
        y = If(c) <
            then_branch = yes () => (float[n, m, k, l] p) { p = Relu(v) },
            else_branch = no () => (float[n, m, k, l] q) { q = Neg(v) }
        >
    }
    """
    choice = next(node for node in lifted(body).nodes if node.op == "If")
    assert [shape(branch.outputs[0]) for branch in choice.bodies] == [("batch", "length", 3, 4)] * 2


@pytest.mark.unit
@pytest.mark.parametrize("start", ["Shape<start=0, end=1>(x)", "Identity(two)"])
def test_products_that_grow_without_end_are_given_up(start: str) -> None:
    squares = "\n".join(f"v{k + 1} = Mul(v{k}, v{k})" for k in range(80))
    body = f"""
    g (float[batch, 4] x) => (float[n, m] y) <int64[1] two = {{2}}, int64[1] four = {{4}}> {{
        v0 = {start}
        {squares}
        target = Concat<axis = 0>(v80, four)
        y = Reshape(x, target)
    }}
    """
    assert dims(lifted(body))[1] == 4


@pytest.mark.unit
def test_long_chains_are_solved_in_time() -> None:
    """Each learns a size of its own; looking all of them up again for each would take minutes."""
    steps = "\n".join(
        f"s{k} = Shape(v{k}) b{k} = Slice(s{k}, zero, one, zero) t{k} = Concat<axis = 0>(b{k}, rest, two) "
        f"r{k} = Reshape(v{k}, t{k}) f{k} = Flatten(r{k}) v{k + 1} = Relu(f{k})"
        for k in range(1000)
    )
    constants = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}, int64[1] two = {2}"
    body = f"g (float[n, 8] v0) => (float[p, q] y) <{constants}> {{ {steps} y = Relu(v1000) }}"
    started = time.monotonic()
    assert dims(lifted(body))[1] == 8
    assert time.monotonic() - started < 20.0


# ---------------------------------------------------------------------- against what really comes out


@pytest.mark.ort
@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("seed", range(30))
def test_no_run_contradicts_what_was_solved(seed: int, opset: int) -> None:
    """Before opset 14 inference knows nothing of a Reshape whose target is computed."""
    rng = random.Random(seed)
    growing = Growing(rng)
    for _ in range(40):
        growing.grow()
    data = growing.model(opset)
    graph = parse(data).graph
    session = _session(data)
    names = [o.name for o in session.get_outputs()]
    runs = 0
    for sizes in (growing.sizes, *({n: rng.randint(1, 5) for n in "abcde"} for _ in range(6))):
        feeds = Growing.drawn(sizes)
        try:
            found = session.run(names, feeds)
        except errors():  # sizes that do not fit promise nothing
            assert sizes is not growing.sizes
            continue
        runs += 1
        inputs = [(p.type, feeds[name]) for p, name in zip(graph.inputs, graph.input_names, strict=True)]
        results = [(value.type, array) for value, array in zip(graph.outputs, found, strict=True)]
        assert not broken_promises([*inputs, *results])
    assert runs


def _session(data: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@pytest.mark.ort
def test_random_graphs_have_something_to_solve() -> None:
    """Or the test before this one would say nothing."""
    solved = 0
    for seed in range(20):
        growing = Growing(random.Random(seed))
        for _ in range(40):
            growing.grow()
        graph = parse(growing.model()).graph
        own = {dim for value in graph.inputs for dim in shape(Value(value))}
        solved += sum(
            all(isinstance(dim, int) or dim in own for dim in shape(Value(node)))
            for node in graph.nodes
            if node.op in ("Reshape", "Expand", "Flatten") and shape(Value(node))
        )
    assert solved > 20
