# pyright: basic
"""Regions: what is cut out can be put back, what was done can be done again, and to a twin too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from superopt.errors import CannotReplay
from superopt.ir.graph import Node, Value
from superopt.rewrite.found import Match
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.rewrite.weights import CannotCombine
from superopt.search.explore import Limits, explore
from superopt.search.follow import follow
from superopt.search.regions import CAP, Region, cut, extract, stitch
from superopt.search.trace import Traced, replay_one, traced
from tests.graphs import Case, cases
from tests.rewrite.instances import Instance, instances
from tests.rewrite.small import model, numbers
from tests.rewrite.taking import REGISTRY, SHIPPED, Opened, difference, opened, ran, run
from tests.rewrite.writer import PLAIN

pytestmark = pytest.mark.ort

OPSET = 17
STEPS = Rules([r for r in SHIPPED if not r.finite and not r.name.endswith("commute")], REGISTRY)
fast = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)


def is_open(rewriter: Rewriter, node: Node) -> bool:
    return not node.bodies and not isinstance(rewriter.reader.read(node), str)


def regions_of(start: Opened, offset: int = 0) -> list[Region]:
    return cut(start.piece, lambda node: is_open(start.rewriter, node), offset)


def assert_convex(piece: Piece, members: Sequence[Node]) -> None:
    """No path from a member leads through another node to a member."""
    inside, beyond = set(members), set[Node]()
    for node in piece.nodes:
        below = {v.producer for v in node.operands}
        if node in inside:
            assert not below & beyond
        elif below & (inside | beyond):
            beyond.add(node)


def beside(parts: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """The models as one, each under names of its own."""
    whole = onnx.ModelProto()
    for k, part in enumerate(parts):
        named = onnx.compose.add_prefix(part, f"p{k}_")
        if not k:
            whole.CopyFrom(named)
            continue
        for field in ("node", "input", "output", "initializer"):
            getattr(whole.graph, field).extend(getattr(named.graph, field))
    domains = {o.domain: o for part in parts for o in part.opset_import}
    del whole.opset_import[:]
    whole.opset_import.extend(domains.values())
    return whole


def drawn(rng: np.random.Generator, count: int) -> list[Instance]:
    """Instances of rules that onnxruntime runs."""
    found: list[Instance] = []
    while len(found) < count:
        rule = SHIPPED[int(rng.integers(len(SHIPPED)))]
        made = next(instances(rule, REGISTRY, OPSET, PLAIN, seed=int(rng.integers(1 << 30)), every=False), None)
        if made is not None and ran(made.data, made.feeds) is not None:
            found.append(made)
    return found


def stroll(start: Piece, rewriter: Rewriter, rng: np.random.Generator, length: int) -> list[Taken]:
    """Random steps in a piece. Of matches that differ in weights without a name the first, as in a search."""
    steps: list[Taken] = []
    for _ in range(length):
        piece = steps[-1].after if steps else start
        found: dict[str, tuple[Match, Mapping[str, Value]]] = {}
        for node in piece.nodes:
            for match, made in rewriter.moves(STEPS, node, piece):
                inputs = {k: piece.called.get(v) for k, v in match.inputs.items()}
                words = (match.pattern.rule.name, match.results, inputs)
                found.setdefault(str(words), (match, made))
        if not found:
            break
        steps.append(rewriter.take(piece, *list(found.values())[int(rng.integers(len(found)))]))
    return steps


@fast
@given(cases(max_steps=24), st.integers(0, 5))
def test_regions_are_convex_and_share_no_node(case: Case, offset: int) -> None:
    start = opened(case.model)
    regions = regions_of(start, offset)
    members = [node for region in regions for node in region.members]
    assert len(members) == len(set(members))
    assert all(is_open(start.rewriter, node) for node in members)
    for region in regions:
        assert 2 <= len(region.members) <= 2 * CAP
        assert_convex(start.piece, region.members)


@pytest.mark.parametrize("seed", range(3))
def test_regions_cover_what_is_open(seed: int) -> None:
    """All but single nodes that are left over between two barriers, or at an end."""
    rng = np.random.default_rng(seed)
    whole = beside([made.model for made in drawn(rng, 12)])
    start = opened(whole.SerializeToString())
    nodes = [node for node in start.piece.nodes if is_open(start.rewriter, node)]
    covered = {node for region in regions_of(start) for node in region.members}
    assert covered <= set(nodes)
    assert len(covered) >= len(nodes) - 3


@fast
@given(cases(max_steps=24), st.integers(0, 5))
def test_what_is_cut_out_and_put_back_is_as_before(case: Case, offset: int) -> None:
    start = opened(case.model)
    piece = start.piece
    for region in regions_of(start, offset):
        back = stitch(piece, region, region.piece).piece
        assert back.results == piece.results
        assert back.nodes == piece.nodes
        assert dict(back.tags) == dict(piece.tags)
        assert {n: v for n, v in back.names.items() if n in piece.names} == dict(piece.names)


@pytest.mark.parametrize("seed", range(15))
def test_a_trace_gives_what_the_search_had(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = drawn(rng, 3)
    whole = beside([m.model for m in made])
    feeds = {f"p{k}_{name}": value for k, m in enumerate(made) for name, value in m.feeds.items()}
    start = opened(whole.SerializeToString())
    piece, records = start.piece, list[Traced]()
    for kind, region in enumerate(regions_of(start)):
        now = extract(piece, region_now(piece, start.piece, region))
        steps = stroll(now.piece, start.rewriter, rng, 4)
        records.append(traced(now, piece, [s.step for s in steps], kind))
        piece = stitch(piece, now, steps[-1].after if steps else now.piece, piece.names).piece
    again = start.piece
    for record in records:
        again = replay_one(again, record, STEPS, start.rewriter, strict=True)
    assert again.results == piece.results
    other = opened(whole.SerializeToString())
    elsewhere = other.piece
    for record in records:
        elsewhere = replay_one(elsewhere, record, STEPS, other.rewriter)
    try:
        data = start.exported(piece)
    except CannotCombine:
        return
    assert other.exported(elsewhere) == data
    after = ran(data, feeds)
    assert after is None or not difference(run(whole.SerializeToString(), feeds, optimized=False), after)


def region_now(piece: Piece, first: Piece, region: Region) -> list[Node]:
    """The region's nodes after other regions were rewritten, by their names."""
    names = {first.tags[node].outputs for node in region.members}
    return [node for node in piece.nodes if piece.tags[node].outputs in names]


def test_a_trace_with_a_slip_is_refused() -> None:
    rng = np.random.default_rng(1)
    while True:  # not every graph that is drawn has a place for a rule
        start = opened(drawn(rng, 1)[0].data)
        region = extract(start.piece, start.piece.nodes)
        if steps := [s.step for s in stroll(region.piece, start.rewriter, rng, 1)]:
            break
    record = traced(region, start.piece, steps, 0)
    for wrong in (
        Traced((*record.members, "nobody"), record.steps),
        Traced(record.members, (*record.steps, *(type(s)("no-such-rule", s.results, s.inputs) for s in record.steps))),
        Traced(record.members, tuple(type(s)(s.rule, ("nobody",), s.inputs) for s in record.steps)),
    ):
        with pytest.raises(CannotReplay):
            replay_one(start.piece, wrong, STEPS, start.rewriter)


@pytest.mark.parametrize("seed", range(15))
def test_a_twin_is_led_the_same_way(seed: int) -> None:
    """The same graph with other weights, in the same model."""
    rng = np.random.default_rng(seed)
    (made,) = drawn(rng, 1)
    other = onnx.ModelProto()
    other.CopyFrom(made.model)
    for tensor in other.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.size > 1 and "scales" not in tensor.name:
            tensor.CopyFrom(numpy_helper.from_array((array * 1.5 + 0.25).astype(np.float32), tensor.name))
    whole = beside([made.model, other])
    feeds = {f"p{k}_{name}": value for k in range(2) for name, value in made.feeds.items()}
    start = opened(whole.SerializeToString())
    twins = [
        extract(start.piece, [n for n in start.piece.nodes if start.piece.tags[n].outputs[0].startswith(f"p{k}_")])
        for k in range(2)
    ]
    steps = stroll(twins[0].piece, start.rewriter, rng, 4)
    followed = follow(steps, twins[0].piece, twins[1].piece, start.rewriter, start.piece.names)
    assert followed is not None
    assert [s.rule.name for s in followed] == [s.rule.name for s in steps]
    piece = start.piece
    for twin, taken in zip(twins, (steps, followed), strict=True):
        if taken:
            piece = stitch(piece, twin, taken[-1].after, piece.names).piece
    try:
        data = start.exported(piece)
    except CannotCombine:
        return
    after = ran(data, feeds)
    assert after is None or not difference(run(whole.SerializeToString(), feeds, optimized=False), after)


@pytest.mark.parametrize("seed", range(8))
def test_everything_a_search_finds_computes_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (made,) = drawn(rng, 1)
    start = opened(made.data)
    before = run(made.data, made.feeds, optimized=False)
    limits = Limits(alpha=1.5, candidates=12, out_of_time=lambda: False)
    found = explore(start.piece, STEPS, start.rewriter, lambda piece: 1.0 + len(piece.nodes), limits)
    again = explore(start.piece, STEPS, start.rewriter, lambda piece: 1.0 + len(piece.nodes), limits)
    assert found.candidates[0].piece is start.piece
    assert [c.piece.results for c in found.candidates] == [c.piece.results for c in again.candidates]
    costs = [c.cost for c in found.candidates[1:]]
    assert costs == sorted(costs)
    for candidate in found.candidates[1:]:
        try:
            after = ran(start.exported(candidate.piece), made.feeds)
        except CannotCombine:
            continue
        assert after is None or not difference(before, after), [s.rule.name for s in candidate.steps]


def test_the_last_cuts_go_through_the_middle_of_those_before() -> None:
    """Blocks that repeat themselves begin at the same places in every cut, but for these."""
    block = "{y} = MatMul({x}, w) {y}r = Reshape({y}, long) {y}t = Transpose({y}r) {y}a = Abs({y}t) {y}e = Exp({y}a)"
    block += " {y}n = Neg({y}e) {y}b = Reshape({y}n, square)"
    steps = " ".join(block.format(x=f"v{k}" + ("b" if k else ""), y=f"v{k + 1}") for k in range(12))
    constants = {"w": numbers(4, 4), "long": np.array([2, 8], np.int64), "square": np.array([4, 4], np.int64)}
    start = opened(model(f"g (float[4,4] v0) => (float[4,4] v12b) {{ {steps} }}", **constants))

    def borders(offset: int) -> set[int]:
        return {start.piece.position(region.members[-1]) for region in regions_of(start, offset)} - {12 * 7 - 1}

    for offset in (4, 5):
        assert borders(offset - 2)
        assert not borders(offset) & borders(offset - 2)
        assert all(len(region.members) <= CAP for region in regions_of(start, offset))
        kinds = {tuple(node.kind for node in region.members) for region in regions_of(start, offset)}
        assert len(kinds) < len(regions_of(start, offset))


def test_later_cuts_put_long_neighbours_together() -> None:
    """What two runs of nodes have between them is inside of a region in one of the later cuts, one way or the other."""
    steps = "\n".join(f"v{k + 1} = Concat<axis = 0>(v{k}, one)" for k in range(64))
    start = opened(model(f"g (float[1] v0) => (float[65] v64) {{ {steps} }}", one=numbers(1)))

    def borders(offset: int) -> set[int]:
        ends = [start.piece.position(region.members[-1]) for region in regions_of(start, offset)]
        return set(ends[:-1])

    assert borders(0)
    assert all(len(region.members) <= CAP for offset in range(4) for region in regions_of(start, offset))
    assert not borders(0) & borders(2) & borders(3)
    assert len(borders(2)) < len(borders(0))


def test_a_region_knows_which_of_its_results_are_the_graph_s() -> None:
    start = opened(model("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Exp(a) c = Neg(a) y = Add(b, c) }"))
    whole = start.piece
    relu, exp, neg, add = whole.nodes
    assert extract(whole, [relu, exp]).final == ()
    assert [len(region.results) for region in (extract(whole, [relu, exp]), extract(whole, [neg, add]))] == [2, 1]
    assert extract(whole, [neg, add]).final == (0,)
    assert extract(whole, [relu, exp, neg, add]).final == (0,)
