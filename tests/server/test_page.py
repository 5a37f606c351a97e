"""The page as it is served: its files, their headers, and the graphs it draws."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from server.children import ROOT
from server.routes.page import INDEX, TYPES, assets
from tests.server.shop import Shop
from tests.server.test_api import problem
from tests.server.world import tiny

pytestmark = pytest.mark.unit
FOLDER = ROOT / "server" / "page"
MARKUP = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|setAttribute\(.on"
"""Ways by which text becomes markup, or a program."""


def test_the_page_and_its_files(shop: Shop) -> None:
    index = shop.client.get("/")
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert index.text == (FOLDER / INDEX).read_text()
    for name in assets():
        answer = shop.client.get(f"/page/{name}")
        assert answer.headers["content-type"] == f"{TYPES[Path(name).suffix]}; charset=utf-8"
        assert answer.content == (FOLDER / name).read_bytes()
        tag = answer.headers["etag"]
        assert shop.client.get(f"/page/{name}", headers={"If-None-Match": tag}).status_code == 304
        head = shop.client.head(f"/page/{name}")
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


def test_the_policy_lets_no_text_become_a_program(shop: Shop) -> None:
    for path in ("/", "/page/app.js"):
        headers = shop.client.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert policy["trusted-types"] == policy["frame-ancestors"] == policy["form-action"] == "'none'"
        assert not re.search("unsafe|data:|blob:|\\*", headers["content-security-policy"])
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["none.js", "../api.py", "..%2fapi.py", "%2e%2e/api.py", "%2fetc%2fpasswd", "", "."])
def test_nothing_else_is_served(shop: Shop, name: str) -> None:
    problem(shop.client.get(f"/page/{name}"), 404)


def test_everything_is_here_and_nothing_is_inline() -> None:
    """No build step, no other host, no markup out of text."""
    index = (FOLDER / INDEX).read_text()
    assert not re.search(r"<style|style=|<script(?![^>]*src=)|\son[a-z]+=|javascript:", index)
    for file in FOLDER.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|[\"'(]//", text), file.name
        for named in re.findall(r"/page/([\w.-]+)", text):
            assert named in assets(), f"{file.name} needs {named}"
        if file.suffix == ".js":
            assert not re.search(MARKUP, text), file.name
    used = {name for asset in assets().values() for name in re.findall(r"/page/([\w.-]+)", asset.content.decode())}
    assert used | {INDEX} == set(assets())


def test_the_files_are_part_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["server"]
    packed = {path.name for pattern in patterns for path in (ROOT / "server").glob(pattern)}
    assert packed == {path.name for path in FOLDER.iterdir()} == set(assets())


def test_graphs_are_kept_beside_the_result(shop: Shop) -> None:
    shop.hire()
    done = shop.ended(shop.post(tiny(graphs={"note": "drawn"})))
    answer = shop.client.get(done["links"]["graphs"])
    assert (answer.json(), answer.headers["content-type"]) == ({"note": "drawn"}, "application/json")
    assert shop.client.head(done["links"]["graphs"]).headers["etag"] == answer.headers["etag"]
    # They are no part of what a client takes away.
    assert [f["name"] for f in done["result"]["files"]] == ["model.onnx", "report.json"]
    model = shop.client.post("/v1/optimize", content=tiny(graphs={}), headers={"Content-Type": "application/onnx"})
    assert (model.status_code, model.headers["content-type"]) == (200, "application/octet-stream")


def test_a_result_without_graphs(shop: Shop) -> None:
    job = shop.post(tiny())
    problem(shop.client.get(f"/v1/jobs/{job['id']}/graphs"), 409)
    shop.hire()
    problem(shop.client.get(shop.ended(job)["links"]["graphs"]), 404)


def test_the_graphs_are_described(shop: Shop) -> None:
    document = shop.client.get("/openapi.json").json()
    answer = document["paths"]["/v1/jobs/{id}/graphs"]["get"]["responses"]["200"]
    assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Scene"}
    assert set(document["components"]["schemas"]["Scene"]["properties"]) >= {"before", "after", "regions", "rules"}
    assert "/" not in document["paths"]
