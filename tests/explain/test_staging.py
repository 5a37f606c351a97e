# pyright: basic
"""A scene: what a page draws, as data, bounded and harmless."""

from __future__ import annotations

import json

import pytest
from onnx import parser

from superopt.explain import staging
from superopt.explain.scene import Picture, Scene
from superopt.explain.staging import stage
from superopt.ir.onnx import parse
from tests.explain.pages import report
from tests.explain.test_page import BASE, EVIL, between, deep, model, rewrite, tidied

pytestmark = pytest.mark.unit


def kinds(picture: Picture | None) -> list[str]:
    assert picture is not None
    return sorted(box.kind for box in picture.boxes)


def test_both_graphs_with_what_changed() -> None:
    scene = stage(report([rewrite()]), tidied())
    assert scene.returned
    assert kinds(scene.before) == ["changed", "removed", "value", "value"]
    assert kinds(scene.after) == ["changed", "value", "value"]
    assert scene.before is not None
    assert {box.region for box in scene.before.boxes if box.kind != "value"} == {1}
    (region,) = scene.regions
    assert (region.number, region.removed, region.added, region.changed, region.like) == (1, 1, 0, 1, None)
    assert [(rule.name, rule.count) for rule in region.rules] == [("identity", 1)]
    assert any(line.startswith("- a: ") and "Identity(x)" in line for line in region.lines)
    assert kinds(region.before) == ["changed", "removed", "value", "value"]
    assert scene.note == ""


def test_boxes_lie_inside_and_apart_and_lines_lead_down() -> None:
    scene = stage(report([]), between(model(deep(60, 7, "Exp")), model(deep(60, 7, "Abs"))))
    assert scene.before is not None
    for box in scene.before.boxes:
        assert box.x >= -1
        assert box.x + box.width <= scene.before.width + 1
        assert box.y + box.height <= scene.before.height + 1
    for line in scene.before.lines:
        source, target = scene.before.boxes[line.source], scene.before.boxes[line.target]
        assert source.y + source.height <= target.y
        assert line.path.startswith("M")


def test_what_each_rule_gained_is_told_without_a_candidate() -> None:
    timed = rewrite("fast", "p", kind="rule", region=1, nodes=["a"], measured_us_before=50, measured_us_after=35)
    scene = stage(report([rewrite(), timed]), None, "the graphs could not be drawn: too large")
    assert [(r.name, r.gained_us, r.measured) for r in scene.rules] == [("fast", 15.0, True), ("identity", None, True)]
    assert (scene.before, scene.after, scene.regions) == (None, None, [])
    assert scene.note == "the graphs could not be drawn: too large"


def test_the_same_graphs_have_nothing_to_show() -> None:
    scene = stage(report([]), between(model(BASE), model(BASE)))
    assert (scene.before, scene.after, scene.regions, scene.note) == (None, None, [], "")


def test_hostile_names_are_harmless_and_short() -> None:
    proto = parser.parse_model(BASE)
    proto.graph.node[0].name = EVIL + "x" * 5000
    told = report([rewrite(EVIL, EVIL)])
    scene = stage(told, between(parse(proto.SerializeToString()), model(BASE.replace("Identity", "Neg"))))
    text = scene.model_dump_json()
    assert not set("\u202e\x07") & set(json.loads(text)["regions"][0]["place"])
    assert "\\u202e" not in text
    assert max(len(box.title) for box in (scene.before.boxes if scene.before else ())) <= staging.LONGEST
    assert Scene.model_validate_json(text) == scene


def test_too_much_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    difference = between(model(deep(200, 20, "Exp")), model(deep(200, 20, "Abs")))
    monkeypatch.setattr(staging, "MOST_WHOLE", 20)
    monkeypatch.setattr(staging, "MOST_BOXES", 13)
    monkeypatch.setattr(staging, "MOST_REGIONS", 5)
    scene = stage(report([]), difference)
    assert scene.before is None
    assert scene.after is None
    assert [region.before is not None for region in scene.regions] == [True, True, False, False, False]
    assert scene.note == "the graphs are too large to be drawn as a whole; 8 changed regions not drawn"


def test_a_region_inside_a_body_is_one_too() -> None:
    base = """<ir_version: 8, opset_import: ["" : 17]> g (bool c, float[2] x) => (float[2] y) {
      y = If(c) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] r) { r = Abs(x) }>
    }"""
    scene = stage(report([]), between(model(base), model(base.replace("Relu", "Exp"))))
    assert [region.place for region in scene.regions] == ["If:y", "If:y/then_branch/Relu:r"]
