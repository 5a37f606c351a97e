# pyright: basic
"""`superopt diff` in words."""

from __future__ import annotations

import pytest
from onnx import parser

from superopt.explain.difference import compare
from superopt.explain.summary import summarize
from superopt.explain.text import format_diff
from superopt.ir.onnx import parse
from superopt.report import DiffReport

pytestmark = pytest.mark.unit

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
BASE = f"{HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ a = Identity(x) y = Relu(a) }}"


def report(before: str, after: str) -> DiffReport:
    old, new = (parse(parser.parse_model(text).SerializeToString()) for text in (before, after))
    return summarize(old, new, compare(old.graph, new.graph))


def text(before: str, after: str, **how: bool) -> list[str]:
    return list(format_diff(report(before, after), **how))


def test_the_same_model() -> None:
    assert text(BASE, BASE) == [
        "--- model  2 nodes, ai.onnx 17",
        "+++ model  2 nodes, ai.onnx 17",
        "",
        "same structure: 2 nodes, none changed",
    ]


def test_a_region_is_a_listing() -> None:
    told = text(BASE, BASE.replace("a = Identity(x) y = Relu(a)", "y = Relu(x)"))
    assert told[3:5] == ["                  before         after", "Identity               1             0  -1"]
    assert "as many of: Relu 1" in told
    assert told[-5:] == [
        "",
        "@@ region 1, at Identity:a: 1 removed, 1 changed",
        "- a: float32[n, 3] = Identity(x)",
        "- y: float32[n, 3] = Relu(a)",
        "+ y: float32[n, 3] = Relu(x)",
    ]


def test_constants_are_told_once_when_both_have_them() -> None:
    base = f"{HEAD} g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{ y = Mul(x, w) }}"
    lines = report(base, base.replace("Mul(x, w)", "Mul(w, x)")).regions[0].lines
    assert lines == [
        "  w = float32[2] {1.0, 2.0}",
        "- y: float32[2] = Mul(x, w)",
        "+ y: float32[2] = Mul(w, x)",
    ]
    lines = report(base, base.replace("{1, 2}", "{1, 3}")).regions[0].lines
    assert [line for line in lines if "Mul" not in line] == [
        "- w = float32[2] {1.0, 2.0}",
        "+ w = float32[2] {1.0, 3.0}",
    ]


def layers(op: str) -> str:
    body = " ".join(f"a{i} = {op}(h{i}) h{i + 1} = Exp(a{i})" for i in range(4))
    return f"{HEAD} g (float[n] h0) => (float[n] h4) {{ {body} }}"


def test_regions_of_one_shape_are_listed_once_unless_all_are_wanted() -> None:
    told = text(layers("Neg"), layers("Abs"))
    assert sum("= Neg(" in line for line in told) == 1
    assert told[-1] == "@@ the same in region 2 at Neg:a1, 3 at Neg:a2, 4 at Neg:a3"
    assert sum("= Neg(" in line for line in text(layers("Neg"), layers("Abs"), every=True)) == 4


def test_versions_and_inputs_are_part_of_a_model() -> None:
    other = (
        BASE.replace('"" : 17', '"" : 18')
        .replace("ir_version: 8", "ir_version: 9")
        .replace("float[n, 3] x", "float[m, 3] x")
    )
    found = report(BASE, other)
    assert not found.same
    assert found.surroundings == [
        "- IR version 8", "+ IR version 9", "- opset ai.onnx 17", "+ opset ai.onnx 18",
        "- input x: float32[n, 3]", "+ input x: float32[m, 3]",
    ]  # fmt: skip
    assert not found.regions


def test_bodies_are_numbered_on_and_say_where_they_are() -> None:
    base = f"""{HEAD} g (bool c, float[2] x) => (float[2] y) {{
      y = If(c) <then_branch = t () => (float[2] r) {{ s = Neg(x) r = Relu(s) }},
                 else_branch = e () => (float[2] r) {{ r = Abs(x) }}>
    }}"""
    found = report(base, base.replace("Relu(s)", "Exp(s)"))
    assert [(region.number, region.place) for region in found.regions] == [
        (1, "If:y"),
        (2, "If:y/then_branch/Relu:r"),
    ]
    assert (found.kept, found.changed, found.removed, found.added) == (2, 1, 1, 1)


def test_names_cannot_command_a_terminal() -> None:
    model = parser.parse_model(BASE)
    model.graph.node[0].name = model.graph.node[0].output[0] = model.graph.node[1].input[0] = "\x1b[2J\r\n+ evil"
    old = parse(model.SerializeToString())
    new = parse(parser.parse_model(BASE.replace("Identity", "Neg")).SerializeToString())
    told = list(format_diff(summarize(old, new, compare(old.graph, new.graph))))
    assert all(line.isprintable() for line in told)
    assert any("evil" in line for line in told)
