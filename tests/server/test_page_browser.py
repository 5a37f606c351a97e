# pyright: basic
"""The page in a real browser, over an API that listens and a stand-in for the work."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from server.choices import fields
from server.database import open_database
from server.tokens import Tokens
from superopt.explain.staging import stage
from tests.explain.pages import report as told_report
from tests.explain.test_page import between, deep, model, rewrite, tidied
from tests.server.browser import BROWSER, DRIVER, Page, browser
from tests.server.processes import Running, kill
from tests.server.shop import OCTETS, Shop, settings_for, until
from tests.server.world import external, tiny

pytest.importorskip("selenium", reason="selenium is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="no Chromium with its driver on this machine"),
]
EVIL = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>\u202e'


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    with browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(window: Any, tmp_path: Path) -> Page:
    """At desktop width, in light; downloads go to the test's own folder."""
    (tmp_path / "downloads").mkdir()
    where = {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")}
    window.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    made = Page(window)
    made.look()
    made.complaints()
    return made


def written(folder: Path, content: bytes, name: str = "net.onnx") -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def choose(page: Page, *paths: str) -> None:
    page.one("#option-target")  # the form is there as soon as the options are known
    page.all("#files")[0].send_keys("\n".join(paths))


def optimized(name: str = "fast-rule", verdict: str = "2.00× faster") -> dict[str, Any]:
    """What the stand-in is to answer: a report with rewrites, and the graphs that belong to it."""
    made = [
        rewrite(),
        rewrite(
            name, "a", kind="rule", proof="unbounded z3=4 digest=abc", region=1, nodes=["a"], results=["a"],
            measured_us_before=500.0, measured_us_after=350.0, rule_digest="abc",
        ),
    ]  # fmt: skip
    report = told_report(made).model_copy(update={"verdict": verdict, "notes": [f"a note {verdict}"]})
    scene = stage(report, tidied())
    return {"report": report.model_dump(mode="json"), "graphs": scene.model_dump(mode="json")}


def done(shop: Shop, **told: Any) -> str:
    """The address of a job that has been done."""
    return f"{shop.url}/#/jobs/{shop.ended(shop.post(tiny(**told)))['id']}"


def test_a_model_from_the_upload_to_the_download(shop: Shop, page: Page, tmp_path: Path) -> None:
    stages = [{"stage": "searching", "detail": "12 graphs", "speedup": 1.4, "basis": "predicted"}]
    content = tiny(stages=stages, sleep=2.0, **optimized())
    page.open(shop.url)
    page.says("No worker is there")
    choose(page, written(tmp_path, content))
    page.says("the model", "#chosen")
    page.one("#order button.main").click()
    page.says("Waiting for its turn")
    shop.hire()
    page.says("12 graphs")
    page.says("1.40× predicted", ".tiles")
    assert float(page.one(".live progress").get_attribute("value")) > 0
    page.says("✓ done")
    assert page.text("h1") == "net.onnx"
    for words in ("2.00× faster", "990.0 µs to 1.010 ms", "1.25× faster", "1.20 to 1.30", "equal on 3 input"):
        page.says(words)
    page.one(".downloads a.main").click()
    got = tmp_path / "downloads" / "model.onnx"
    page.until(got.exists, "the file")
    assert got.read_bytes().startswith(content)
    page.open(shop.url)
    page.says("net.onnx", "#jobs")
    page.says("1.25×", "#jobs")
    assert page.complaints() == []


def test_waterfall_graphs_and_proofs(shop: Shop, page: Page) -> None:
    shop.hire()
    page.open(done(shop, **optimized()))
    rows = [row.text.replace("\n", " ") for row in page.one(".waterfall").find_elements("css selector", "tbody tr")]
    assert rows == [
        "before 1,000 µs", "fast-rule 1 × −150 µs",
        "not told apart passes, and what regions do to each other −50.0 µs", "after 800 µs",
    ]  # fmt: skip
    page.one(".waterfall button").click()
    opened = page.one("details.rule[open]")
    assert "unbounded z3=4 digest=abc" in opened.text
    page.says("The rule's text is not at hand", "details.rule[open]")  # of a rule that only this test knows
    page.until(lambda: page.run("return document.activeElement.closest('details.rule[open]') !== null"), "focus")
    page.until(lambda: len(page.all(".view .n")) == 7, "both graphs")
    lit = [e.get_attribute("class") for e in page.all(".view .n")]
    assert sorted(lit) == ["n changed", "n changed", "n removed", "n value", "n value", "n value", "n value"]
    page.run("document.getElementById('graphs').scrollIntoView()")
    page.all(".view .n.removed")[0].click()
    page.says("Identity(x)", ".detail")
    page.one(".detail button").click()
    page.says("1 removed, 1 changed", ".region-about")
    page.one(".chip").click()
    assert page.all("details.rule[open]")


def test_the_keyboard_is_enough(shop: Shop, page: Page, tmp_path: Path) -> None:
    shop.hire()
    tab, enter = "\ue004", "\ue007"
    page.open(shop.url)
    page.one("#option-target")
    page.press(tab)
    assert page.run("return document.activeElement.id") == "skip"
    page.press(enter)
    assert page.run("return document.activeElement.id") == "main"
    page.tab_to("#files")
    outline = page.run("return getComputedStyle(document.querySelector('#files + label')).outlineStyle")
    assert outline == "solid", "where the focus is can be seen"
    choose(page, written(tmp_path, tiny(**optimized())))
    page.tab_to("#option-budget")
    page.press("\ue009" + "a" + "\ue009", "7")
    page.tab_to("#more-options > summary")
    page.press(enter)
    page.tab_to("#option-seed")
    page.press("1")
    page.tab_to("#order button.main")
    page.press(enter)
    page.says("✓ done")
    job = shop.client.get("/v1/jobs").json()["jobs"][0]
    assert (job["options"]["budget"], job["options"]["seed"]) == (7.0, 1)
    page.until(lambda: page.all(".contents"), "the result")
    page.tab_to(".downloads a.main")
    page.press(enter)
    page.until((tmp_path / "downloads" / "model.onnx").exists, "the file")
    page.tab_to(".waterfall button")
    page.press(enter)
    assert page.run("return document.activeElement.parentElement.open") is True
    page.run("document.getElementById('graphs-title').focus()")
    page.tab_to(".view")
    before = page.run("return document.activeElement.querySelector('g').getAttribute('transform')")
    page.press("+")
    assert page.run("return document.activeElement.querySelector('g').getAttribute('transform')") != before


def test_a_hostile_name_is_a_name(shop: Shop, page: Page, tmp_path: Path) -> None:
    shop.hire()
    told = optimized(EVIL, EVIL)
    for box in told["graphs"]["before"]["boxes"]:
        box |= {"head": EVIL, "foot": EVIL, "title": EVIL}
    told["graphs"] |= {"note": EVIL}
    told["graphs"]["regions"][0] |= {"place": EVIL, "lines": [f"- {EVIL}"]}
    told["report"]["mutants"] = [{"name": EVIL, "digest": "d", "text": EVIL}]
    told["report"]["options"] = {EVIL: EVIL}
    page.open(shop.url)
    choose(page, written(tmp_path, tiny(**told), "<img src=x onerror=window.owned=1>.onnx"))
    page.one("#order button.main").click()
    page.says("✓ done")
    page.until(lambda: page.all(".contents"), "the result")
    for details in page.all("main details"):
        page.run("arguments[0].open = true", details)
    page.says("<img src=x onerror=", "#job-title")
    page.until(lambda: page.all(".view .n"), "the graph")
    page.one("#region").send_keys("r")
    shop.ended(shop.post(tiny(refuse="<img src=x onerror=window.owned=1>")))
    page.open(shop.url)
    page.says("failed", "#jobs")
    assert page.run("return [window.owned ?? 0, document.querySelectorAll('main img, main script').length]") == [0, 0]
    assert "\u202e" not in page.run("return document.documentElement.textContent")
    assert page.complaints() == []


def test_with_a_token(tmp_path: Path, page: Page) -> None:
    shop = Shop(tmp_path, auth="on")
    try:
        shop.hire()
        token = Tokens(open_database(shop.settings.database_url)).create("alice")
        page.open(shop.url)
        page.says("A token is needed", "#entrance")
        page.one("#token").send_keys("so_wrong\n")
        page.says("the bearer token is not valid", "[role=alert]")
        assert page.flaws() == []
        page.one("#token").send_keys(f"{token}\n")
        page.says("Optimize a model", "#home")
        content = tiny(**optimized())
        choose(page, written(tmp_path, content))
        page.one("#order button.main").click()
        page.says("✓ done")
        page.one(".downloads a.main").click()
        got = tmp_path / "downloads" / "model.onnx"
        page.until(got.exists, "the file")
        assert got.read_bytes().startswith(content)
        assert page.run("return JSON.stringify(localStorage)").count(token) == 0
        assert token not in page.run("return location.href + document.documentElement.outerHTML")
        page.one("#forget").click()
        page.says("A token is needed", "#entrance")
        assert page.run("return sessionStorage.length") == 0
    finally:
        shop.close()


def test_options_are_those_of_the_service(shop: Shop, page: Page) -> None:
    page.open(shop.url)
    page.one("#option-target")
    shown = page.run("return [...document.querySelectorAll('[id^=option-]')].map((e) => e.id)")
    names = {name.removeprefix("option-") for name in shown if not name.endswith(("-help", "-wrong"))}
    assert names == {field.name for field in fields()}
    helps = {field.name: page.run(f"return document.getElementById('option-{field.name}-help').textContent")
             for field in fields()}  # fmt: skip
    assert helps == {field.name: field.metadata["help"] for field in fields()}


def test_problems_are_told_where_they_are(shop: Shop, page: Page, tmp_path: Path) -> None:
    page.open(shop.url)
    page.one("#option-target")
    page.one("#order button.main").click()
    page.says("choose an .onnx file first", "[role=alert]")
    choose(page, written(tmp_path, tiny()))
    budget = page.one("#option-budget")
    budget.clear()
    budget.send_keys("99999")
    page.one("#order button.main").click()
    page.says("at most 600 s here", "[role=alert]")
    page.says("at most 600 s here", "#option-budget-wrong")
    assert page.run("return [document.activeElement.id, document.activeElement.ariaInvalid]") == ["option-budget", ""]
    assert page.flaws() == []
    budget.clear()
    page.one("#chosen button").click()
    choose(page, written(tmp_path, b"no model"))
    page.one("#order button.main").click()
    page.says("Unprocessable", "[role=alert]")
    page.open(f"{shop.url}/#/jobs/{'0' * 32}")
    page.says("there is no such job", "[role=alert]")


def test_external_data_even_in_folders(shop: Shop, page: Page, tmp_path: Path) -> None:
    page.open(shop.url)
    path = written(tmp_path, external("w.bin", "sub/v.bin"))
    choose(page, path)
    page.one("#order button.main").click()
    page.says("Choose these files too: sub/v.bin, w.bin")
    choose(page, written(tmp_path, b"weights", "w.bin"), written(tmp_path, b"more", "v.bin"))
    page.says("external data", "#chosen")
    page.one("#order button.main").click()
    page.says("Waiting for its turn")
    (job,) = shop.client.get("/v1/jobs").json()["jobs"]
    files = shop.client.get(f"/v1/jobs/{job['id']}").json()["files"]
    assert [f["name"] for f in files] == ["model.onnx", "sub/v.bin", "w.bin"]


def test_cancel_fail_and_delete(shop: Shop, page: Page) -> None:
    job = shop.post(tiny(sleep=600))
    page.open(f"{shop.url}/#/jobs/{job['id']}")
    page.one(".live button").click()
    page.says("This job was canceled.")
    shop.hire()
    failed = shop.ended(shop.post(tiny(refuse="CannotRun")))
    page.open(f"{shop.url}/#/jobs/{failed['id']}")
    page.says("onnxruntime does not run the model: model.onnx: is empty", "[role=alert]")
    page.open(shop.url)
    page.says("failed", "#jobs")
    page.one(f"#remove-{failed['id']}").click()
    page.driver.switch_to.alert.accept()
    page.until(lambda: not page.all(f"#remove-{failed['id']}"), "the job is gone")
    page.says("canceled", "#jobs")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nobody_stumbles(shop: Shop, page: Page, width: int, dark: bool) -> None:
    page.look(width=width, dark=dark)
    running = shop.post(tiny(sleep=600))
    page.open(shop.url)
    page.says("queued", "#jobs")
    page.one("#more-options > summary").click()
    assert page.flaws() == []
    page.open(f"{shop.url}/#/jobs/{running['id']}")
    page.says("Waiting for its turn")
    assert page.flaws() == []
    shop.client.delete(f"/v1/jobs/{running['id']}")
    shop.hire()
    page.open(done(shop, **optimized("a-rule-of-a-name-" + "that-goes-on-" * 8)))
    page.one(".contents")
    for details in page.all("main details"):
        page.run("arguments[0].open = true", details)
    page.until(lambda: page.all(".view .n"), "the graph")
    assert page.flaws() == []
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")


@pytest.mark.thorough
def test_three_thousand_nodes_stay_light(shop: Shop, page: Page) -> None:
    """Only what is in sight is in the document; from afar a graph is a handful of shapes."""
    shop.hire()
    told = optimized()
    scene = stage(told_report([rewrite()]), between(model(deep(3000, 2, "Exp")), model(deep(3000, 2, "Abs"))))
    assert scene.before is not None
    assert len(scene.before.boxes) > 3000
    page.open(done(shop, report=told["report"], graphs=scene.model_dump(mode="json")))
    page.until(lambda: page.all(".view .n"), "the graph")
    count = "return document.querySelectorAll('.view *').length"
    assert page.run(count) < 1000
    first = page.run("return document.querySelector('.view .n .h').textContent")
    page.run("document.querySelector('.view').focus()")
    for _ in range(40):
        page.press("\ue015")
    assert page.run(count) < 1000
    assert page.run("return document.querySelector('.view .n .h').textContent") != first
    page.one("button[aria-label='Show all']").click()
    page.until(lambda: page.all(".view .n.removed path"), "seen from afar")
    assert page.run(count) < 40


def test_the_service_may_be_killed_meanwhile(page: Page, tmp_path: Path) -> None:
    service = [sys.executable, "-P", str(Path(__file__).with_name("stand_in_service.py"))]
    with Running(settings_for(tmp_path, port=0), service) as running:
        stages = [{"stage": "searching", "detail": "12 graphs"}]
        content = tiny(stages=stages, sleep=5.0, **optimized())
        until(lambda: running.is_up("worker"))
        job = httpx.post(f"{running.url}/v1/jobs", content=content, headers=OCTETS).json()
        page.open(f"{running.url}/#/jobs/{job['id']}")
        page.says("12 graphs", ".log")
        api = running.pid("api")
        assert api is not None
        assert kill(api)
        page.says("✓ done")
        page.one(".contents")
