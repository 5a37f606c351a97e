# pyright: basic
"""The page in a real browser: its own script runs, and no other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from onnx import parser

from superopt.explain.page import report_page
from tests.explain.pages import Page, report
from tests.explain.test_page import BASE, between, deep, model, rewrite

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


def shown(text: str, folder: Path) -> Page:
    """The document after its scripts have run."""
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
        "--window-size=1300,1000", "--virtual-time-budget=5000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return Page(done.stdout, strict=False)


def test_large_pictures_can_be_moved(tmp_path: Path) -> None:
    difference = between(model(deep(400, 20, "Exp")), model(deep(400, 20, "Abs")))
    page = shown(report_page(report([rewrite()]), difference, {}), tmp_path)
    assert page.values("class").count("tools") == 2
    assert page.values("title").count("zoom in") == 2


def test_a_script_in_a_name_does_not_run(tmp_path: Path) -> None:
    evil = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    proto = parser.parse_model(BASE)
    proto.graph.node[0].name = evil
    before = model(BASE)
    text = report_page(report([rewrite(evil, evil)], path=evil), between(before, before), {})
    # As if the escaping had failed: the policy alone must stop it.
    page = shown(text.replace("<main>", f"<main>{evil}"), tmp_path)
    assert "owned" not in [t.strip() for t in page.titles]
