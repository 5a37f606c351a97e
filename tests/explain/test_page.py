# pyright: basic
"""The page: whole, alone, and deaf to what a model's names want to tell it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex

import pytest
from onnx import helper, parser

from superopt.explain.command import reproduce
from superopt.explain.difference import Difference, compare
from superopt.explain.page import diff_page, report_page
from superopt.explain.summary import summarize
from superopt.ir.onnx import Model, parse
from superopt.report import Profile, Rewrite
from tests.explain.pages import Page, report

pytestmark = pytest.mark.unit

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
BASE = f"{HEAD} g (float[n, 3] x) => (float[n, 3] y) {{ a = Identity(x) y = Relu(a) }}"
EVIL = "</script></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x07"


def model(text: str) -> Model:
    return parse(parser.parse_model(text).SerializeToString())


def between(before: Model, after: Model) -> Difference:
    return compare(before.graph, after.graph)


def tidied(text: str = BASE) -> Difference:
    return between(model(text), model(text.replace("a = Identity(x) y = Relu(a)", "y = Relu(x)")))


def rewrite(name: str = "identity", place: str = "Identity:a", **more: object) -> Rewrite:
    return Rewrite.model_validate({"name": name, "place": place, "proof": "by definition", **more})


def test_the_page_stands_alone() -> None:
    text = report_page(report([rewrite()]), tidied(), {})
    page = Page(text)
    assert page.tags["script"] == page.tags["style"] == page.tags["html"] == 1
    assert not page.values("src")
    assert not page.values("style")
    assert all(href.startswith("#") for href in page.values("href"))
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    text = report_page(report([rewrite()]), tidied(), {})
    page = Page(text)
    (policy,) = [v for v in page.values("content") if v.startswith("default-src")]
    for kind, content in (("script-src", page.scripts), ("style-src", page.styles)):
        digest = base64.b64encode(hashlib.sha256("".join(content).encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_hostile_names_stay_names() -> None:
    proto = parser.parse_model(BASE)
    proto.graph.node[0].name = proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = EVIL
    proto.graph.input[0].name = proto.graph.node[0].input[0] = f"x{EVIL}"
    proto.graph.node.append(helper.make_node(EVIL, [EVIL], [f"z{EVIL}"], domain=EVIL, note=EVIL))
    proto.opset_import.append(helper.make_opsetid(EVIL, 1))
    before = parse(proto.SerializeToString())
    told = report(
        [rewrite(EVIL, EVIL, detail=EVIL, kind="rule", rule_digest=EVIL)],
        path=f"/models/{EVIL}", profile=Profile(before={EVIL: 3.0}, after={EVIL: 2.0}, runs=2, note=EVIL),
    )  # fmt: skip
    told = told.model_copy(update={"verdict": EVIL, "notes": [EVIL], "options": {EVIL: EVIL}})
    difference = between(before, model(BASE))
    pages = [
        report_page(told, difference, {EVIL: EVIL}),
        diff_page(summarize(before, model(BASE), difference), difference),
    ]
    for text in pages:
        page = Page(text)
        assert page.tags["script"] == 1
        assert page.tags["img"] == 0
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]
        assert "alert(1)" in page.text
        assert not set("\u202e\x07") & set(text)


def test_changed_nodes_are_lit_and_lead_to_their_region() -> None:
    page = Page(report_page(report([rewrite()]), tidied(), {}))
    classes = page.values("class")
    assert classes.count("n removed") == 2  # in the whole picture, and in the region
    assert classes.count("n changed") == 4
    assert page.values("href").count("#region-1") == 4  # three boxes and the index
    assert page.values("id").count("region-1") == 1


def test_a_region_names_the_rewrites_that_made_it_and_they_their_proofs() -> None:
    rules = {"gelu": "rule gelu\n  y = Gelu(x)"}
    used = [
        rewrite(),
        rewrite("gelu", "a", kind="rule", proof="unbounded z3=4 digest=abc", results=["a"], rule_digest="abc"),
    ]
    text = report_page(report(used), tidied(), rules)
    page = Page(text)
    assert page.values("class").count("chip") == 2
    assert {"#rule-1", "#rule-2"} <= set(page.values("href"))
    assert "unbounded z3=4 digest=abc" in page.text
    assert rules["gelu"] in page.text
    assert "by definition" in page.text


def test_every_anchor_leads_somewhere() -> None:
    page = Page(report_page(report([rewrite()]), tidied(), {}))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in page.values("href")} <= set(ids)


def test_the_waterfall_ends_at_the_time_after() -> None:
    told = report([
        rewrite(),
        rewrite("fast", "p", kind="rule", region=1, nodes=["a"], measured_us_before=500, measured_us_after=350),
        rewrite("slow", "q", kind="rule", region=2, nodes=["b"], predicted_us_before=40, predicted_us_after=50),
    ])  # fmt: skip
    page = Page(report_page(told, None, {}))
    words = [text for text in page.texts[page.texts.index("Microseconds per rule") :] if "µs" in text]
    assert words[:5] == ["1,000 µs", "−150 µs", "+10.0 µs", "−60.0 µs", "800 µs"]
    assert " 1 ×, predicted" in page.texts


def test_the_command_does_it_again() -> None:
    page = Page(report_page(report([], path="a model.onnx"), None, {}))
    (command,) = [text for text in page.texts if text.startswith("superopt optimize")]
    assert shlex.split(command) == [
        "superopt", "optimize", "a model.onnx", "-o", "out.onnx", "--seed", "3", "--shape", "x=1,3",
        "--rules", "my rules",
    ]  # fmt: skip


@pytest.mark.parametrize(("partial", "words"), [(True, []), (False, ["--no-partial"])])
def test_the_command_switches_mutants_off_where_they_were(partial: bool, words: list[str]) -> None:
    told = report([]).model_copy(update={"options": {"partial": partial}})
    assert shlex.split(reproduce(told)) == ["superopt", "optimize", "model.onnx", "-o", "out.onnx", *words]


def test_a_mutant_is_told_as_one_with_its_text() -> None:
    doc = "2 tiles of axis 2 as a batch. 8.33% of the results are mended, in 1 boxes."
    proof = "unbounded z3=4.15+lemmas digest=abc"
    made = rewrite("partial-tiles-abc", "y", kind="partial", proof=proof, detail=doc, rule_digest="abc")
    page = Page(report_page(report([made]), None, {"partial-tiles-abc": "rule partial-tiles-abc"}))
    for words in ("partial + correction, proved", doc, proof, "rule partial-tiles-abc"):
        assert words in page.texts


def test_a_run_without_a_candidate_has_a_page_too() -> None:
    text = report_page(report([]), None, {})
    page = Page(text)
    assert page.tags["svg"] > 0
    assert "No rewrite was made." in page.text
    assert not [i for i in page.values("id") if i.startswith("region")]


def deep(count: int, every: int, op: str) -> str:
    """A chain of `count` nodes in which each `every`-th one is `op`."""
    nodes = " ".join(f"h{i + 1} = {op if i % every == 0 else 'Neg'}(h{i})" for i in range(count))
    return f"{HEAD} g (float[n] h0) => (float[n] h{count}) {{ {nodes} }}"


def test_two_thousand_nodes_are_folded_to_what_changed() -> None:
    difference = between(model(deep(2000, 200, "Exp")), model(deep(2000, 200, "Abs")))
    assert len(difference.regions) == 10
    text = diff_page(summarize(model(deep(2000, 200, "Exp")), model(deep(2000, 200, "Abs")), difference), difference)
    page = Page(text)
    classes = page.values("class")
    assert classes.count("n block") == 20
    assert classes.count("n removed") == classes.count("n added") == 20
    assert classes.count("quiet") == 10
    assert classes.count("n kept") == 1990, "each unchanged node is drawn once, in a stretch that opens on a click"
    assert "199 unchanged nodes" in page.text


def test_the_same_models_give_the_same_page() -> None:
    pages = [report_page(report([rewrite()]), tidied(), {}) for _ in range(2)]
    assert pages[0] == pages[1]


def test_bodies_are_shown_inside_their_node() -> None:
    base = f"""{HEAD} g (bool c, float[2] x) => (float[2] y) {{
      y = If(c) <then_branch = t () => (float[2] r) {{ s = Neg(x) r = Relu(s) }},
                 else_branch = e () => (float[2] r) {{ r = Abs(x) }}>
    }}"""
    page = Page(report_page(report([]), between(model(base), model(base.replace("Relu(s)", "Exp(s)"))), {}))
    assert "If:y/then_branch" in page.texts
    assert {"region-1", "region-2"} <= set(page.values("id"))
