# pyright: basic
"""Mutants in the search: found, timed, proved, used and told; with a clock that counts nodes."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.cost.coefficients import PRIORS, Coefficients
from superopt.cost.columns import Column
from superopt.cost.predict import Predictor
from superopt.cost.regions import RegionSubject
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.options import Options
from superopt.partial.corrected import mutants
from superopt.partial.differ import Disagreement
from superopt.partial.families import canvases, tiles
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.ruleset import state
from superopt.rewrite.text import format_rule, parse_rules, read_rules
from superopt.rewrite.whole import piece_of
from superopt.search.audit import audit
from superopt.search.ending import Ending
from superopt.search.hunted import Budget, Hunted
from superopt.search.hunting import PARTIAL, Ground
from superopt.search.optimize import Destination, optimize_model
from superopt.search.regions import cut
from superopt.search.rulebook import open_rulebook
from superopt.search.trace import mutants_used
from superopt.search.trial import Trial
from superopt.search.workshop import Workshop
from superopt.verify.prove import Verdict
from tests.search.clocks import Counting
from tests.search.heads import (
    CHANNELS,
    DEVICE,
    LEVELS,
    REGISTRY,
    assert_same_outputs,
    built,
    head,
    hunted,
    model,
    small_book,
)

pytestmark = [pytest.mark.ort, pytest.mark.smt]

WINDOW: dict[str, Any] = {"pads": [1, 1, 1, 1]}


@pytest.fixture
def canvases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other families would only take their time."""
    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))


@cache
def pyramid(layers: int) -> tuple[onnx.ModelProto, Workshop, Hunted]:
    """Searched once for all tests; two levels where there are several layers."""
    proto = head(LEVELS if layers == 1 else LEVELS[:2], layers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))
        return (proto, *hunted(proto))


def operators(proto: onnx.ModelProto, op: str) -> int:
    return sum(node.op_type == op for node in proto.graph.node)


@pytest.mark.parametrize("layers", [1, 2])
def test_levels_of_a_pyramid_come_to_lie_on_one_canvas(layers: int) -> None:
    proto, shop, found = pyramid(layers)
    rules = found.mutated.rules
    assert rules
    assert all(state(rule, REGISTRY) == "proved" and rule.is_partial for rule in rules.values())
    assert shop.book.digests.keys() == rules.keys()
    assert {step.rule for record in found.trace for step in record.steps} <= rules.keys()
    after = built(shop, found)
    assert operators(after, "Conv") == layers
    assert_same_outputs(proto, after)
    told = mutants_used(found.trace, rules, shop.book.digests)
    assert [m.name for m in told] == [found.trace[0].steps[0].rule]
    assert told[0].digest in told[0].name
    assert parse_rules(told[0].text)[0] == rules[told[0].name]
    counts = found.mutated
    assert counts.programs > 1
    assert counts.mutants >= counts.timed >= len(rules) > 0


@pytest.mark.parametrize(("layers", "solver"), [(1, r"z3=[\d.]+"), (2, r"z3=[\d.]+\+lemmas")])
def test_rewrites_say_that_they_are_partial_how_they_are_proved_and_what_was_mended(layers: int, solver: str) -> None:
    _, shop, found = pyramid(layers)
    (rewrite,) = shop.rewrites(found.trace, found)
    assert rewrite.kind == "partial"
    assert rewrite.detail.endswith(" images on one canvas, with gaps. Nothing is mended.")
    assert re.fullmatch(rf"unbounded {solver} digest={rewrite.rule_digest}", rewrite.proof)
    assert (rewrite.measured_us_before or 0) > (rewrite.measured_us_after or 0)
    assert rewrite.predicted_us_before is not None


class MoreIsFaster:
    """A clock by which every convolution makes a graph faster, so that recomputing pays."""

    def time(self, subjects: Sequence[RegionSubject], seconds: float, tell=None, **_) -> list[float | None]:
        return [1.0 / (1 + operators(onnx.load_from_string(s.model()), "Conv")) for s in subjects]


def test_corrections_are_part_of_the_rule_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(tiles,)))
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"], **WINDOW)]
    weights = {"k": np.random.default_rng(0).standard_normal((2, CHANNELS, 3, 3))}
    proto = model(nodes, {"x": [1, CHANNELS, 24, 5]}, weights, {"y": [1, 2, 24, 5]})
    operations = Coefficients({Column("convolution", "operation"): 1e-9})
    shop, found = hunted(proto, clock=MoreIsFaster(), coefficients=operations)
    (rewrite,) = shop.rewrites(found.trace, found)
    assert rewrite.kind == "partial"
    told = r"\d tiles of axis 2 as a batch. [1-9][\d.]+% of the results are mended, in [1-9] boxes."
    assert re.fullmatch(told, rewrite.detail)
    after = built(shop, found)
    assert operators(after, "Conv") > 1
    assert_same_outputs(proto, after)


def test_siamese_branches_are_joined() -> None:
    """By any family."""
    proto = head(((5, 5), (5, 5)))
    shop, found = hunted(proto)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    assert_same_outputs(proto, after)


@pytest.mark.usefixtures("canvases_only")
def test_heads_that_differ_in_their_weights_alone_share_a_rule() -> None:
    """One program, looked at once; both places are rewritten."""
    rng = np.random.default_rng(0)
    weights = {f"k{n}": rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) for n in range(2)}
    shapes = {f"{n}{m}": [1, CHANNELS, *LEVELS[m]] for n in range(2) for m in range(2)}
    nodes = [helper.make_node("Conv", [f"x{k}", f"k{k[0]}"], [f"y{k}"], **WINDOW) for k in shapes]
    proto = model(nodes, {f"x{k}": s for k, s in shapes.items()}, weights, {f"y{k}": s for k, s in shapes.items()})
    shop, found = hunted(proto)
    assert len(found.trace) == 2
    assert len({step.rule for record in found.trace for step in record.steps}) == 1
    assert len({record.kind for record in found.trace}) == 1
    after = built(shop, found)
    assert operators(after, "Conv") == 2
    assert_same_outputs(proto, after)


def over_barriers() -> onnx.ModelProto:
    """Images that lie behind operators that superopt does not know."""
    nodes = [
        helper.make_node("Softsign", ["x1"], ["s1"]),
        helper.make_node("Conv", ["x0", "k"], ["y0"], **WINDOW),
        helper.make_node("Conv", ["s1", "k"], ["y1"], **WINDOW),
    ]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    ports = [{f"{v}{k}": [1, CHANNELS, *LEVELS[k]] for k in range(2)} for v in "xy"]
    return model(nodes, ports[0], weights, ports[1])


@pytest.mark.usefixtures("canvases_only")
def test_a_program_may_reach_over_several_regions() -> None:
    proto = over_barriers()
    shop, found = hunted(proto)
    rewriter = Rewriter(REGISTRY, 17, Vocabulary())
    piece = piece_of(normalize(parse(proto.SerializeToString())).graph, rewriter.constants)
    regions = cut(piece, lambda node: not isinstance(rewriter.reader.read(node), str))
    assert all(sum(n.op == "Conv" for n in region.members) < 2 for region in regions)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    assert_same_outputs(proto, after)


def in_a_row(between: str) -> onnx.ModelProto:
    """The second image of a head is computed from what the head makes of the first."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["y0"], **WINDOW),
        helper.make_node(between, ["y0"], ["z"]),
        helper.make_node("Conv", ["z", "k"], ["y1"], **WINDOW),
    ]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3)) / 6}
    shape = [1, CHANNELS, 5, 5]
    return model(nodes, {"x": shape}, weights, {"y0": shape, "y1": shape})


@pytest.mark.usefixtures("canvases_only")
@pytest.mark.parametrize("between", ["Softsign", "Abs"])
def test_nodes_that_are_no_region_are_left_alone(between: str) -> None:
    proto = in_a_row(between)
    shop, found = hunted(proto)
    assert not found.trace
    assert_same_outputs(proto, built(shop, found))


def test_without_seconds_for_them_there_are_none() -> None:
    shop, found = hunted(head(), partial=0.0)
    assert not found.trace
    assert not shop.book.digests
    assert found.mutated.programs == found.mutated.mutants == 0


@pytest.mark.parametrize(
    ("options", "share", "seconds"),
    [({}, 1.0, PARTIAL * 10), ({"partial": False}, 1.0, 0.0), ({}, 0.3, 0.0)],
)
def test_the_option_and_the_share_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, options: dict, share: float, seconds: float
) -> None:
    """A second search, of standard operators alone, has the mutants that the first one found."""
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: PRIORS)
    opened = parse(head().SerializeToString())
    asked: list[Budget] = []

    class Asked(Workshop):
        def hunt(self, timer, predictor, sizes, budget, tell, ending=None):
            asked.append(budget)
            return Hunted(), None

    given = Options.of(target="cpu", threads=1, budget=10.0, **options)
    trial = Trial(opened, given, lambda *_: None)
    with Ground(trial, given, lambda *_: None, Ending()) as ground:
        ground.hunt(Asked(opened, opened.graph, small_book(), Vocabulary()), share)
    assert [budget.partial for budget in asked] == [seconds]


@pytest.mark.usefixtures("canvases_only")
def test_nothing_competes_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unknowing(rule, *_, **__) -> Verdict:
        asked.append(rule.name)
        return Verdict("unknown", "no idea", 0, 0.0)

    monkeypatch.setattr("superopt.partial.proofs.prove", unknowing)
    for layers in (1, 2):
        shop, found = hunted(head(LEVELS[:2], layers))
        assert asked
        assert found.mutated.timed > 0
        assert not found.mutated.rules
        assert not shop.book.digests
        assert not found.trace
        asked.clear()


def test_an_end_that_is_asked_for_ends_this_too() -> None:
    proto = head()
    opened = parse(proto.SerializeToString())
    shop = Workshop(opened, normalize(opened).graph, small_book(), Vocabulary())
    clock = Counting()
    budget = Budget(60, 60, 100, 1.05, 1 << 20, partial=60.0)
    found, _ = shop.hunt(clock, Predictor(), {}, budget, lambda *_: None, Ending(is_asked=lambda: True))  # pyright: ignore[reportArgumentType]
    assert (found.trace, found.mutated.programs, clock.asked) == ([], 0, 0)


@pytest.mark.usefixtures("canvases_only")
def test_bugs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where test and proof do not find the same positions, the mutant is thrown away, and that is a note."""

    def disagreeing(*_, **__):
        raise Disagreement("y[0, 0, 2, 1] is wrong by test, not by proof")

    monkeypatch.setattr("superopt.partial.corrected.wrong", disagreeing)
    _, found = hunted(head(LEVELS[:2]))
    assert not found.mutated.rules
    assert "a mutant was thrown away, because its two tests disagree: canvas: y[0, 0, 2, 1] " in found.notes[0]


def test_rules_of_a_file_need_no_prover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto, _, found = pyramid(2)
    file = tmp_path / "mutants.rules"
    file.write_text("\n".join(format_rule(rule) for rule in found.mutated.rules.values()))

    def forbidden(*_, **__):
        raise AssertionError("nothing is proved here")

    monkeypatch.setattr("superopt.partial.proofs.prove", forbidden)
    shop, again = hunted(proto, *read_rules(file), partial=0.0)
    assert again.trace[0].steps == found.trace[0].steps
    (rewrite,) = shop.rewrites(again.trace, again)
    assert (rewrite.kind, "+lemmas" in rewrite.proof) == ("partial", True)
    assert not mutants_used(again.trace, again.mutated.rules, shop.book.digests)
    assert_same_outputs(proto, built(shop, again))
    book = open_rulebook([file])
    assert found.mutated.rules.keys() <= book.digests.keys()


WITHOUT_PROVER = """
    import sys
    sys.modules["z3"] = None
    from tests.search.heads import head, hunted
    _, found = hunted(head())
    assert not found.trace and not found.mutated.rules
    print(*found.notes)
"""


def test_without_a_prover_the_search_goes_on_and_says_so() -> None:
    code = textwrap.dedent(WITHOUT_PROVER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no mutants were made, because they could not be proved: ")
    assert "z3" in done.stdout


@pytest.mark.usefixtures("canvases_only")
def test_bodies_have_mutants_of_their_own() -> None:
    shapes = [[1, CHANNELS, *size] for size in LEVELS[:2]]
    outs = [helper.make_tensor_value_info(f"c{k}", TensorProto.FLOAT, s) for k, s in enumerate(shapes)]
    convolved = [helper.make_node("Conv", [f"x{k}", "k"], [f"c{k}"], **WINDOW) for k in range(2)]
    rectified = [helper.make_node("Relu", [f"x{k}"], [f"c{k}"]) for k in range(2)]
    one, other = (helper.make_graph(nodes, "body", [], outs) for nodes in (convolved, rectified))
    fork = helper.make_node("If", ["c"], ["y0", "y1"], name="fork", then_branch=one, else_branch=other)
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    ports = [{f"{v}{k}": s for k, s in enumerate(shapes)} for v in "xy"]
    proto = model([fork], ports[0], weights, ports[1])
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    shop, found = hunted(proto)
    assert [record.where for record in found.trace] == ["fork/then_branch/"]
    after = built(shop, found)
    (body,) = [a.g for a in after.graph.node[0].attribute if a.name == "then_branch"]
    assert sum(n.op_type == "Conv" for n in body.node) == 1
    assert_same_outputs(proto, after)


@pytest.mark.usefixtures("canvases_only")
def test_an_open_batch_stays_open() -> None:
    """Levels of one input share its batch, whatever that will be; of inputs of their own nobody knows that."""
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [helper.make_node("MaxPool", ["x"], ["x1"], **window)]
    nodes += [helper.make_node("Conv", [x, "k"], [y], **WINDOW) for x, y in (("x", "y0"), ("x1", "y1"))]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    outputs = {"y0": ["n", CHANNELS, 6, 8], "y1": ["n", CHANNELS, 3, 4]}
    proto = model(nodes, {"x": ["n", CHANNELS, 6, 8]}, weights, outputs)
    shop, found = hunted(proto)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    for batch in (0, 1, 3):
        assert_same_outputs(proto, after, batch)
    assert not hunted(head(LEVELS[:2], batch="n"))[1].trace


@pytest.mark.parametrize(
    ("proto", "found", "tolerance"),
    [
        (head(LEVELS[:2], 2, dtype=np.float16), True, 2e-2),
        (head(LEVELS[:2], 2, weights_are_inputs=True), True, 1e-5),
        (head(LEVELS[:2], 2, between=("Sigmoid", "Tanh")), True, 1e-5),
        (head(LEVELS[:2], biases=2), False, 1e-5),
        (head(LEVELS[:2], batch=0), False, 1e-5),
    ],
    ids=["half precision", "weights are inputs", "functions that move zero", "unlike biases", "no images"],
)
@pytest.mark.usefixtures("canvases_only")
def test_heads_of_all_sorts(proto: onnx.ModelProto, found: bool, tolerance: float) -> None:
    shop, hunt = hunted(proto)
    assert bool(hunt.trace) is found
    assert_same_outputs(proto, built(shop, hunt), tolerance=tolerance)


@pytest.mark.slow
def test_a_whole_run_tells_of_its_mutants_and_is_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From load to report with the check and the files as they are; only the clock is another."""
    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))
    for share in ("PARTIAL", "MEASURE"):
        monkeypatch.setattr(f"superopt.search.hunting.{share}", 1000.0)
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: DEVICE)
    monkeypatch.setattr("superopt.search.hunting.RegionTimer", lambda *_: Counting())
    monkeypatch.setattr("superopt.search.optimize._Run._accepts", lambda *_: True)
    for module in ("optimize", "audit"):
        monkeypatch.setattr(f"superopt.search.{module}.open_rulebook", lambda *_: small_book())
    source, out, told = (tmp_path / name for name in ("in.onnx", "out.onnx", "report.json"))
    source.write_bytes(head(LEVELS[:2], 2).SerializeToString())
    where = Destination(tmp_path / "staged", "out.onnx", "out.onnx.data", False)
    options = Options.of(target="cpu", threads=1, budget=0.3)
    outcome = optimize_model(source, where, options, lambda *_: None, lambda *_: None)
    report = outcome.report
    assert report.check.status == "equal"
    (rewrite,) = [r for r in report.rewrites if r.kind == "partial"]
    assert [m.name for m in report.mutants] == [rewrite.name]
    search = report.search
    assert search is not None
    assert search.programs > 1
    assert search.mutants >= search.mutants_timed >= search.mutants_proved > 0
    assert search.mutating_seconds > 0
    out.write_bytes(outcome.written.path.read_bytes())
    told.write_text(report.model_dump_json())
    found = audit(source, out, told, (), (), lambda *_: None)
    assert found.confirmed, found.problems
    assert "1 mutant with its corrections was proved again" in found.notes
