"""Results: the model, its data files, the report."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from server.access import Served, Tenant
from server.problems import Problem
from server.ranges import file_answer
from server.records import ENDED, GRAPHS, MODEL, REPORT, File, files_of_result
from server.routes.answers import find, problems
from server.service import Service
from superopt.explain.scene import Scene

router = APIRouter(tags=["results"])
BINARY = "application/octet-stream"
_BYTES: dict[str, Any] = {BINARY: {"schema": {"type": "string", "format": "binary"}}}
_DRAWN = "Boxes and lines in their places, what changed among them, and what each rule gained"
_OBJECT: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}


def _answers(description: str, content: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {
        200: {"description": description, "content": content},
        206: {"description": "The bytes that Range asks for", "content": content},
        304: {"description": "It is the one that If-None-Match names"},
        **problems(404, 409, 410, 416, 422),
    }


@router.head("/v1/jobs/{id}/model", include_in_schema=False)
@router.get(
    "/v1/jobs/{id}/model",
    response_class=Response,
    summary="The model",
    responses=_answers("The faster model, or the original where nothing faster was found", _BYTES),
)
def model(request: Request, served: Served, tenant: Tenant, id: str) -> Response:
    return file_answer(request, served.blobs.store, _file(served, tenant, id, MODEL), BINARY, MODEL)


@router.head("/v1/jobs/{id}/report", include_in_schema=False)
@router.get(
    "/v1/jobs/{id}/report",
    response_class=Response,
    summary="Every rewrite, its proof, its time",
    responses=_answers("The report of `superopt optimize`", _OBJECT),
)
def report(request: Request, served: Served, tenant: Tenant, id: str) -> Response:
    return file_answer(request, served.blobs.store, _file(served, tenant, id, REPORT), "application/json", REPORT)


@router.head("/v1/jobs/{id}/graphs", include_in_schema=False)
@router.get(
    "/v1/jobs/{id}/graphs",
    response_class=Response,
    summary="Both graphs, for drawing",
    responses={**_answers(_DRAWN, _OBJECT), 200: {"model": Scene, "description": _DRAWN}},
)
def graphs(request: Request, served: Served, tenant: Tenant, id: str) -> Response:
    """Kept with the result, drawn by the page."""
    return file_answer(request, served.blobs.store, _file(served, tenant, id, GRAPHS), "application/json", GRAPHS)


@router.head("/v1/jobs/{id}/data/{name:path}", include_in_schema=False)
@router.get(
    "/v1/jobs/{id}/data/{name:path}",
    response_class=Response,
    summary="A data file of the model",
    responses=_answers("External data, to lie beside the model under this name", _BYTES),
)
def data(request: Request, served: Served, tenant: Tenant, id: str, name: str) -> Response:
    file = _file(served, tenant, id, name)
    return file_answer(request, served.blobs.store, file, BINARY, "data")


def _file(served: Service, tenant: str, id: str, name: str) -> File:
    job = find(served, tenant, id)
    if job.state not in ENDED:
        raise Problem(
            409, f"the job is {job.state}; it has no result yet", state=job.state, headers={"Retry-After": "1"}
        )
    if job.result is None:
        why = "" if job.error is None else f": {job.error['detail']}"
        raise Problem(409, f"the job is {job.state}{why}", state=job.state)
    with served.database.read() as connection:
        found = {f.name: f for f in files_of_result(connection, job.result)}
    if name not in found:
        raise Problem(404, "the result has no such file")
    return found[name]
