# pyright: basic
"""Mended mutants as rules: matched in a model, written into it, run by onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.partial.corrected import corrected_mutants, corrections
from superopt.partial.families import canvases, tiles
from superopt.partial.lift import originals
from superopt.partial.program import shapes
from superopt.partial.proofs import Proofs
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.rule import Rule
from tests.partial.programs import DRAWN, REGISTRY
from tests.partial.test_families import some_mutants
from tests.partial.test_mending import TALL, operators
from tests.rewrite.instances import instances
from tests.rewrite.taking import checked, difference, opened, run

pytestmark = [pytest.mark.ort, pytest.mark.smt]


def assert_same_in_a_model(rule: Rule, seed: int) -> bool:
    """Whether there is a model that the rule was written into, which then gives the same."""
    if not compile_pattern(rule, REGISTRY).roots:
        return False  # programs whose results share nothing are not looked for in models
    for made in instances(rule, REGISTRY, 17, seed=seed):
        model = opened(made.data)
        matches = model.matches(model.piece, Rules([rule], REGISTRY))
        assert matches, rule.doc
        after = model.exported(model.take(model.piece, matches[0]))
        assert not checked(after)
        assert not difference(run(made.data, made.feeds, optimized=False), run(after, made.feeds, optimized=False))
        return True
    return False


@pytest.mark.parametrize("name", DRAWN)
def test_the_rewritten_model_gives_the_same(name: str) -> None:
    proofs = Proofs(REGISTRY, seconds=60)
    for seed in range(20, 30):
        found = [c.rule for m in some_mutants(name, seed) for c in corrections(m, proofs, share=1.0)]
        tried = [assert_same_in_a_model(rule, seed) for rule in found]
        if any(tried):
            return
    pytest.fail("nothing was proved")


def test_a_model_may_choose_by_a_mask() -> None:
    (mutant, *_) = tiles(TALL, shapes(TALL, REGISTRY), REGISTRY)
    found = {operators(c.rule)[-1]: c.rule for c in corrections(mutant, Proofs(REGISTRY))}
    assert found.keys() == {"Concat", "Where"}
    assert assert_same_in_a_model(found["Where"], 0)


def pyramid(layers: int) -> bytes:
    """A head of some layers on three levels."""
    rng = np.random.default_rng(0)
    weights = {f"k{n}": rng.standard_normal((4, 4, 3, 3)) / 6 for n in range(layers)}
    weights |= {f"b{n}": rng.standard_normal(4) for n in range(layers)}
    sizes = [(12, 16), (6, 8), (3, 4)]
    nodes = []
    for level in range(3):
        value = f"x{level}"
        for n in range(layers):
            is_last = n == layers - 1
            made = f"y{level}" if is_last else f"c{level}{n}"
            nodes.append(helper.make_node("Conv", [value, f"k{n}", f"b{n}"], [made], pads=[1] * 4))
            if not is_last:
                nodes.append(helper.make_node("Relu", [made], [f"r{level}{n}"]))
            value = f"r{level}{n}"
    infos = [[helper.make_tensor_value_info(f"{v}{k}", TensorProto.FLOAT, [1, 4, *s]) for k, s in enumerate(sizes)]
             for v in "xy"]  # fmt: skip
    tensors = [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "head", infos[0], infos[1], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def test_a_shared_head_is_found_in_a_model_and_put_on_one_canvas() -> None:
    data = pyramid(3)
    model = opened(data)
    (head, *_) = originals(model.piece, model.rewriter)
    assert len(head.steps) == 15
    found = next(corrected_mutants(head, REGISTRY, families=(canvases,)))
    (taken,) = model.matches(model.piece, Rules([found.rule], REGISTRY))
    piece = model.take(model.piece, taken)
    assert sum(node.op == "Conv" for node in piece.nodes) == 3
    rng = np.random.default_rng(1)
    feeds = {
        f"x{k}": rng.standard_normal((1, 4, *s)).astype(np.float32) for k, s in enumerate([(12, 16), (6, 8), (3, 4)])
    }
    assert not difference(run(data, feeds), run(model.exported(piece), feeds))


def test_a_nan_at_the_border_of_an_image_stays_in_its_own_image() -> None:
    """Where images lie on one canvas, what is no number in one must not reach another through a gap."""
    data = pyramid(3)
    model = opened(data)
    (head, *_) = originals(model.piece, model.rewriter)
    found = next(corrected_mutants(head, REGISTRY, families=(canvases,)))
    (taken, *_) = model.matches(model.piece, Rules([found.rule], REGISTRY))
    after = model.exported(model.take(model.piece, taken))
    rng = np.random.default_rng(2)
    sizes = [(12, 16), (6, 8), (3, 4)]
    for spoiled in range(3):
        feeds = {f"x{k}": rng.standard_normal((1, 4, *s)).astype(np.float32) for k, s in enumerate(sizes)}
        for edge in (np.s_[..., 0, :], np.s_[..., -1, :], np.s_[..., 0], np.s_[..., -1]):
            feeds[f"x{spoiled}"][edge] = np.nan
        results = run(after, feeds)
        for k, (before, now) in enumerate(zip(run(data, feeds), results, strict=True)):
            assert np.array_equal(np.isnan(before), np.isnan(now)), k
