"""Whether a NaN gets lost: found for each input, element by element, with work that does not grow with their square."""

from __future__ import annotations

from typing import Any

import pytest

from superopt.partial import lost
from superopt.partial.families import canvases
from superopt.partial.lost import loses_nan
from superopt.partial.program import GivenUp, Original, parse_original, shapes
from superopt.rewrite.text import parse_rules
from tests.partial.programs import REGISTRY

pytestmark = pytest.mark.unit

SUM = "y = Conv(Add(Add(a, b), c), k, pads=[1, 1])"


@pytest.mark.parametrize("name", ["a", "b", "c", "k"])
def test_an_input_that_one_side_does_not_read_is_found(name: str) -> None:
    shape = "[o, m, 3]" if name == "k" else "[n, m, 6]"
    given = "a: [n, m, 6]  b: [n, m, 6]  c: [n, m, 6]  k: [o, m, 3]"
    unread = SUM.replace(f"{name},", "z,").replace(f"{name})", "z)")
    right = f"  z = ConstantOfShape(input={shape}, value=1)\n  {unread}"
    (rule,) = parse_rules(f"rule r\n  given {given}\n  {SUM}\n  =>\n{right}\n")
    assert loses_nan(rule, REGISTRY)
    (same,) = parse_rules(f"rule r\n  given {given}\n  {SUM}\n  =>\n  {SUM}\n")
    assert not loses_nan(same, REGISTRY)


def test_a_nan_that_turns_up_elsewhere_is_lost_where_it_was() -> None:
    turned = "y = Slice(x, starts=[-1], ends=[-9], axes=[0], steps=[-1])"
    (rule,) = parse_rules(f"rule r\n  given x: [4]\n  y = Identity(x)\n  =>\n  {turned}\n")
    assert loses_nan(rule, REGISTRY)


def test_a_nan_of_one_result_is_none_of_another() -> None:
    left = "  y = Neg(x)\n  z = Neg(w)"
    right = "  y = Neg(x)\n  s = Sub(x, x)\n  z = ConstantOfShape(input=[4], value=0)"
    (rule,) = parse_rules(f"rule r\n  given x: [4]  w: [4]\n{left}\n  =>\n{right}\n")
    assert loses_nan(rule, REGISTRY)


def test_a_nan_may_reach_more_than_before() -> None:
    """Zeros around a kernel are multiplied by what was not read before."""
    (rule,) = parse_rules(
        """rule r
          given x: [n, c, 9]  k: [o, c, 1]
          y = Conv(x, k)
          =>
          p = Pad(k, pads=[0, 0, 1, 0, 0, 1])
          y = Conv(x, p, pads=[1, 1])
        """
    )
    assert not loses_nan(rule, REGISTRY)


def head(layers: int) -> Original:
    """On two images."""
    given = [f"k{n}: [c, c, 3] b{n}: [c]" for n in range(layers)]
    steps: list[str] = []
    for image, size in enumerate((9, 6)):
        given.append(f"x{image}: [n, c, {size}]")
        value = f"x{image}"
        for n in range(layers):
            steps += [f"a{image}_{n} = Conv({value}, k{n}, b{n}, pads=[1, 1])", f"r{image}_{n} = Relu(a{image}_{n})"]
            value = f"r{image}_{n}"
    return parse_original(" ".join(given), "\n".join(steps), {"n": 1, "c": 2})


def test_twice_as_many_layers_are_twice_as_much_to_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[None] = []
    evaluate = lost.evaluate

    def counted(*arguments: Any) -> Any:
        computed.append(None)
        return evaluate(*arguments)

    monkeypatch.setattr(lost, "evaluate", counted)
    counts: list[int] = []
    for layers in (6, 12, 24):
        computed.clear()
        original = head(layers)
        rule = next(canvases(original, shapes(original, REGISTRY), REGISTRY)).rule
        assert not loses_nan(rule, REGISTRY)
        counts.append(len(computed))
    assert counts[1] < 2.5 * counts[0]
    assert counts[2] < 2.5 * counts[1]


def test_what_is_forgotten_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "MOST_KEPT", 0)
    original = head(3)
    rule = next(canvases(original, shapes(original, REGISTRY), REGISTRY)).rule
    assert not loses_nan(rule, REGISTRY)


@pytest.mark.parametrize(
    ("given", "step"),
    [
        ("x: [n, c, 4, 4]  k: [o, c, 3, 3]", "y = Conv(x, k, pads=[1000000, 1000000, 1000000, 1000000])"),
        ("x: [n, 1000000]  k: [1000000, 1000000]", "y = MatMul(x, k)"),
        ("x: [1000000, 1000000]  k: [1]", "y = Slice(x, starts=[0], ends=[1], axes=[0])"),
    ],
    ids=["padding", "a product", "an input"],
)
def test_what_is_too_large_is_refused_before_it_is_run(given: str, step: str) -> None:
    (rule,) = parse_rules(f"rule r\n  given {given}\n  {step}\n  =>\n  {step}\n")
    with pytest.raises(GivenUp, match="too large to be run with a NaN"):
        loses_nan(rule, REGISTRY)


def test_and_so_is_what_becomes_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    original = head(3)
    rule = next(canvases(original, shapes(original, REGISTRY), REGISTRY)).rule
    monkeypatch.setattr(lost, "MOST_READ", 1000)
    with pytest.raises(GivenUp, match="too large to be run with a NaN"):
        loses_nan(rule, REGISTRY)
