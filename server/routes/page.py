"""The page: files of this package as they are. A name that a client gives is looked up, never opened."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Request, Response

from server.problems import Problem
from server.ranges import has_tag

INDEX = "index.html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts and styles are these files alone, and text cannot become markup: whatever would parse it is off."""
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str

    @property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()}"'


@cache
def assets() -> dict[str, Asset]:
    """Every file of the page by its name."""
    return {
        entry.name: Asset(entry.read_bytes(), f"{TYPES[suffix]}; charset=utf-8")
        for entry in files("server").joinpath("page").iterdir()
        if (suffix := PurePath(entry.name).suffix) in TYPES
    }


@router.head("/")
@router.get("/")
def index(request: Request) -> Response:
    return _answer(request, INDEX)


@router.head("/page/{name}")
@router.get("/page/{name}")
def asset(request: Request, name: str) -> Response:
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    found = assets().get(name)
    if found is None:
        raise Problem(404, "the page has no such file")
    headers = {"ETag": found.tag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    if has_tag(request.headers.get("if-none-match", ""), found.tag):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media_type)
