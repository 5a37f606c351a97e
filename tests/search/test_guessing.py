# pyright: basic
"""Whole graphs without asking the clock of single regions: everything fused, everything that is predicted to pay."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.cost.predict import Predictor
from superopt.ir.onnx import encode, parse
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.runtime.deployment import Deployment
from superopt.search.hunted import FORESEEN, FUSED, STAYING, Budget
from superopt.search.variants import guessed
from superopt.search.workshop import Workshop
from tests.search.clocks import Counting
from tests.search.test_hunt import BOOK, WIDTH, lora, outputs

pytestmark = pytest.mark.ort


class Slow(Counting):
    """A device whose sessions take seconds to open; its clock finds that fewer nodes take longer."""

    deployment = Deployment("cuda")


def searched(clock: Counting, layers: int = 3, **limits):
    proto = lora(layers)
    model = parse(proto.SerializeToString())
    shop = Workshop(model, normalize(model).graph, BOOK, Vocabulary(contrib=True))
    budget = Budget(**{"search": 60, "measure": 60, "candidates": 100, "alpha": 1.05, "growth": 1 << 20, **limits})
    found, _ = shop.hunt(clock, Predictor({"n": 16}), {"n": 16}, budget, lambda *_: None)  # pyright: ignore[reportArgumentType]
    return proto, shop, found


def products(graph) -> int:
    return sum(node.op in ("MatMul", "Gemm") or node.domain != "" for node in graph.nodes)


def test_where_sessions_open_slowly_all_that_is_predicted_to_pay_is_a_variant_whatever_regions_told() -> None:
    proto, shop, found = searched(Slow(beside=1.0, sign=-1))
    assert not found.gains, "the clock refused every region"
    assert set(found.guesses) == {FUSED, FORESEEN}
    graph, made, notes = shop.build(found.guesses[FORESEEN], strict=True)
    assert not notes
    assert made
    assert products(graph) == 3 < products(shop.tidied)
    x = np.random.default_rng(1).standard_normal((5, WIDTH)).astype(np.float32)
    result = outputs(encode(shop.model, graph).SerializeToString(), x)
    np.testing.assert_allclose(result, outputs(proto.SerializeToString(), x), rtol=2e-4, atol=2e-5)


def test_it_is_a_guess_that_must_be_faster_beyond_doubt() -> None:
    _, shop, found = searched(Slow(beside=1.0, sign=-1))
    variants = list(guessed(shop, (), found, []))
    assert FUSED in {v.name for v in variants}
    assert all(v.is_guess for v in variants)
    assert not list(guessed(shop, (), found, variants)), "what is there already is no other variant"


def test_a_small_model_on_a_cpu_needs_no_guesses() -> None:
    _, _, found = searched(Counting())
    assert not found.guesses


def test_a_large_one_has_everything_fused_and_what_moves_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.guessing.LARGE", 0.0)
    _, _, found = searched(Counting())
    assert set(found.guesses) == {FUSED, STAYING}


def test_regions_of_a_guess_have_numbers_of_their_own() -> None:
    _, _, found = searched(Slow())
    numbers = [{record.kind for record in trace} for trace in (found.trace, *found.guesses.values())]
    assert all(numbers)
    assert sum(map(len, numbers)) == len(set().union(*numbers))


def test_a_guess_whose_weights_grow_too_much_is_none() -> None:
    _, _, found = searched(Slow(), growth=-(1 << 30))
    assert not found.guesses
