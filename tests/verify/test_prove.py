"""Rules that must be proved, and rules that must not."""

from __future__ import annotations

from pathlib import Path

import pytest

import specs
from superopt.errors import BadInput
from superopt.rewrite.text import parse_rules
from superopt.verify.prove import prove
from tests.verify.sides import verdict

pytestmark = pytest.mark.smt

TRUE = {
    "associativity, any batch": """
        given x: [...b, m, k]  y: [k, n]  z: [n, p]
        o = MatMul(MatMul(x, y), z)
        =>
        o = MatMul(x, MatMul(y, z))""",
    "sum over two operands is one product": """
        given x: [m, k]  y: [k, n]  u: [m, l]  v: [l, n]
        o = Add(MatMul(x, y), MatMul(u, v))
        =>
        o = MatMul(Concat(x, u, axis=1), Concat(y, v, axis=0))""",
    "a smaller kernel is a larger one with zeros": """
        given x: [n, c, h, w]  k: [o, c, 1, 1]  s: int  t: int
        where s >= 1, t >= 1
        y = Conv(x, k, strides=[s, t])
        =>
        y = Conv(x, Pad(k, pads=[0, 0, 1, 1, 0, 0, 1, 1]), strides=[s, t], pads=[1, 1, 1, 1])""",
    "softmax does not see a shift": """
        given x: [m, n]  c: [m, 1]
        where finite
        y = Softmax(Add(x, c), axis=1)
        =>
        y = Softmax(x, axis=1)""",
    "a scale that is not negative": """
        given x: [...b]  c: real
        where c >= 0
        y = Relu(Mul(x, c))
        =>
        y = Mul(Relu(x), c)""",
    "relu twice": """
        given x: [...b]
        y = Relu(Relu(x))
        =>
        y = Relu(x)""",
    "variance two ways": """
        given x: [m, n]
        d = Sub(x, ReduceMean(x, axes=[1]))
        y = ReduceMean(Mul(d, d), axes=[1])
        =>
        e = ReduceMean(x, axes=[1])
        y = Sub(ReduceMean(Mul(x, x), axes=[1]), Mul(e, e))""",
    "heads split and merged": """
        given x: [b, s, n*h]
        y = Reshape(Reshape(x, shape=[b, s, n, h]), shape=[b, s, n*h])
        =>
        y = x""",
    "max of a concatenation": """
        given x: [m, n]  y: [m, p]
        z = ReduceMax(Concat(x, y, axis=1), axes=[1])
        =>
        z = Max(ReduceMax(x, axes=[1]), ReduceMax(y, axes=[1]))""",
}

FALSE = {
    "relu is not additive": """
        given x: [n]  y: [n]
        z = Relu(Add(x, y))
        =>
        z = Add(Relu(x), Relu(y))""",
    "division by what may be zero": """
        given x: [n]  y: [n]
        z = Div(Mul(x, y), y)
        =>
        z = x""",
    "softmax sees a shift along its axis": """
        given x: [m, n]  c: [m, 1]
        y = Softmax(Add(x, c), axis=0)
        =>
        y = Softmax(x, axis=0)""",
    "no sizes satisfy the conditions": """
        given x: [n]
        where n >= 3, n <= 2
        y = Relu(x)
        =>
        y = Relu(Relu(x))""",
    "a NaN that gets lost, and nothing says so": """
        given x: [n]
        y = Sub(x, x)
        =>
        y = Expand(0.0, shape=[n])""",
    "a scale that may be negative": """
        given x: [n]  c: real
        y = Relu(Mul(x, c))
        =>
        y = Mul(Relu(x), c)""",
    "groups do not merge": """
        given x: [n, c, h, w]  k1: [o1, d, r, s]  k2: [o2, d, r, s]
        y1 = Conv(x, k1, *a)
        y2 = Conv(x, k2, *a)
        =>
        y = Conv(x, Concat(k1, k2, axis=0), *a)
        y1, y2 = Split(y, split=[o1, o2], axis=1)""",
    "the right side is not always legal": """
        given x: [n]  y: [m]
        z = Add(Relu(x), Relu(y))
        =>
        z = Relu(Concat(x, y, axis=0))""",
    "a reshape that reorders": """
        given x: [m, n]
        y = Reshape(x, shape=[n, m])
        =>
        y = Transpose(x, perm=[1, 0])""",
}


@pytest.mark.parametrize("name", TRUE)
def test_true_rules_are_proved_for_all_sizes(name: str) -> None:
    found = verdict(TRUE[name])
    assert found.status == "proved", found.reason


@pytest.mark.parametrize("name", FALSE)
def test_false_rules_are_refuted_with_a_reason(name: str) -> None:
    found = verdict(FALSE[name])
    assert found.status == "refuted"
    assert found.reason


def test_a_condition_on_nothing_is_an_error() -> None:
    with pytest.raises(BadInput, match="nothing is called m"):
        verdict("""
            given x: [n]
            where m >= 2
            y = Relu(Relu(x))
            =>
            y = Relu(x)""")


@pytest.mark.parametrize(("call", "said"), [("Conv(x)", "needs 'w'"), ("Relu(x, slope=1)", "no argument 'slope'")])
def test_a_call_that_its_operator_does_not_allow_is_an_error(call: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        verdict(f"""
            given x: [n, c, h, w]
            y = {call}
            =>
            y = x""")


def test_an_operator_is_one_new_file(tmp_path: Path) -> None:
    """A definition in a folder takes part in proofs like any other."""
    (tmp_path / "double_it.py").write_text(
        "from superopt.ops.draws import unary\n"
        "from superopt.ops.formula import elementwise\n"
        "from superopt.ops.registry import operator\n"
        "@operator('DoubleIt', domain='test.verify', since=1, draw=unary)\n"
        "def double_it(x):\n"
        "    return elementwise(lambda e: e + e, x)\n".replace("\\\n", "\n")
    )
    registry = specs.load(tmp_path)
    true, false = parse_rules(
        "rule doubled\n  given x: [...b]\n  y = test.verify::DoubleIt(x)\n  =>\n  y = Mul(x, 2)\n"
        "rule tripled\n  given x: [...b]\n  y = test.verify::DoubleIt(x)\n  =>\n  y = Mul(x, 3)\n"
    )
    assert prove(true, registry).status == "proved"
    assert prove(false, registry).status == "refuted"
