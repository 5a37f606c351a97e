# pyright: basic
"""Elements of 16 bits between casts to float32 and back: rules see through those two casts, and through no others."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.errors import BadInput
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import model
from tests.rewrite.taking import REGISTRY, difference, opened, rules, run

pytestmark = pytest.mark.ort

RMS = "rms-norm-of-halves-by-pow-reciprocal-to-simplified"
X = (np.random.default_rng(1).standard_normal((3, 8)) * 40).astype(np.float16)
G = np.linspace(0.5, 2, 8).astype(np.float16)


def llama(
    there: int = 1, back: int = 10, given: str = "float16", result: str = "float16", wide: str = "float"
) -> bytes:
    """RMSNorm as the sources of Llama and T5 have it."""
    body = f"""
        w = Cast<to={there}>(x) p = Pow(w, two) m = ReduceMean<axes=[-1], keepdims=1>(p) a = Add(m, eps)
        r = Sqrt(a) i = Reciprocal(r) n = Mul(w, i) c = Cast<to={back}>(n) y = Mul(g, c)"""
    kind = {"float": np.float32, "double": np.float64}[wide]
    scale = G.astype({"float16": np.float16, "float": np.float32}.get(result, np.float16))
    two, eps = np.asarray(2, kind), np.asarray(1e-6, kind)
    if result == "bfloat16":
        return model(f"g ({given}[3, 8] x, bfloat16[8] g) => (bfloat16[3, 8] y) {{ {body} }}", two=two, eps=eps)
    return model(f"g ({given}[3, 8] x) => ({result}[3, 8] y) {{ {body} }}", two=two, eps=eps, g=scale)


def found(data: bytes, rules_: Rules) -> list[bytes]:
    start = opened(data, Vocabulary())
    return [start.exported(start.take(start.piece, match)) for match in start.matches(start.piece, rules_)]


def test_a_norm_in_float32_of_halves_is_one_kernel_that_gives_the_same() -> None:
    data = llama()
    (after,) = found(data, rules(RMS))
    before, now = run(data, {"x": X}), run(after, {"x": X})
    assert now[0].dtype == np.float16
    assert not difference(before, now)
    assert opened(after).model.graph.nodes[-1].op == "SimplifiedLayerNormalization"
    large = np.full((3, 8), 60000, np.float16)  # whose squares float16 does not hold
    assert not difference(run(data, {"x": large}), run(after, {"x": large}))


def test_bfloat16_is_as_narrow() -> None:
    assert len(found(llama(back=16, given="bfloat16", result="bfloat16"), rules(RMS))) == 1


@pytest.mark.parametrize(
    "data",
    [
        llama(there=11, wide="double"),  # somebody wanted more digits
        llama(back=1, result="float"),  # the result stays wide
        llama(back=16, result="bfloat16"),  # and comes back as something else
        llama(given="double", back=10),  # from a type with more digits
    ],
    ids=["through doubles", "not back", "back to another", "from doubles"],
)
def test_other_casts_are_not_seen_through(data: bytes) -> None:
    assert not found(data, rules(RMS))


def test_softmax() -> None:
    body = "w = Cast<to=1>(x) s = Softmax<axis=-1>(w) y = Cast<to=10>(s)"
    data = model(f"g (float16[3, 8] x) => (float16[3, 8] y) {{ {body} }}")
    (after,) = found(data, rules("softmax-of-halves"))
    assert [node.op for node in opened(after).model.graph.nodes] == ["Softmax"]
    assert not difference(run(data, {"x": X}), run(after, {"x": X}))


def test_what_is_between_the_casts_has_no_inputs_of_its_own() -> None:
    text = (
        'rule r\n  given x: [n]  z: [n]\n  y = Cast(Mul(Cast(x, to="wider"), z), to="narrower")\n  =>\n  y = Mul(x, z)'
    )
    with pytest.raises(BadInput, match="between a cast to a wider type"):
        Rules(parse_rules(text), REGISTRY)


def test_a_right_side_may_cast_too() -> None:
    text = (
        'rule r\n  given x: [n]\n  y = Mul(x, x)\n  =>\n  w = Cast(x, to="wider")\n  y = Cast(Pow(w, 2), to="narrower")'
    )
    data = model("g (float16[8] x) => (float16[8] y) { y = Mul(x, x) }")
    (after,) = found(data, Rules(parse_rules(text), REGISTRY))
    assert [node.op for node in opened(after).model.graph.nodes] == ["Cast", "Pow", "Cast"]
    assert not difference(run(data, {"x": X[0]}), run(after, {"x": X[0]}))
