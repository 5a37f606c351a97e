"""The model in, the optimized model out, in one request."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from server import choices
from server.access import Served, Tenant
from server.problems import Problem
from server.ranges import file_answer
from server.records import GRAPHS, MODEL, REPORT, Job, files_of_result
from server.routes.answers import IdempotencyKey, Prefer, ended, hand_in, problems, upload_body, wanted_wait
from server.routes.results import BINARY
from server.service import Service

router = APIRouter(tags=["optimize"])


@router.post(
    "/v1/optimize",
    response_class=Response,
    summary="Optimize a model",
    responses={
        200: {
            "description": "The faster model, or the original where nothing faster was found",
            "content": {BINARY: {"schema": {"type": "string", "format": "binary"}}},
        },
        303: {"description": "It takes longer, or the result is more than one file: see the job"},
        **problems(400, 408, 409, 410, 413, 415, 422, 429, 507),
    },
    openapi_extra={"requestBody": upload_body(choices.schema()), "parameters": choices.parameters()},
)
async def optimize(
    request: Request, served: Served, tenant: Tenant, prefer: Prefer = None, idempotency_key: IdempotencyKey = None
) -> Response:
    """Waits for the job as long as the service allows, or as long as `Prefer: wait=SECONDS` says."""
    job = await hand_in(request, served, tenant, idempotency_key)
    seconds = wanted_wait(prefer, served.settings.wait_limit, served.settings.wait_limit)
    job = await ended(served, request.app.state.waiting, job, seconds)
    return await run_in_threadpool(_answer, request, served, job)


def _answer(request: Request, served: Service, job: Job) -> Response:
    here = f"/v1/jobs/{job.id}"
    if job.state == "failed":
        known = dict(job.error or {})
        status = int(known.pop("status", 422))
        raise Problem(
            status, known.pop("detail", ""), title=known.pop("title", ""), headers={"Content-Location": here},
            job=here, error=known.get("error", "SuperoptError"),
        )  # fmt: skip
    if job.state == "canceled":
        raise Problem(409, "the job was canceled", headers={"Content-Location": here}, job=here)
    if job.result is not None:
        with served.database.read() as connection:
            files = {f.name: f for f in files_of_result(connection, job.result)}
        if set(files) <= {MODEL, REPORT, GRAPHS}:
            answer = file_answer(request, served.blobs.store, files[MODEL], BINARY, MODEL)
            answer.headers["Content-Location"] = f"{here}/model"
            answer.headers["Link"] = f'<{here}>; rel="describedby", <{here}/report>; rel="alternate"'
            return answer
    return Response(status_code=303, headers={"Location": here})
